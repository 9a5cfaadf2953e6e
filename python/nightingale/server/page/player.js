// Plays sound while it comes: the first chunk at once, and no gap between two chunks.
//
// The chunks are buffers scheduled end to end and not an AudioWorklet's feed, as browsers have
// worklets on https and localhost alone: a phone that reaches the server by its address has none.

const LEAD = 0.03; // s from scheduling to sounding; a start nearer than that may come late
const CUSHION = 0.4; // s of sound to gather after a gap, so that one gap does not become ten
const FADE = 0.02; // s; a sound cut off at full height clicks

/** The way of the sound from a playback to the speakers. */
export class Player {
  constructor(context) {
    this.context = context;
    this.analyser = context.createAnalyser();
    this.analyser.connect(context.destination);
    this.heard = new Float32Array(this.analyser.fftSize);
  }

  begin() {
    return new Playback(this.context, this.analyser);
  }

  /** How loud it is now, 0 to 1. */
  level() {
    this.analyser.getFloatTimeDomainData(this.heard);
    return Math.sqrt(this.heard.reduce((sum, x) => sum + x * x, 0) / this.heard.length);
  }
}

/** One sound, pushed chunk by chunk. Times are counted in samples of the context. */
class Playback {
  constructor(context, destination) {
    this.context = context;
    this.gain = context.createGain();
    this.gain.connect(destination);
    this.sources = new Set();
    this.held = []; // chunks that wait for more of them
    this.scheduled = 0; // samples of the sound that have their time
    this.end = 0; // when they will have sounded
    this.finished = false;
    this.ended = new Promise((resolve) => {
      this.resolve = resolve;
    });
  }

  get now() {
    return Math.ceil(this.context.currentTime * this.context.sampleRate);
  }

  /** Samples of the sound that have been heard. */
  get position() {
    return Math.min(this.scheduled, Math.max(0, this.scheduled - (this.end - this.now)));
  }

  push(samples) {
    this.held.push(samples);
    this.schedule();
  }

  /** No more is to come. `ended` is fulfilled when all has been heard. */
  finish() {
    this.finished = true;
    this.schedule();
    this.settle();
  }

  /** Silence, now. */
  stop() {
    const { currentTime } = this.context;
    this.held = [];
    this.finished = true;
    this.gain.gain.setValueAtTime(1, currentTime);
    this.gain.gain.linearRampToValueAtTime(0, currentTime + FADE);
    for (const source of this.sources) source.stop(currentTime + FADE);
    this.settle();
    this.resolve();
  }

  settle() {
    if (!this.finished || this.sources.size) return;
    this.gain.disconnect();
    this.resolve();
  }

  schedule() {
    const rate = this.context.sampleRate;
    const earliest = this.now + Math.round(LEAD * rate);
    if (this.end < earliest) {
      const gathered = this.held.reduce((sum, chunk) => sum + chunk.length, 0);
      const wanted = this.scheduled && !this.finished ? CUSHION * rate : 0;
      if (gathered < wanted) return;
      this.end = earliest;
    }
    for (const samples of this.held.splice(0)) this.append(samples);
  }

  append(samples) {
    const buffer = this.context.createBuffer(1, samples.length, this.context.sampleRate);
    buffer.copyToChannel(samples, 0);
    const source = this.context.createBufferSource();
    source.buffer = buffer;
    source.connect(this.gain);
    source.addEventListener("ended", () => {
      source.disconnect();
      this.sources.delete(source);
      this.settle();
    });
    source.start(this.end / this.context.sampleRate);
    this.sources.add(source);
    this.end += samples.length;
    this.scheduled += samples.length;
  }
}
