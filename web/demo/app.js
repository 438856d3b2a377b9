// The wall: an ordinary client of the edge. It knows two selectors and nothing else.

import { connect, here } from "/js/edgewise.js";
import { Ages, duration } from "/parts/age.js";
import { Alerts } from "./alerts.js";
import { Spark } from "/parts/spark.js";
import { Status } from "/parts/status.js";

const SECOND_MS = 1000;
const $ = (id) => document.getElementById(id);
const whole = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 0 });
const small = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 1 });

const alerts = new Alerts($("alerts"));
const ages = new Ages();
const sparks = {
  in: new Spark($("spark-in"), "#6fd3c0"),
  out: new Spark($("spark-out"), "#ffb86b"),
  p50: new Spark($("spark-p50"), "#8fb4ff"),
  p99: new Spark($("spark-p99"), "#8fb4ff"),
};
const counts = { updates: 0, merged: 0 };
let dirty = true;

const edge = connect(here(), { client: "wall" });

const status = new Status(edge, $("state"));

edge.subscribe("alerts/+", (topic, value, meta) => {
  alerts.update(topic, value, meta);
  counts.updates += 1;
  counts.merged += Math.max(0, meta.count - 1);
  // A snapshot shows how long ago something happened, not how long it took to get here.
  if (meta.how === "update" || alerts.size && edge.age_ms(meta) < 5 * SECOND_MS) {
    ages.add(performance.now(), edge.age_ms(meta));
  }
  dirty = true;
}, {
  removed: (topic) => { alerts.remove(topic); dirty = true; },
  stale: (topic, stale) => { alerts.stale(topic, stale); dirty = true; },
});

edge.subscribe("$sys/#", (topic, value) => {
  if (topic === "$sys/rates") rates(value);
  else if (topic === "$sys/app") describeApp(value);
  else if (topic === "$sys/health") status.setHealth(value);
});

const ENGINES = { spark: "computed on Spark", embedded: "computed by the embedded engine" };
function describeApp({ title, engine }) {
  if (title) $("subtitle").textContent = title;
  $("how").textContent = `Captured, ${ENGINES[engine] ?? "computed"}, pushed by the edge`;
}

function rates({ events_in_per_s = 0, rows_out_per_s = 0 }) {
  $("events-in").textContent = whole.format(events_in_per_s);
  $("rows-out").textContent = (rows_out_per_s < 10 ? small : whole).format(rows_out_per_s);
  sparks.in.push(events_in_per_s);
  sparks.out.push(rows_out_per_s);
}

function everySecond() {
  const [p50, p99] = ages.quantiles(performance.now(), 0.5, 0.99);
  for (const [id, age] of [["p50", p50], ["p99", p99]]) {
    const [number, unit] = duration(age);
    $(`age-${id}`).textContent = number;
    $(`age-${id}`).dataset.ms = age === null ? "" : age.toFixed(1);
    $(`age-${id}-unit`).textContent = unit;
    if (age !== null) sparks[id].push(age);
  }
  $("clock").textContent = new Date().toLocaleTimeString("en-GB");
  $("updates").textContent = whole.format(counts.updates);
  $("merged").textContent = whole.format(counts.merged);
  dirty = true;
}

function paint() {
  if (dirty) {
    dirty = false;
    alerts.paint(Date.now() + edge.clockOffset_us / 1000);
    $("alert-count").textContent = alerts.size;
    $("alert-note").textContent = alerts.size === 1 ? "address above the limit" : "addresses above the limit";
  }
  requestAnimationFrame(paint);
}

setInterval(everySecond, SECOND_MS);
everySecond();
paint();
addEventListener("resize", () => Object.values(sparks).forEach((s) => s.draw()));
