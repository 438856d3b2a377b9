// Edgewise client: subscribe to topics, get the current value, then every change.
//
//   import { connect } from "./edgewise.js";
//   const ew = connect("ws://127.0.0.1:8080/ws");
//   ew.subscribe("alerts/#", (topic, value, meta) => console.log(topic, value, meta));
//
// Speaks the protocol of src/edgewise/wire/SPEC.md. No dependencies; browsers and Node.

export const VERSION = 1;

export const Kind = Object.freeze({ RECORD: 0, TABLE: 1, SERIES: 2, BLOB: 3 });
export const How = Object.freeze({ SNAPSHOT: 0, UPDATE: 1, CATCH_UP: 2, REPLAY: 3, GAP: 4 });
const HOW_NAMES = ["snapshot", "update", "catch-up", "replay", "gap"];
const GONE_NAMES = ["removed", "expired", "unsubscribed", "forbidden"];

const F = Object.freeze({
  HELLO: 1, WELCOME: 2, SUBSCRIBE: 3, SUBSCRIBED: 4, UNSUBSCRIBE: 5, TOPIC: 6, VALUE: 7,
  NEXT: 8, DELTA: 9, REMOVE: 10, STALE: 11, PAUSED: 12, RESUME: 13, PING: 14, PONG: 15,
  ACK: 16, PUBLISH: 17, REQUEST: 18, REPLY: 19, ERROR: 20, CLOSE: 21, BUDGET: 22,
});

const LOST = 3006;
const BACKOFF_MS = { first: 250, most: 10_000 };
const WELCOME_MS = 8_000; // then the next transport is tried
const HAVE_ENTRY_BYTES = 24; // of one position, besides its path
const HAVE_SPARE_BYTES = 4096; // of SUBSCRIBE, besides its positions

/** Whether a session closed with `code` is worth another try. */
export const retry = (code) => !(code >= 3500 && code < 4000);

// --- MessagePack ---------------------------------------------------------------------------

const utf8 = new TextEncoder();
const utf8Decoder = new TextDecoder("utf-8", { fatal: true });
const DEPTH_MAX = 64;

/** A JavaScript value as MessagePack. Integers stay integers; Uint8Array is bin. */
export function encode(value) {
  let buffer = new Uint8Array(128);
  let view = new DataView(buffer.buffer);
  let at = 0;
  const room = (n) => {
    if (at + n <= buffer.length) return;
    const grown = new Uint8Array(Math.max(buffer.length * 2, at + n));
    grown.set(buffer);
    buffer = grown;
    view = new DataView(buffer.buffer);
  };
  const u8 = (n) => { room(1); buffer[at++] = n; };
  const u16 = (n) => { room(2); view.setUint16(at, n); at += 2; };
  const u32 = (n) => { room(4); view.setUint32(at, n); at += 4; };
  const bytes = (b) => { room(b.length); buffer.set(b, at); at += b.length; };
  const sized = (n, fix, fixMax, c8, c16, c32) => {
    if (n <= fixMax) u8(fix | n);
    else if (c8 && n < 0x100) { u8(c8); u8(n); }
    else if (n < 0x10000) { u8(c16); u16(n); }
    else { u8(c32); u32(n); }
  };
  const big = (n) => {
    room(9);
    buffer[at] = n < 0n ? 0xd3 : 0xcf;
    if (n < 0n) view.setBigInt64(at + 1, n); else view.setBigUint64(at + 1, n);
    at += 9;
  };
  const integer = (n) => {
    if (n >= 0) {
      if (n < 0x80) u8(n);
      else if (n < 0x100) { u8(0xcc); u8(n); }
      else if (n < 0x10000) { u8(0xcd); u16(n); }
      else if (n < 0x100000000) { u8(0xce); u32(n); }
      else big(BigInt(n));
    } else if (n >= -32) u8(n & 0xff);
    else if (n >= -0x80) { u8(0xd0); u8(n & 0xff); }
    else if (n >= -0x8000) { u8(0xd1); u16(n & 0xffff); }
    else if (n >= -0x80000000) { u8(0xd2); u32(n >>> 0); }
    else big(BigInt(n));
  };
  const put = (v, depth) => {
    if (depth > DEPTH_MAX) throw new RangeError(`deeper than ${DEPTH_MAX} levels`);
    if (v === null || v === undefined) u8(0xc0);
    else if (v === true || v === false) u8(v ? 0xc3 : 0xc2);
    else if (typeof v === "number") {
      if (Number.isSafeInteger(v) && !Object.is(v, -0)) integer(v);
      else { u8(0xcb); room(8); view.setFloat64(at, v); at += 8; }
    } else if (typeof v === "bigint") big(v);
    else if (typeof v === "string") {
      const b = utf8.encode(v);
      sized(b.length, 0xa0, 31, 0xd9, 0xda, 0xdb);
      bytes(b);
    } else if (v instanceof Uint8Array) {
      sized(v.length, 0, -1, 0xc4, 0xc5, 0xc6);
      bytes(v);
    } else if (Array.isArray(v)) {
      sized(v.length, 0x90, 15, 0, 0xdc, 0xdd);
      for (const item of v) put(item, depth + 1);
    } else if (typeof v === "object") {
      const keys = Object.keys(v).filter((k) => v[k] !== undefined);
      sized(keys.length, 0x80, 15, 0, 0xde, 0xdf);
      for (const key of keys) { put(key, depth + 1); put(v[key], depth + 1); }
    } else throw new TypeError(`a ${typeof v} has no MessagePack form`);
  };
  put(value, 0);
  return buffer.slice(0, at);
}

