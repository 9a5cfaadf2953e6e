// Plays sound while it comes: the first chunk at once, and no gap between two chunks. What has come
// can be paused, and played from any place again.
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

/** One sound, pushed chunk by chunk. Places and times are counted in samples of the context. */
class Playback {
  constructor(context, destination) {
    this.context = context;
    this.destination = destination;
    this.chunks = [];
    this.length = 0; // samples that have come
    this.paused = false;
    this.finished = false;
    this.ended = new Promise((resolve) => {
      this.resolve = resolve;
    });
    this.run = null;
    this.start(0);
  }

  get now() {
    return Math.ceil(this.context.currentTime * this.context.sampleRate);
  }

  /** The place in the sound that is heard now. */
  get position() {
    return this.paused ? this.run.from : this.run.position(this.now);
  }

  get over() {
    return this.finished && this.position >= this.length;
  }

  get playing() {
    return !this.paused && !this.over;
  }

  push(samples) {
    this.chunks.push(samples);
    this.length += samples.length;
    this.schedule();
  }

  /** No more is to come. `ended` is fulfilled when all has been heard. */
  finish() {
    this.finished = true;
    this.schedule();
    this.settle();
  }

  /** Silence, now, and nothing more is to come; what has come can be played again. */
  stop() {
    this.finished = true;
    this.pause();
    this.resolve();
  }

  pause() {
    const { position } = this;
    this.paused = true;
    this.start(position);
  }

  /** Goes on, or begins again after the end. */
  play() {
    const place = this.position >= this.length && this.finished ? 0 : this.position;
    this.paused = false;
    this.start(place);
  }

  seek(place) {
    this.start(Math.min(Math.max(0, Math.round(place)), this.length));
  }

  /** Ends what sounds, and goes on at a place unless it is paused. */
  start(place) {
    this.run?.stop();
    this.run = new Run(this.context, this.destination, place, () => this.settle());
    this.schedule();
    this.settle();
  }

  settle() {
    if (this.finished && !this.paused && !this.run.sources.size && this.run.scheduled >= this.length) {
      this.resolve();
    }
  }

  schedule() {
    if (this.paused) return;
    const { run } = this;
    const rate = this.context.sampleRate;
    const earliest = this.now + Math.round(LEAD * rate);
    if (run.end < earliest) {
      const wanted = run.scheduled && !this.finished ? CUSHION * rate : 0;
      if (this.length - run.scheduled < wanted) return;
      run.end = earliest;
    }
    let begin = 0; // of a chunk
    for (const chunk of this.chunks) {
      const end = begin + chunk.length;
      if (end > run.scheduled) run.append(chunk.subarray(run.scheduled - begin));
      begin = end;
    }
  }
}

/** What sounds from one place on, until the sound is paused or goes on elsewhere. */
class Run {
  constructor(context, destination, from, ended) {
    this.context = context;
    this.gain = context.createGain();
    this.gain.connect(destination);
    this.ended = ended;
    this.from = from;
    this.scheduled = from; // the place up to which the sound has its time
    this.end = 0; // when that will have sounded
    this.sources = new Set();
  }

  position(now) {
    return Math.min(this.scheduled, Math.max(this.from, this.scheduled - (this.end - now)));
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
      this.ended();
    });
    source.start(this.end / this.context.sampleRate);
    this.sources.add(source);
    this.end += samples.length;
    this.scheduled += samples.length;
  }

  stop() {
    const { currentTime } = this.context;
    this.gain.gain.setValueAtTime(1, currentTime);
    this.gain.gain.linearRampToValueAtTime(0, currentTime + FADE);
    for (const source of this.sources) source.stop(currentTime + FADE);
    setTimeout(() => this.gain.disconnect(), 1000 * FADE + 500);
  }
}
