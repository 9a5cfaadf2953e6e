// What the pictures show of a sound: columns of equal time, which double when the sound outgrows
// them, so that a long sound takes as much memory and drawing as a short one.

import { SAMPLE_RATE } from "./sound.js";
import { BANDS, FLOOR, WINDOW, frequency, spectrum } from "./spectrum.js";

export const COLUMNS = 600;
const HOP = 240; // samples, 10 ms: what a column holds at first

export class Timeline {
  constructor() {
    this.hopsInColumn = 1;
    this.hops = 0;
    this.low = new Float32Array(COLUMNS);
    this.high = new Float32Array(COLUMNS);
    this.levels = new Float32Array(COLUMNS * BANDS).fill(FLOOR); // dB, column by column
    this.latest = new Float32Array(WINDOW);
    this.filled = 0; // of the hop at the end of `latest`
  }

  /** What all columns together hold, in seconds. */
  get span() {
    return (COLUMNS * this.hopsInColumn * HOP) / SAMPLE_RATE;
  }

  /** The columns that hold sound. */
  get used() {
    return Math.ceil(this.hops / this.hopsInColumn);
  }

  get peak() {
    return this.high.reduce((most, x, i) => Math.max(most, x, -this.low[i]), 0);
  }

  /** The frequency in Hz that is loudest over all columns. */
  get loudest() {
    const sums = new Float64Array(BANDS);
    for (let i = 0; i < this.used * BANDS; i++) sums[i % BANDS] += 10 ** (this.levels[i] / 10);
    return frequency((sums.indexOf(Math.max(...sums)) + 0.5) / BANDS);
  }

  push(samples) {
    for (let at = 0; at < samples.length; ) {
      const part = samples.subarray(at, at + HOP - this.filled);
      this.latest.set(part, WINDOW - HOP + this.filled);
      at += part.length;
      this.filled += part.length;
      if (this.filled === HOP) this.hop();
    }
  }

  hop() {
    if (this.hops === COLUMNS * this.hopsInColumn) this.double();
    const column = Math.floor(this.hops / this.hopsInColumn);
    for (const x of this.latest.subarray(WINDOW - HOP)) {
      this.low[column] = Math.min(this.low[column], x);
      this.high[column] = Math.max(this.high[column], x);
    }
    const levels = this.levels.subarray(column * BANDS, (column + 1) * BANDS);
    spectrum(this.latest).forEach((level, band) => {
      levels[band] = Math.max(levels[band], level);
    });
    this.latest.copyWithin(0, HOP);
    this.filled = 0;
    this.hops += 1;
  }

  double() {
    const { low, high, levels } = this;
    for (let column = 0; column < COLUMNS / 2; column++) {
      low[column] = Math.min(low[2 * column], low[2 * column + 1]);
      high[column] = Math.max(high[2 * column], high[2 * column + 1]);
      for (let band = 0; band < BANDS; band++) {
        const pair = 2 * column * BANDS + band;
        levels[column * BANDS + band] = Math.max(levels[pair], levels[pair + BANDS]);
      }
    }
    low.fill(0, COLUMNS / 2);
    high.fill(0, COLUMNS / 2);
    levels.fill(FLOOR, (COLUMNS / 2) * BANDS);
    this.hopsInColumn *= 2;
  }
}