/** One MessagePack value from bytes. Integers beyond 2^53 come as BigInt. */
export function decode(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 0;
  const move = (n) => {
    const from = at;
    at += n;
    if (at > bytes.length) throw new RangeError("truncated");
    return from;
  };
  const u8 = () => bytes[move(1)];
  const u16 = () => view.getUint16(move(2));
  const u32 = () => view.getUint32(move(4));
  const safe = (n) => (n >= Number.MIN_SAFE_INTEGER && n <= Number.MAX_SAFE_INTEGER
    ? Number(n) : n);
  const string = (n) => { const from = move(n); return utf8Decoder.decode(bytes.subarray(from, at)); };
  const binary = (n) => { const from = move(n); return bytes.slice(from, at); };
  const array = (n, depth) => {
    if (n > bytes.length - at) throw new RangeError("truncated");
    const out = new Array(n);
    for (let i = 0; i < n; i++) out[i] = get(depth + 1);
    return out;
  };
  const map = (n, depth) => {
    const out = {};
    for (let i = 0; i < n; i++) {
      const key = get(depth + 1);
      const value = get(depth + 1);
      // A key such as __proto__ is data, never a prototype.
      if (key === "__proto__") {
        Object.defineProperty(out, key, { value, enumerable: true, configurable: true, writable: true });
      } else out[key] = value;
    }
    return out;
  };
  const get = (depth) => {
    if (depth > DEPTH_MAX) throw new RangeError(`deeper than ${DEPTH_MAX} levels`);
    const b = u8();
    if (b < 0x80) return b;
    if (b < 0x90) return map(b & 15, depth);
    if (b < 0xa0) return array(b & 15, depth);
    if (b < 0xc0) return string(b & 31);
    if (b >= 0xe0) return b - 256;
    switch (b) {
      case 0xc0: return null;
      case 0xc2: return false;
      case 0xc3: return true;
      case 0xc4: return binary(u8());
      case 0xc5: return binary(u16());
      case 0xc6: return binary(u32());
      case 0xca: return view.getFloat32(move(4));
      case 0xcb: return view.getFloat64(move(8));
      case 0xcc: return u8();
      case 0xcd: return u16();
      case 0xce: return u32();
      case 0xcf: return safe(view.getBigUint64(move(8)));
      case 0xd0: return view.getInt8(move(1));
      case 0xd1: return view.getInt16(move(2));
      case 0xd2: return view.getInt32(move(4));
      case 0xd3: return safe(view.getBigInt64(move(8)));
      case 0xd9: return string(u8());
      case 0xda: return string(u16());
      case 0xdb: return string(u32());
      case 0xdc: return array(u16(), depth);
      case 0xdd: return array(u32(), depth);
      case 0xde: return map(u16(), depth);
      case 0xdf: return map(u32(), depth);
      default: throw new RangeError(`byte 0x${b.toString(16)} starts no value`);
    }
  };
  const value = get(0);
  if (at !== bytes.length) throw new RangeError("bytes after the value");
  return value;
}

