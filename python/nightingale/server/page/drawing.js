// The waveform and the spectrogram of a timeline, on two canvases.

import { BANDS, FLOOR, height } from "./spectrum.js";
import { COLUMNS, Timeline } from "./timeline.js";

const QUIETEST_SCALE = 0.25; // a sound below this peak is not blown up to full height
const LOUD = -15; // dB of full scale that gets the last colour; speech has little above
const TICKS = [0.5, 1, 2, 5, 10, 20, 60, 120, 300]; // s between two marks of time
const MOST_TICKS = 7;
const FREQUENCIES = [500, 1000, 2000, 4000, 8000]; // Hz

const still = matchMedia("(prefers-reduced-motion: reduce)");

/** Draws a timeline; `played` is how many seconds of it have been heard. */
export class Drawing {
  constructor(waveform, spectrogram) {
    this.waveform = waveform;
    this.spectrogram = spectrogram;
    this.image = document.createElement("canvas");
    this.image.width = COLUMNS;
    this.image.height = BANDS;
    this.timeline = new Timeline();
    this.played = 0;
    const again = () => {
      this.readColours();
      this.draw(this.timeline, this.played);
    };
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
    new ResizeObserver(again).observe(waveform);
    this.readColours();
  }

  readColours() {
    const style = getComputedStyle(this.waveform);
    const colour = (name) => style.getPropertyValue(`--${name}`);
    this.colours = {
      played: colour("accent"),
      ahead: colour("faint"),
      marks: colour("muted"),
      text: colour("ink"),
      quiet: colour("heat-0"),
    };
    this.font = `12px ${style.fontFamily}`;
    const strip = document.createElement("canvas").getContext("2d");
    const gradient = strip.createLinearGradient(0, 0, 256, 0);
    for (let i = 0; i < 5; i++) gradient.addColorStop(i / 4, colour(`heat-${i}`));
    strip.fillStyle = gradient;
    strip.fillRect(0, 0, 256, 1);
    this.painted = null; // how many hops of the timeline the image shows
    this.palette = new Uint32Array(strip.getImageData(0, 0, 256, 1).data.buffer);
  }

  draw(timeline, played) {
    if (timeline !== this.timeline) this.painted = null;
    this.timeline = timeline;
    this.played = played;
    this.drawWaveform();
    this.drawSpectrogram();
  }

  /** A canvas in CSS pixels, cleared, sharp on any screen. */
  begin(canvas) {
    const { clientWidth: width, clientHeight: height } = canvas;
    const ratio = devicePixelRatio;
    const [across, down] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== across) canvas.width = across;
    if (canvas.height !== down) canvas.height = down;
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.font = this.font;
    return { context, width, height };
  }

  drawWaveform() {
    const { context, width, height: tall } = this.begin(this.waveform);
    const { low, high, used, span, peak } = this.timeline;
    const foot = 20; // for the marks of time
    const middle = (tall - foot) / 2;
    const scale = (middle - 2) / Math.max(peak, QUIETEST_SCALE);
    const pixels = width * devicePixelRatio;
    const edge = (column) => Math.round((column / COLUMNS) * pixels) / devicePixelRatio;
    const heard = still.matches ? used : (this.played / span) * COLUMNS;
    context.fillStyle = this.colours.ahead;
    context.fillRect(0, middle - 0.5, width, 1);
    for (let column = 0; column < used; column++) {
      const top = middle - high[column] * scale;
      const deep = Math.max(1, (high[column] - low[column]) * scale);
      context.fillStyle = column < heard ? this.colours.played : this.colours.ahead;
      context.fillRect(edge(column), top, Math.max(edge(column + 1) - edge(column), 0.5), deep);
    }
    this.markTime(context, width, tall);
  }

  markTime(context, width, tall) {
    const { span } = this.timeline;
    const most = Math.min(MOST_TICKS, width / 60);
    const step = TICKS.find((tick) => span / tick <= most) ?? 600;
    context.fillStyle = this.colours.marks;
    context.textBaseline = "bottom";
    for (let time = 0; time < span; time += step) {
      context.textAlign = time ? "center" : "left";
      context.fillText(`${time} s`, (time / span) * width, tall);
    }
  }

  drawSpectrogram() {
    const { context, width, height: tall } = this.begin(this.spectrogram);
    if (this.painted !== this.timeline.hops) this.paint();
    context.drawImage(this.image, 0, 0, width, tall);
    this.markFrequencies(context, tall);
    if (this.played && !still.matches) {
      context.fillStyle = this.colours.text;
      context.fillRect((this.played / this.timeline.span) * width, 0, 1, tall);
    }
  }

  /** Brings the picture of all levels up to date, a pixel for each. */
  paint() {
    const { levels, used } = this.timeline;
    const small = this.image.getContext("2d");
    const picture = small.createImageData(COLUMNS, BANDS);
    const pixels = new Uint32Array(picture.data.buffer).fill(this.palette[0]);
    for (let column = 0; column < used; column++) {
      for (let band = 0; band < BANDS; band++) {
        const loud = (levels[column * BANDS + band] - FLOOR) / (LOUD - FLOOR);
        const shade = Math.min(255, Math.round(255 * loud));
        pixels[(BANDS - 1 - band) * COLUMNS + column] = this.palette[shade];
      }
    }
    small.putImageData(picture, 0, 0);
    this.painted = this.timeline.hops;
  }

  markFrequencies(context, tall) {
    context.fillStyle = this.colours.text;
    context.strokeStyle = this.colours.quiet;
    context.lineWidth = 3;
    context.lineJoin = "round";
    context.textAlign = "left";
    context.textBaseline = "middle";
    for (const hertz of FREQUENCIES) {
      const label = hertz < 1000 ? `${hertz} Hz` : `${hertz / 1000} kHz`;
      const y = tall * (1 - height(hertz));
      context.strokeText(label, 6, y);
      context.fillText(label, 6, y);
    }
  }

  /** Says in words what the pictures show. */
  describe(seconds) {
    const { peak, loudest } = this.timeline;
    const length = `${seconds.toFixed(1)} seconds of sound`;
    const decibels = peak ? `${(20 * Math.log10(peak)).toFixed(0)} dB of full scale` : "silence";
    const range = `from 0 to 12 kHz, loudest near ${Math.round(loudest)} Hz`;
    this.waveform.setAttribute("aria-label", `Waveform: ${length}, its peak at ${decibels}`);
    this.spectrogram.setAttribute("aria-label", `Spectrogram: ${length}, ${range}`);
  }
}
