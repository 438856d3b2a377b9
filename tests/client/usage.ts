// What the types of clients/js allow and refuse; checked by test_javascript.py, never run.
import { applyDelta, connect, decode, encode, here, How, Kind, retry, selects, VERSION, View } from "edgewise";
import type { Edgewise, Fault, HowName, Meta, SubscribeOptions, Transport } from "edgewise";

interface Alert {
  ip: string;
  loginCount: number;
}

const edge: Edgewise = connect(["ws://a:8008/ws", here()], {
  token: async () => "a token",
  client: "wall",
  transports: ["websocket", "sse", "poll"],
});
const options: SubscribeOptions = {
  rate: 2,
  weight: 3,
  window: ["mean", "min", "max"],
  stale: (topic, stale, since_us) => console.log(topic.length, stale, since_us + 1),
  removed: (topic, reason) => console.log(topic, reason === "expired"),
};
const end: () => void = edge.subscribe<Alert>(
  "alerts/#",
  (topic, value, meta) => console.log(topic, value.loginCount + 1, edge.age_ms(meta), meta.how),
  options,
);
const stop: () => void = edge.on("state", (state, detail) => console.log(state, detail.code));
edge.on("error", (error) => console.log(error.code, error.reason, error.selector));
edge.setBudget({ bytes_per_s: 50_000 });
edge.onRequest("name", () => "wall");

async function talk(): Promise<void> {
  await edge.publish("a/b", new Uint8Array(3), { kind: Kind.BLOB });
  const doubled: number = await edge.request<number>("double", 21).catch((fault: Fault) => fault.code);
  const held: Alert | undefined = edge.value<Alert>("alerts/10.0.0.1");
  console.log(doubled, held?.ip, VERSION, How.GAP, retry(3001), selects("a/#", "a/b"));
}

const how: HowName = "catch-up";
const transport: Transport = edge.transport;
const bytes: Uint8Array = encode({ a: 1 });
console.log(how, transport, decode(bytes), applyDelta(Kind.RECORD, {}, [{}]), new View().updates);

// @ts-expect-error a selector is text
edge.subscribe(17, () => {});
// @ts-expect-error no such transport
connect("ws://h/ws", { transports: ["carrier pigeon"] });
// @ts-expect-error a field the value does not have
edge.subscribe<Alert>("alerts/#", (_topic, value) => value.nothing);
// @ts-expect-error the state is the client's to say
edge.state = "open";
// @ts-expect-error how a value came to be is one of five words
const wrong: Meta["how"] = "maybe";

void [talk, end, stop, wrong];