// --- Paths and values ----------------------------------------------------------------------

/** Whether a selector (`+` one segment, trailing `#` any number) names a path. */
export function selects(selector, path) {
  const want = selector.split("/");
  const have = path.split("/");
  if (have[0].startsWith("$") && (want[0] === "+" || want[0] === "#")) return false;
  const open = want[want.length - 1] === "#";
  if (open) want.pop();
  if (open ? have.length < want.length : have.length !== want.length) return false;
  return want.every((w, i) => w === "+" || w === have[i]);
}

const patchRecord = (old, [set, removed = []]) => {
  const value = { ...old, ...set };
  for (const name of removed) delete value[name];
  return value;
};

const patchTable = (old, [rows, removed = [], patched = {}]) => {
  const value = patchRecord(old, [rows, removed]);
  for (const [key, patch] of Object.entries(patched)) value[key] = patchRecord(value[key], patch);
  return value;
};

/** Apply a difference to a value of a topic; the old value stays as it was. */
export function applyDelta(kind, old, delta, keep = 0) {
  if (kind === Kind.RECORD) return patchRecord(old, delta);
  if (kind === Kind.TABLE) return patchTable(old, delta);
  if (kind === Kind.SERIES) {
    const series = [...old, ...delta[0]];
    return keep ? series.slice(-keep) : series;
  }
  throw new RangeError(`topics of kind ${kind} have no deltas`);
}

/** What a client knows: aliases, positions, current values. `take` turns frames into events. */
export class View {
  constructor() {
    this.updates = 0;
    this.byAlias = new Map();
    this.byPath = new Map();
  }

  /** A new session: aliases are void, what is known by path stays known. */
  begin() {
    this.byAlias.clear();
    this.updates = 0;
  }

  /** [path, epoch, to] of what is held below a selector. */
  positions(selector, bytesMax = Infinity) {
    const out = [];
    let room = bytesMax - HAVE_SPARE_BYTES;
    for (const held of this.byPath.values()) {
      if (!held.at_us || !selects(selector, held.path)) continue;
      room -= utf8.encode(held.path).length + HAVE_ENTRY_BYTES;
      if (room < 0) break; // the rest comes as snapshots
      out.push([held.path, held.epoch, held.to]);
    }
    return out;
  }

  take(frame) {
    const [type, alias] = frame;
    if (type === F.TOPIC) return this.#learn(frame);
    const held = this.byAlias.get(alias);
    if (!held) throw new RangeError(`alias ${alias} was never declared`);
    if (type === F.REMOVE) {
      this.byAlias.delete(alias);
      this.byPath.delete(held.path);
      return { type: "removed", path: held.path, reason: GONE_NAMES[frame[2] ?? 0] };
    }
    if (type === F.STALE) {
      held.stale_since_us = frame[2];
      return { type: "stale", path: held.path, since_us: frame[2], held };
    }
    if (type === F.PAUSED) {
      return { type: "paused", path: held.path, alias, code: frame[2], epoch: held.epoch, to: held.to };
    }
    return this.#update(type, frame, held);
  }

