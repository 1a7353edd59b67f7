// The traffic on edges, in flat arrays: a frame changes numbers in them and makes nothing.

/** @typedef {{ from: number, to: number, rate: number, errors: number, p50: number, p99: number }} EdgeState */

/** Edges with less traffic than that, in messages per second, are quiet. */
const QUIET = 0.01;
/** More dots than that say no more. */
const MOST_DOTS_OF_AN_EDGE = 5;
/** How long a dot of an edge with the usual latency takes, in seconds. */
const USUAL = 1.2;
/** The number of latencies whose median is the usual latency. */
const SAMPLES = 512;

/** How an edge is drawn: its number says its colour and how wide it is. */
export const STYLES = { quiet: 0, down: 1, first: 2, widths: 16, count: 2 + 3 * 16 };

export class Edges {
  constructor() {
    this.count = 0;
    /** The place of an edge by its ends. @type {Map<number, number>} */
    this.places = new Map();
    this.from = new Uint32Array(64);
    this.to = new Uint32Array(64);
    /** The place of the edge that came after an edge in the last frame, and the place of the last edge. */
    this.after = new Uint32Array(64);
    this.last = 0;
    this.rate = new Float32Array(64);
    this.errors = new Float32Array(64);
    this.p50 = new Float32Array(64);
    this.p99 = new Float32Array(64);
    /** Those with dots: which, how many dots, how long one takes, and where the first begins. */
    this.busy = new Uint32Array(64);
    this.dots = new Uint8Array(64);
    this.takes = new Float32Array(64);
    this.busyCount = 0;
    this.allDots = 0;
    /** In the order in which they are drawn, and where each style begins. */
    this.order = new Uint32Array(64);
    this.begins = new Uint32Array(STYLES.count + 1);
    this.samples = new Float32Array(SAMPLES);
  }

  clear() {
    this.count = 0;
    this.busyCount = 0;
    this.allDots = 0;
    this.begins.fill(0);
    this.places.clear();
  }

  grow() {
    const arrays = /** @type {Record<string, Uint32Array | Uint8Array | Float32Array>} */ (/** @type {unknown} */ (this));
    for (const name of ["from", "to", "after", "busy", "order", "rate", "errors", "p50", "p99", "takes", "dots"]) {
      const old = arrays[name] ?? new Uint8Array(0);
      const next = new /** @type {any} */ (old.constructor)(2 * old.length);
      next.set(old);
      arrays[name] = next;
    }
  }

  /**
   * What an edge has now. @param {number} from @param {number} to @param {number} rate @param {number} errors @param {number} p50
   * @param {number} p99
   */
  set(from, to, rate, errors, p50, p99) {
    // Frames have edges in the same order, so that a look-up is rarely needed.
    let place = this.after[this.last];
    if (place === undefined || this.from[place] !== from || this.to[place] !== to || place >= this.count) {
      const ends = from * 0x4000000 + to;
      place = this.places.get(ends);
      if (place === undefined) {
        place = this.count;
        if (place === this.from.length) this.grow();
        this.places.set(ends, place);
        this.from[place] = from;
        this.to[place] = to;
        this.count += 1;
      }
      this.after[this.last] = place;
    }
    this.last = place;
    this.rate[place] = rate;
    this.errors[place] = errors;
    this.p50[place] = p50;
    this.p99[place] = p99;
  }

  /** How an edge is drawn. @param {number} place @param {(node: number) => boolean} isDown */
  style(place, isDown) {
    if (isDown(this.from[place] ?? 0) || isDown(this.to[place] ?? 0)) return STYLES.down;
    const [rate, errors] = [this.rate[place] ?? 0, this.errors[place] ?? 0];
    if (rate < QUIET) return STYLES.quiet;
    const step = Math.min(STYLES.widths - 1, Math.round(2 * (0.6 + 0.9 * Math.log10(1 + rate))));
    const colour = errors > 0.3 ? 2 : errors > 0.01 ? 1 : 0;
    // All of one width lie together, those with errors above.
    return STYLES.first + 3 * step + colour;
  }

  /**
   * Orders all edges by their styles, those without a place left out, and sees which have dots.
   * @param {(node: number) => boolean} isDown @param {number} nodes
   */
  arrange(isDown, nodes) {
    const { begins, order } = this;
    begins.fill(0);
    const { from, to, rate, p50, busy, dots, samples } = this;
    let [busyCount, allDots] = [0, 0];
    for (let edge = 0; edge < this.count; edge += 1) {
      if ((from[edge] ?? 0) >= nodes || (to[edge] ?? 0) >= nodes) continue;
      const next = this.style(edge, isDown) + 1;
      begins[next] = (begins[next] ?? 0) + 1;
      if ((rate[edge] ?? 0) >= QUIET && (p50[edge] ?? 0) > 0) {
        const some = Math.min(MOST_DOTS_OF_AN_EDGE, Math.ceil(Math.log2(1 + (rate[edge] ?? 0))));
        busy[busyCount] = edge;
        dots[busyCount] = some;
        busyCount += 1;
        allDots += some;
      }
    }
    for (let style = 1; style <= STYLES.count; style += 1) begins[style] = (begins[style] ?? 0) + (begins[style - 1] ?? 0);
    const at = begins.slice(0, STYLES.count);
    for (let edge = 0; edge < this.count; edge += 1) {
      if ((from[edge] ?? 0) >= nodes || (to[edge] ?? 0) >= nodes) continue;
      const style = this.style(edge, isDown);
      const place = at[style] ?? 0;
      order[place] = edge;
      at[style] = place + 1;
    }
    // Half of the edges have a lower latency than the usual one, about.
    const some = Math.min(SAMPLES, busyCount);
    for (let n = 0; n < some; n += 1) samples[n] = p50[busy[Math.floor((n * busyCount) / some)] ?? 0] ?? 0;
    samples.subarray(0, some).sort();
    const usual = samples[some >> 1] || 1;
    for (let n = 0; n < busyCount; n += 1) {
      this.takes[n] = Math.min(8, Math.max(0.25, (USUAL * (p50[busy[n] ?? 0] ?? 0)) / usual));
    }
    [this.busyCount, this.allDots] = [busyCount, allDots];
  }

  /** The state of the edge at a place. @param {number} n @returns {EdgeState} */
  at(n) {
    return {
      from: this.from[n] ?? 0, to: this.to[n] ?? 0, rate: this.rate[n] ?? 0, errors: this.errors[n] ?? 0,
      p50: this.p50[n] ?? 0, p99: this.p99[n] ?? 0,
    };
  }

  /** The state of one edge. @param {number} from @param {number} to @returns {EdgeState | undefined} */
  get(from, to) {
    const n = this.places.get(from * 0x4000000 + to);
    return n === undefined ? undefined : this.at(n);
  }

  /** All edges, one object each, for code that does not need to be fast. @returns {Generator<EdgeState>} */
  *values() {
    for (let n = 0; n < this.count; n += 1) yield this.at(n);
  }
}
