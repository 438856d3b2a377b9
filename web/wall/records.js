// The rows that a topic sink shows now, whatever kind of topics it has.
//
// A record topic is one row, a table topic one row per key, a series topic its newest entry with
// the earlier ones as history, a blob its size.

export const HISTORY_MAX = 120; // values of one row that its small chart shows

const READERS = {
  record: (topic, value) => [[topic, value]],
  table: (topic, value) => Object.entries(value).map(([key, row]) => [`${topic}\n${key}`, row]),
  series: (topic, value) => (value.length ? [[topic, value.at(-1)[2], value]] : []),
  blob: (topic, value) => [[topic, { bytes: value.byteLength ?? value.length }]],
};

export class Records {
  constructor({ kind, number }) {
    this.read = READERS[kind] ?? READERS.record;
    this.number = number; // the attribute whose history is kept
    this.byId = new Map();
  }

  update(topic, value, meta) {
    const seen = new Set();
    for (const [id, row, entries] of this.read(topic, value)) {
      seen.add(id);
      const record = this.byId.get(id) ?? { id, topic, history: [], born: this.byId.size };
      this.byId.set(id, record);
      if (entries) record.history = entries.map((entry) => entry[2]?.[this.number]);
      else record.history.push(row?.[this.number]);
      record.history = record.history.filter((n) => typeof n === "number").slice(-HISTORY_MAX);
      Object.assign(record, { row: row ?? {}, at_ms: meta.at_us / 1000, stale: meta.stale });
    }
    this.#drop((record) => record.topic === topic && !seen.has(record.id));
  }

  remove(topic) { this.#drop((record) => record.topic === topic); }

  setStale(topic, stale) {
    for (const record of this.byId.values()) if (record.topic === topic) record.stale = stale;
  }

  #drop(matches) {
    for (const record of [...this.byId.values()]) if (matches(record)) this.byId.delete(record.id);
  }
}
