// The spectrum of a window of sound, in bands of the mel scale.

import { SAMPLE_RATE } from "./sound.js";

export const WINDOW = 1024; // samples, a power of two
export const BANDS = 96;
export const FLOOR = -90; // dB of full scale

const hann = Float64Array.from(
  { length: WINDOW },
  (_, i) => 0.5 - 0.5 * Math.cos((2 * Math.PI * i) / WINDOW),
);
const cosines = Float64Array.from({ length: WINDOW / 2 }, (_, i) =>
  Math.cos((2 * Math.PI * i) / WINDOW),
);
const sines = Float64Array.from({ length: WINDOW / 2 }, (_, i) =>
  Math.sin((2 * Math.PI * i) / WINDOW),
);
const real = new Float64Array(WINDOW);
const imaginary = new Float64Array(WINDOW);

const mel = (hertz) => 2595 * Math.log10(1 + hertz / 700);
const TOP = mel(SAMPLE_RATE / 2);

/** Where a frequency lies between the bottom, 0, and the top, 1. */
export function height(hertz) {
  return mel(hertz) / TOP;
}

/** The frequency in Hz at a height. */
export function frequency(heightInPicture) {
  return 700 * (10 ** ((heightInPicture * TOP) / 2595) - 1);
}

/** In place: the discrete Fourier transform of `real` and `imaginary`, by radix 2. */
function transform() {
  for (let i = 1, j = 0; i < WINDOW; i++) {
    let bit = WINDOW >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j |= bit;
    if (i < j) {
      [real[i], real[j]] = [real[j], real[i]];
      [imaginary[i], imaginary[j]] = [imaginary[j], imaginary[i]];
    }
  }
  for (let size = 2; size <= WINDOW; size *= 2) {
    const half = size / 2;
    const stride = WINDOW / size;
    for (let start = 0; start < WINDOW; start += size) {
      for (let k = 0; k < half; k++) {
        const cosine = cosines[k * stride];
        const sine = sines[k * stride];
        const a = start + k;
        const b = a + half;
        const x = real[b] * cosine + imaginary[b] * sine;
        const y = imaginary[b] * cosine - real[b] * sine;
        real[b] = real[a] - x;
        imaginary[b] = imaginary[a] - y;
        real[a] += x;
        imaginary[a] += y;
      }
    }
  }
}

/** The loudest of each band, in dB of a full-scale sine, low to high: Float32Array[BANDS]. */
export function spectrum(samples) {
  for (let i = 0; i < WINDOW; i++) real[i] = samples[i] * hann[i];
  imaginary.fill(0);
  transform();
  const levels = new Float32Array(BANDS);
  for (let band = 0; band < BANDS; band++) {
    const [first, last] = BINS[band];
    let loudest = 0;
    for (let bin = first; bin <= last; bin++) {
      loudest = Math.max(loudest, real[bin] ** 2 + imaginary[bin] ** 2);
    }
    // A full-scale sine stands at a quarter of the window's length.
    levels[band] = Math.max(FLOOR, 10 * Math.log10(loudest / (WINDOW / 4) ** 2));
  }
  return levels;
}

const BINS = Array.from({ length: BANDS }, (_, band) => {
  const bin = (at) => Math.round((frequency(at / BANDS) * WINDOW) / SAMPLE_RATE);
  const first = bin(band);
  return [first, Math.max(first, Math.min(bin(band + 1) - 1, WINDOW / 2))];
});
