// The page of any app: one section for each topic sink, made from what `$sys/app` says about it.

import { connect, here } from "/js/edgewise.js";
import { createSection } from "./sections.js";
import { Status } from "/parts/status.js";

const whole = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 0 });
const $ = (id) => document.getElementById(id);

const edge = connect(here(), { client: "wall" });
const status = new Status(edge, $("state"));
const sections = [];
let built = "";

edge.subscribe("$sys/app", (_topic, app) => {
  const now = JSON.stringify(app.topics ?? []);
  if (now === built) return;
  if (built) location.reload(); // the app has other topics now
  built = now;
  describe(app);
  for (const sink of app.topics ?? []) follow(sink);
  $("nothing").hidden = sections.length > 0;
});
edge.subscribe("$sys/rates", (_topic, { events_in_per_s = 0, rows_out_per_s = 0 }) => {
  $("events-in").textContent = whole.format(events_in_per_s);
  $("rows-out").textContent = whole.format(rows_out_per_s);
});
edge.subscribe("$sys/health", (_topic, health) => status.setHealth(health));

function describe({ name, description, engine }) {
  document.title = name || "Edgewise";
  $("name").textContent = name || "Edgewise";
  $("subtitle").textContent = description || "";
  $("how").textContent = engine ? `computed by the engine ${engine}` : "";
}

function follow(sink) {
  const section = createSection(sink);
  $("sections").append(section.element);
  sections.push(section);
  edge.subscribe(sink.path.replace(/\{\w+\}/g, "+"), (topic, value, meta) => {
    section.update(topic, value, meta);
  }, {
    removed: (topic) => section.remove(topic),
    stale: (topic, stale) => section.setStale(topic, stale),
  });
}

/** Once per frame: many updates of one topic cost one paint. */
function paint() {
  const now_ms = Date.now() + edge.clockOffset_us / 1000;
  for (const section of sections) section.paint(now_ms);
  requestAnimationFrame(paint);
}
paint();
