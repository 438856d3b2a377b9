// The table of current alerts: one row per topic, newest first, quiet when nothing changes.

import { duration } from "/parts/age.js";

const ROWS_MAX = 60;
const FRESH_MS = 2800;
const TOUCHED_MS = 700;

const clock = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false,
});
const whole = new Intl.NumberFormat("en-GB");

const cell = (row, name) => {
  const td = row.insertCell();
  td.className = name;
  return td;
};

export class Alerts {
  constructor(table) {
    this.body = table.tBodies[0];
    this.rows = new Map();
  }

  get size() { return this.rows.size; }

  update(topic, value, meta) {
    let entry = this.rows.get(topic);
    if (!entry) {
      entry = this.#create(topic);
      this.rows.set(topic, entry);
    }
    entry.at_ms = meta.at_us / 1000;
    entry.value = value;
    entry.stale = meta.stale;
    entry.changed = true;
  }

  remove(topic) {
    const entry = this.rows.get(topic);
    entry?.row.remove();
    this.rows.delete(topic);
  }

  stale(topic, stale) {
    const entry = this.rows.get(topic);
    if (entry) Object.assign(entry, { stale, changed: true });
  }

  /** Once per frame: many updates of one row cost one paint. */
  paint(now_ms) {
    const most = Math.max(1, ...[...this.rows.values()].map((e) => this.#count(e)));
    const shown = [...this.rows.values()].sort((a, b) => b.born - a.born).slice(0, ROWS_MAX);
    for (const entry of shown) {
      if (entry.changed) this.#fill(entry);
      entry.bar.style.width = `${(100 * this.#count(entry)) / most}%`;
      const [number, unit] = duration(Math.max(0, now_ms - entry.at_ms));
      const age = unit === "ms" ? "now" : `${unit === "s" ? Math.floor(number) : number} ${unit}`;
      if (entry.age.textContent !== age) entry.age.textContent = age;
    }
    this.#place(shown);
  }

  #count(entry) { return Number(entry.value?.loginCount ?? entry.value?.count ?? 0); }

  #create(topic) {
    const row = document.createElement("tr");
    row.dataset.topic = topic;
    row.className = "fresh";
    setTimeout(() => row.classList.remove("fresh"), FRESH_MS);
    const entry = { row, born: performance.now(), at_ms: 0, value: null, changed: true };
    entry.ip = cell(row, "ip");
    entry.city = cell(row, "city");
    entry.count = cell(row, "count num");
    entry.bar = cell(row, "bar").appendChild(document.createElement("span"));
    entry.seen = cell(row, "seen num");
    entry.age = cell(row, "age num");
    return entry;
  }

  #fill(entry) {
    const { row, value } = entry;
    entry.changed = false;
    entry.ip.textContent = value.ip ?? row.dataset.topic.split("/").pop();
    entry.city.textContent = value.city ?? value.cityId ?? "";
    const count = whole.format(this.#count(entry));
    if (entry.count.textContent && entry.count.textContent !== count) {
      row.classList.add("touched");
      clearTimeout(entry.calm);
      entry.calm = setTimeout(() => row.classList.remove("touched"), TOUCHED_MS);
    }
    entry.count.textContent = count;
    entry.seen.textContent = clock.format(entry.at_ms);
    row.classList.toggle("stale", Boolean(entry.stale));
  }

  #place(shown) {
    shown.forEach((entry, i) => {
      if (this.body.rows[i] !== entry.row) this.body.insertBefore(entry.row, this.body.rows[i] ?? null);
    });
    while (this.body.rows.length > shown.length) this.body.lastElementChild.remove();
  }
}
