// Ages of updates over a sliding window of time, and their percentiles.

const SAMPLES_MAX = 20_000;

export class Ages {
  constructor(window_ms = 30_000) {
    this.window_ms = window_ms;
    this.samples = [];
  }

  add(now_ms, age_ms) {
    this.samples.push([now_ms, age_ms]);
    if (this.samples.length > SAMPLES_MAX) this.samples.splice(0, SAMPLES_MAX / 2);
  }

  /** The given quantiles (0..1), or null where nothing was seen lately. */
  quantiles(now_ms, ...at) {
    const from = now_ms - this.window_ms;
    let drop = 0;
    while (drop < this.samples.length && this.samples[drop][0] < from) drop += 1;
    if (drop) this.samples.splice(0, drop);
    if (!this.samples.length) return at.map(() => null);
    const sorted = this.samples.map((s) => s[1]).sort((a, b) => a - b);
    return at.map((q) => sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))]);
  }
}

/** "420 ms", "1.8 s", "3 min": a number and its unit. */
export function duration(ms) {
  if (ms === null) return ["–", "ms"];
  if (ms < 1000) return [String(Math.round(ms)), "ms"];
  if (ms < 10_000) return [(ms / 1000).toFixed(1), "s"];
  if (ms < 60_000) return [String(Math.round(ms / 1000)), "s"];
  if (ms < 3_600_000) return [String(Math.round(ms / 60_000)), "min"];
  return [String(Math.round(ms / 3_600_000)), "h"];
}
