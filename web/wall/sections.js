// Sections of the wall: figures where a sink has one topic, a table where it has many, and a map
// above the table where its rows have coordinates.

import { duration } from "/parts/age.js";
import { Spark } from "/parts/spark.js";
import { PointMap, findCoordinates } from "./map.js";
import { Records } from "./records.js";

const ROWS_MAX = 60;
const NUMBERS = new Set(["int", "long", "float", "double"]);
const number = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 3 });

export function createSection(sink) {
  const inPath = new Set([...sink.path.matchAll(/\{(\w+)\}/g)].map((hole) => hole[1]));
  const columns = sink.kind === "blob" ? [["bytes", "long"]] : sink.attributes;
  const numbers = columns.filter(([name, type]) => NUMBERS.has(type) && !inPath.has(name));
  const places = findCoordinates(numbers.map(([name]) => name));
  const charted = numbers.find(([name]) => !places.includes(name)) ?? numbers[0];
  const single = inPath.size === 0 && sink.kind !== "table";
  const View = single ? Figures : Table;
  return new Section(sink, new Records({ kind: sink.kind, number: charted?.[0] }), [
    ...(places.length ? [new PointMap(places)] : []),
    new View(columns, charted?.[0]),
  ]);
}

class Section {
  constructor(sink, records, views) {
    this.records = records;
    this.views = views;
    this.element = create("section", "sink");
    this.element.setAttribute("aria-label", sink.stream);
    const title = create("div", "title");
    this.count = create("p");
    title.append(create("h2", "", sink.stream), this.count);
    this.empty = create("p", "empty", "Nothing yet. Rows appear here as they come.");
    this.element.append(title, ...views.map((view) => view.element), this.empty);
    this.changed = true;
  }

  update(topic, value, meta) { this.records.update(topic, value, meta); this.changed = true; }
  remove(topic) { this.records.remove(topic); this.changed = true; }
  setStale(topic, stale) { this.records.setStale(topic, stale); this.changed = true; }

  paint(now_ms) {
    const second = Math.floor(now_ms / 1000);
    if (!this.changed && second === this.second) return; // ages move once a second
    Object.assign(this, { changed: false, second });
    const records = [...this.records.byId.values()];
    this.count.textContent = records.length === 1 ? "1 row" : `${records.length} rows`;
    this.empty.hidden = records.length > 0;
    for (const view of this.views) view.paint(records, now_ms);
  }
}

/** One topic: each attribute large, numbers with their last two minutes. */
class Figures {
  constructor(columns, charted) {
    this.element = create("div", "figures");
    this.cells = columns.map(([name]) => {
      const article = create("article");
      const figure = create("b");
      const line = create("p", "figure");
      line.append(figure);
      article.append(create("h2", "", name), line);
      const spark = name === charted ? addSpark(article) : null;
      this.element.append(article);
      return { name, figure, spark };
    });
  }

  paint([record]) {
    this.element.hidden = !record;
    if (!record) return;
    this.element.classList.toggle("stale", Boolean(record.stale));
    for (const { name, figure, spark } of this.cells) {
      setText(figure, show(record.row[name]));
      if (spark) drawHistory(spark, record.history);
    }
  }
}

/** Many topics: a row each, the newest first. */
class Table {
  constructor(columns, charted) {
    Object.assign(this, { columns, charted, rows: new Map() });
    this.element = create("table");
    const head = this.element.createTHead().insertRow();
    for (const [name, type] of columns) {
      head.append(create("th", NUMBERS.has(type) ? "num" : "", name));
    }
    if (charted) head.append(create("th", "chart", `${charted}, lately`));
    head.append(create("th", "num", "age"));
    this.body = this.element.createTBody();
  }

  paint(records, now_ms) {
    const shown = records.sort((a, b) => b.at_ms - a.at_ms || b.born - a.born).slice(0, ROWS_MAX);
    const kept = new Set(shown.map((record) => record.id));
    for (const [id, row] of this.rows) if (!kept.has(id)) { row.element.remove(); this.rows.delete(id); }
    shown.forEach((record, i) => {
      const row = this.rows.get(record.id) ?? this.#add(record.id);
      if (this.body.rows[i] !== row.element) {
        this.body.insertBefore(row.element, this.body.rows[i] ?? null);
      }
      this.columns.forEach(([name], j) => setText(row.cells[j], show(record.row[name])));
      if (row.spark) drawHistory(row.spark, record.history);
      const [amount, unit] = duration(Math.max(0, now_ms - record.at_ms));
      setText(row.age, unit === "ms" ? "now" : `${amount} ${unit}`);
      row.element.classList.toggle("stale", Boolean(record.stale));
    });
  }

  #add(id) {
    const element = this.body.insertRow();
    const cells = this.columns.map(([, type]) => {
      const cell = element.insertCell();
      cell.className = NUMBERS.has(type) ? "num" : "";
      return cell;
    });
    const spark = this.charted ? addSpark(element.insertCell()) : null;
    const age = element.insertCell();
    age.className = "age num";
    const row = { element, cells, spark, age };
    this.rows.set(id, row);
    return row;
  }
}

function addSpark(parent) {
  const canvas = create("canvas", "spark");
  canvas.setAttribute("aria-hidden", "true");
  parent.append(canvas);
  return new Spark(canvas, "#6fd3c0");
}

function drawHistory(spark, history) {
  spark.points = history;
  spark.draw();
}

function show(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return number.format(value);
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function create(tag, name = "", text = "") {
  const element = document.createElement(tag);
  if (name) element.className = name;
  if (text) element.textContent = text;
  return element;
}