  #learn([, alias, path, kind = 0, options = {}]) {
    let held = this.byPath.get(path);
    if (!held || held.kind !== kind) {
      held = { path, kind, keep: 0, epoch: 0, to: 0, at_us: 0, value: undefined, stale_since_us: 0 };
    }
    held.keep = options.keep ?? 0;
    held.stale_since_us = 0;
    this.byAlias.set(alias, held);
    this.byPath.set(path, held);
    return null;
  }

  #update(type, frame, held) {
    this.updates += 1;
    let how = How.UPDATE;
    let start = held.to;
    let count;
    if (type === F.VALUE) {
      [, , how, held.epoch, start, held.to, count, held.at_us, held.value] = frame;
    } else {
      const [, , advance, n, later_us, body] = frame;
      count = n;
      held.to += advance;
      held.at_us += later_us;
      held.value = type === F.NEXT ? body : applyDelta(held.kind, held.value, body, held.keep);
    }
    return { type: "update", path: held.path, value: held.value, meta: metaOf(held, how, start, count) };
  }
}

const metaOf = (held, how, start, count) => ({
  how: HOW_NAMES[how], epoch: held.epoch, start, to: held.to, count, at_us: held.at_us,
  stale: held.stale_since_us > 0, stale_since_us: held.stale_since_us,
});

// --- Transports ----------------------------------------------------------------------------
// Each opens a two-way lane for whole frames: open(url, on) -> { send(bytes), close(code, reason) }
// with on.open(), on.frame(bytes), on.close(code, reason).

function openWebSocket(url, on, options) {
  const WebSocketClass = options.WebSocket ?? globalThis.WebSocket;
  if (!WebSocketClass) throw new Error("no WebSocket here");
  const socket = new WebSocketClass(url);
  socket.binaryType = "arraybuffer";
  socket.onopen = () => on.open();
  socket.onmessage = (event) => on.frame(new Uint8Array(event.data));
  socket.onclose = (event) => on.close(event.code, event.reason);
  socket.onerror = () => {};
  return {
    send: (bytes) => socket.send(bytes),
    close: (code, reason) => socket.close(code, reason),
  };
}

const httpBase = (url) => url.replace(/^ws/, "http").replace(/\/ws\/?$/, "");

async function post(url, body, signal) {
  const headers = { "content-type": "application/msgpack" };
  const response = await fetch(url, { method: "POST", body, signal, headers });
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  return response;
}

const fromBase64 = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

// The event stream brings frames; POSTs carry ours, one at a time so that they stay in order.
function openEvents(url, on) {
  const base = httpBase(url);
  const stop = new AbortController();
  const queue = [];
  let session = null;
  let started = false;
  let sending = null;
  const fail = (error) => on.close(LOST, String(error));
  const read = async (hello) => {
    const reader = (await post(`${base}/sse`, hello, stop.signal)).body.getReader();
    const text = new TextDecoder();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return on.close(LOST, "the stream ended");
      const events = (rest + text.decode(value, { stream: true })).split("\n\n");
      rest = events.pop();
      for (const event of events) if (event.startsWith("data: ")) on.frame(fromBase64(event.slice(6)));
    }
  };
  const drain = async () => {
    while (queue.length && session) {
      await post(`${base}/send?session=${session}`, encode(queue.splice(0, 64)), stop.signal);
    }
  };
  const flush = () => {
    sending ??= drain().catch(fail).finally(() => { sending = null; });
    return sending;
  };
  queueMicrotask(() => on.open());
  return {
    welcome: (name) => { session = name; flush(); },
    send: (bytes) => {
      if (started) { queue.push(bytes); flush(); } else { started = true; read(bytes).catch(fail); }
    },
    close: () => flush().finally(() => stop.abort()),
  };
}

// Ask, get, ask again. What we say while a poll waits goes with a second one, which releases it.
function openPoll(url, on) {
  const base = httpBase(url);
  const stop = new AbortController();
  let session = null;
  let newest = 0;
  let queue = [];
  let asked = false;
  const ask = async () => {
    const turn = ++newest;
    const frames = queue;
    queue = [];
    const where = session ? `${base}/poll?session=${session}` : `${base}/poll`;
    try {
      const answer = await post(where, encode(frames), stop.signal);
      for (const frame of decode(new Uint8Array(await answer.arrayBuffer()))) on.frame(frame);
      if (session && turn === newest) ask();
    } catch (error) {
      on.close(LOST, String(error));
    }
  };
  // Frames said in one go travel in one request.
  const soon = () => {
    if (asked) return;
    asked = true;
    queueMicrotask(() => { asked = false; ask(); });
  };
  queueMicrotask(() => on.open());
  return {
    welcome: (name) => { session = name; },
    send: (bytes) => { queue.push(bytes); soon(); },
    close: () => setTimeout(() => stop.abort(), 50),
  };
}

