// Run with `node --test clients/js`. The golden frames are the same the Python tests use.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { applyDelta, decode, encode, Kind, retry, selects, View } from "./edgewise.js";

const golden = JSON.parse(
  readFileSync(new URL("../../tests/golden/wire/frames.json", import.meta.url)));
const bytes = (hex) => Uint8Array.from(Buffer.from(hex, "hex"));
const hex = (data) => Buffer.from(data).toString("hex");

test("every golden frame decodes and encodes to the same bytes", () => {
  for (const row of golden) {
    const frame = decode(bytes(row.hex));
    // A float that is whole is an integer to JavaScript; everything else survives the round trip.
    assert.equal(hex(encode(frame)), row.hex, row.text);
  }
});

test("the golden session rebuilds values and positions", () => {
  const view = new View();
  const events = golden.filter((r) => r.from === "server").map((r) => decode(bytes(r.hex)))
    .filter(([type]) => type >= 6 && type <= 12).map((f) => view.take(f)).filter(Boolean);
  const alerts = events.filter((e) => e.type === "update" && e.path === "alerts/a");
  assert.deepEqual(alerts.map((e) => e.value),
    [{ ip: "a", n: 11, gone: null }, { ip: "a", n: 12, gone: null }, { ip: "a", n: 13 }]);
  const { how, start, to, count, at_us } = alerts.at(-1).meta;
  assert.deepEqual({ how, start, to, count, at_us },
    { how: "update", start: 22, to: 23, count: 1, at_us: 1790000000001480 });
  assert.deepEqual(view.byPath.get("book").value, { x: { q: 9 }, z: { q: 3 } });
  assert.deepEqual(view.byPath.get("trades").value.map((e) => e[0]), [1, 2, 3]);
  assert.equal(view.updates, 8);
  assert.deepEqual(events.filter((e) => e.type === "removed").map((e) => [e.path, e.reason]),
    [["alerts/a", "expired"]]);
  assert.deepEqual(view.positions("trades"), [["trades", 3, 4]]);
});

test("MessagePack round trips at every border", () => {
  const values = [0, 127, 128, 255, 256, 65535, 65536, 2 ** 32, 2 ** 53 - 1, -1, -32, -33, -128,
    -129, -32768, -32769, -(2 ** 31), -(2 ** 31) - 1, 1.5, -0, "x".repeat(31), "x".repeat(32),
    "ü".repeat(200), "x".repeat(70000), new Array(16).fill(1), new Array(70000).fill(0), null,
    true, { a: { b: [1, "c"] } }, new Uint8Array([1, 2, 3]), 2n ** 60n, -(2n ** 60n)];
  for (const value of values) assert.deepEqual(decode(encode(value)), value);
});

test("broken bytes are a RangeError or a TypeError, never a hang", () => {
  for (const row of golden) {
    const whole = bytes(row.hex);
    for (let n = 0; n < whole.length; n++) {
      assert.throws(() => decode(whole.slice(0, n)), (e) => e instanceof RangeError || e instanceof TypeError);
    }
  }
  assert.throws(() => decode(new Uint8Array([0xdd, 0xff, 0xff, 0xff, 0xff])), RangeError);
  assert.throws(() => decode(new Uint8Array(5000).fill(0x91)), RangeError);
});

test("a map key cannot reach a prototype", () => {
  const value = decode(encode(JSON.parse('{"__proto__": {"polluted": 1}}')));
  assert.equal({}.polluted, undefined);
  assert.equal(value.polluted, undefined);
});

test("selectors", () => {
  const cases = [["alerts/+", "alerts/a", true], ["alerts/+", "alerts", false],
    ["alerts/#", "alerts", true], ["alerts/#", "alerts/a/b", true], ["#", "$sys/x", false],
    ["+/x", "$sys/x", false], ["$sys/#", "$sys/x", true], ["a", "a/b", false]];
  for (const [selector, path, expected] of cases) {
    assert.equal(selects(selector, path), expected, `${selector} ${path}`);
  }
});

test("deltas leave the old value alone", () => {
  const old = { a: 1, b: 2 };
  assert.deepEqual(applyDelta(Kind.RECORD, old, [{ a: 3 }, ["b"]]), { a: 3 });
  assert.deepEqual(old, { a: 1, b: 2 });
});

test("the range of a code decides about retry", () => {
  assert.deepEqual([1006, 3000, 3499, 3500, 3999].map(retry), [true, true, true, false, false]);
});