const TRANSPORTS = { websocket: openWebSocket, sse: openEvents, poll: openPoll };

// --- Connection ----------------------------------------------------------------------------

class Edgewise {
  #options; #lane = null; #view = new View(); #subscriptions = new Map();
  #nextId = 1; #attempt = 0; #timer = null; #pulse = null; #acked = 0; #heard = 0;
  #calls = new Map(); #handlers = new Map(); #state = "connecting"; #listeners = new Map();
  #bestRtt = Infinity; #offset_us = 0; #pingMs = 20_000; #frameBytes = Infinity; #ways; #at = 0; #welcomed = false;

  constructor(urls, options) {
    this.#options = options;
    const kinds = options.transports ?? Object.keys(TRANSPORTS);
    this.#ways = urls.flatMap((url) => kinds.map((kind) => ({ url, kind })));
    this.#options.kinds = kinds.length;
    this.#open();
  }

  /** "websocket", "sse" or "poll": what is in use or tried now. */
  get transport() { return this.#ways[this.#at].kind; }

  /** "connecting", "open", "waiting" (for the next try) or "closed". */
  get state() { return this.#state; }

  /** Server clock minus ours, microseconds; from the fastest round trip so far. */
  get clockOffset_us() { return this.#offset_us; }

  /** Age of an update now, in milliseconds, by the server's clock. */
  age_ms(meta) { return Math.max(0, Date.now() - meta.at_us / 1000 + this.#offset_us / 1000); }

  /** The current value of a path that is subscribed to. */
  value(path) { return this.#view.byPath.get(path)?.value; }

  /**
   * Calls `onUpdate(topic, value, meta)` with the current value of everything selected, then on
   * every change. `on` may hold `removed(topic, reason)`, `stale(topic, meta)`,
   * `paused(topic, code)`, `error(code, reason)`, `ready(topics)`. Answers a function that ends it.
   */
  subscribe(selector, onUpdate, on = {}) {
    const id = this.#nextId++;
    const { rate, weight, window, last, ...handlers } = on;
    const subscription = { id, selector, onUpdate, on: handlers, ask: { rate, weight, window, last } };
    this.#subscriptions.set(id, subscription);
    if (this.#state === "open") this.#ask(subscription);
    return () => {
      if (this.#subscriptions.delete(id)) this.#send([F.UNSUBSCRIBE, id]);
    };
  }

  /** Publish a value; resolves when the server took it. */
  publish(path, value, options = {}) {
    return this.#call((id) => [F.PUBLISH, id, path, value, options]);
  }

  /** Ask the server (or whoever serves the path) and wait for the answer. */
  request(path, body = null) {
    return this.#call((id) => [F.REQUEST, id, path, body]);
  }

  /** Answer requests for a path: `handler(body)` may be async. */
  onRequest(path, handler) { this.#handlers.set(path, handler); }

  /** Change the budgets of this session; 0 lifts one. */
  setBudget({ bytes_per_s = 0, updates_per_s = 0 } = {}) {
    Object.assign(this.#options, { bytes_per_s, updates_per_s });
    this.#send([F.BUDGET, bytes_per_s, updates_per_s]);
  }

  /** `on("state", (state, detail) => ...)`; answers a function that removes the listener. */
  on(event, listener) {
    const all = this.#listeners.get(event) ?? new Set();
    this.#listeners.set(event, all.add(listener));
    return () => all.delete(listener);
  }

  /** Say goodbye and stay away. */
  close() {
    this.#send([F.CLOSE, 3506, "done"]);
    this.#shut("closed", { code: 3506, reason: "done" });
    this.#lane?.close(1000, "done");
    this.#lane = null;
  }

  #open() {
    this.#become("connecting");
    const { url, kind } = this.#ways[this.#at];
    const lane = {};
    this.#welcomed = false;
    const mine = (act) => (...args) => { if (this.#lane === lane) act(...args); };
    this.#lane = lane;
    try {
      Object.assign(lane, TRANSPORTS[kind](url, {
        open: mine(() => this.#hello()),
        frame: mine((bytes) => this.#receive(bytes)),
        close: mine((code, reason) => this.#lost(code, reason)),
      }, this.#options));
    } catch (error) {
      setTimeout(mine(() => this.#lost(LOST, String(error))), 0);
    }
    this.#timer = setTimeout(mine(() => {
      lane.close?.(3003, "no welcome");
      this.#lost(LOST, "no welcome in time");
    }), this.#options.welcome_ms ?? WELCOME_MS);
  }

  #hello() {
    const { token, client, bytes_per_s, updates_per_s } = this.#options;
    const say = (t) => this.#lane?.send?.(encode(
      [F.HELLO, VERSION, { token: t, client, bytes_per_s, updates_per_s }]));
    if (typeof token === "function") Promise.resolve(token()).then(say, (e) => this.#lost(LOST, String(e)));
    else say(token);
  }

  #receive(bytes) {
    this.#heard = Date.now();
    let frame;
    try {
      frame = decode(bytes);
      this.#act(frame);
    } catch (error) {
      // A frame we cannot read leaves our picture wrong: start over from positions.
      if (!(error instanceof RangeError || error instanceof TypeError)) throw error;
      this.#lane?.close?.(3500, "unreadable frame");
      this.#lost(LOST, String(error));
    }
  }

  #act(frame) {
    const [type, id] = frame;
    switch (type) {
      case F.WELCOME: return this.#welcome(frame);
      case F.SUBSCRIBED: return this.#subscriptions.get(id)?.on.ready?.(frame[2]);
      case F.PING: return this.#send([F.PONG, id, Date.now() * 1000]);
      case F.PONG: return this.#measure(id, frame[2]);
      case F.REPLY: return this.#settle(id, "resolve", frame[2]);
      case F.ERROR: return this.#fault(id, frame[2], frame[3]);
      case F.REQUEST: return this.#serve(id, frame[2], frame[3]);
      case F.CLOSE: return this.#lost(id, frame[2]);
      default:
        if (type >= F.TOPIC && type <= F.PAUSED) this.#deliver(this.#view.take(frame));
    }
  }

  #welcome([, , session, now_us, limits = {}]) {
    clearTimeout(this.#timer);
    this.session = session;
    this.#welcomed = true;
    this.#lane.welcome?.(session);
    this.#attempt = 0;
    this.#acked = 0;
    this.#bestRtt = Infinity;
    this.#offset_us = now_us - Date.now() * 1000;
    this.#pingMs = limits.ping_ms || 20_000;
    this.#frameBytes = limits.frame_bytes || Infinity;
    this.#become("open", { session });
    for (const subscription of this.#subscriptions.values()) this.#ask(subscription);
    this.#view.begin();
    this.#pulse = setInterval(() => this.#beat(), limits.ack_ms || 1000);
    this.#pulse.unref?.();
    this.#send([F.PING, Date.now()]);
  }

  #ask({ id, selector, ask }) {
    const have = this.#view.positions(selector, this.#frameBytes);
    const options = { ...ask };
    if (have.length) options.have = have;
    this.#send([F.SUBSCRIBE, id, selector, options]);
  }

  #deliver(event) {
    if (!event) return;
    for (const s of [...this.#subscriptions.values()]) {
      if (!selects(s.selector, event.path)) continue;
      if (event.type === "update") s.onUpdate?.(event.path, event.value, event.meta);
      else if (event.type === "removed") s.on.removed?.(event.path, event.reason);
      else if (event.type === "stale") s.on.stale?.(event.path, event.since_us > 0, event.since_us);
      else s.on.paused?.(event.path, event.code);
    }
    if (event.type === "paused") this.#send([F.RESUME, event.alias, event.epoch, event.to]);
  }

  #beat() {
    if (this.#view.updates > this.#acked) {
      this.#acked = this.#view.updates;
      this.#send([F.ACK, this.#acked]);
    }
    const silent = Date.now() - this.#heard;
    if (silent > this.#pingMs * 3) {
      this.#lane?.close?.(LOST, "silent");
      this.#lost(LOST, "the server fell silent");
    } else if (silent > this.#pingMs || this.#bestRtt === Infinity) this.#send([F.PING, Date.now()]);
  }

  #measure(sent, server_us) {
    const now = Date.now();
    const rtt = now - sent;
    if (rtt > this.#bestRtt || !server_us) return;
    this.#bestRtt = rtt;
    this.#offset_us = server_us - (sent + rtt / 2) * 1000;
  }

  #call(frame) {
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      if (this.#state !== "open") return reject(fault(LOST, "not connected"));
      this.#calls.set(id, { resolve, reject });
      this.#send(frame(id));
    });
  }

  #settle(id, how, value) {
    const call = this.#calls.get(id);
    this.#calls.delete(id);
    call?.[how](value);
  }

  #fault(id, code, reason) {
    const subscription = this.#subscriptions.get(id);
    if (subscription?.on.error) subscription.on.error(code, reason);
    else if (subscription) this.#emit("error", { code, reason, selector: subscription.selector });
    else this.#settle(id, "reject", fault(code, reason));
  }

  async #serve(id, path, body) {
    const handler = this.#handlers.get(path);
    if (!handler) return this.#send([F.ERROR, id, 4505, `no handler for '${path}'`]);
    try {
      this.#send([F.REPLY, id, (await handler(body)) ?? null]);
    } catch (error) {
      this.#send([F.ERROR, id, 4506, String(error?.message ?? error)]);
    }
  }

  #send(frame) {
    if (this.#state === "open") this.#lane?.send?.(encode(frame));
  }

  #lost(code, reason) {
    if (this.#state === "closed") return;
    this.#lane = null;
    const detail = { code, reason };
    if (!retry(code)) return this.#shut("closed", detail);
    this.#shut("waiting", detail);
    // What worked will work again, here or at the next edge; what did not get through makes way.
    const ways = this.#ways.length;
    this.#at = (this.#at + (this.#welcomed ? this.#options.kinds : 1)) % ways;
    if (!this.#welcomed && this.#at) {
      this.#timer = setTimeout(() => this.#open(), 0);
      return;
    }
    const most = Math.min(BACKOFF_MS.most, BACKOFF_MS.first * 2 ** this.#attempt++);
    this.#timer = setTimeout(() => this.#open(), most / 2 + Math.random() * (most / 2));
  }

  #shut(state, detail) {
    clearInterval(this.#pulse);
    clearTimeout(this.#timer);
    for (const id of [...this.#calls.keys()]) {
      this.#settle(id, "reject", fault(detail.code, detail.reason));
    }
    this.#become(state, detail);
  }

  #become(state, detail = {}) {
    this.#state = state;
    this.#emit("state", state, detail);
  }

  #emit(event, ...args) {
    for (const listener of this.#listeners.get(event) ?? []) listener(...args);
  }
}

const fault = (code, reason) => Object.assign(new Error(`${code}: ${reason}`), { code, reason });

/**
 * Connect and stay connected. Options: `token` (a string or an async function), `client` (a name
 * for the server's statistics), `bytes_per_s`, `updates_per_s`, `transports` (which to try, in
 * order), `WebSocket` (a class to use). Several addresses are edges on one log.
 */
export function connect(url, options = {}) {
  return new Edgewise(Array.isArray(url) ? url : [url], { ...options });
}

/** The WebSocket address of the edge that served this page. */
export function here(path = "/ws") {
  const { protocol, host } = globalThis.location;
  return `${protocol === "https:" ? "wss" : "ws"}://${host}${path}`;
}
