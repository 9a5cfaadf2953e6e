// One speech: from the click over the bytes that come to the last sound.

import * as api from "./api.js";
import { SAMPLE_RATE, samplesOf, toFloat } from "./sound.js";
import { Timeline } from "./timeline.js";

export class Speech {
  constructor(settings, player) {
    this.settings = settings;
    this.playback = player.begin();
    this.timeline = new Timeline();
    this.chunks = []; // Int16Arrays, as they came
    this.seconds = 0;
    this.unspoken = []; // characters that the model cannot speak
    this.hangUp = new AbortController();
    this.clicked = performance.now();
    this.firstAudio = null; // ms after the click
    this.received = null; // ms after the click, when no more is to come
  }

  get elapsed() {
    return this.received ?? performance.now() - this.clicked;
  }

  get realTimeFactor() {
    return this.elapsed / 1000 / this.seconds;
  }

  get cancelled() {
    return this.hangUp.signal.aborted;
  }

  /** Fulfilled when all has been heard or `cancel` was called. */
  async run() {
    try {
      await this.receive();
    } catch (error) {
      if (!this.cancelled) throw error;
    } finally {
      this.received = this.elapsed;
      this.playback.finish();
      await this.playback.ended;
    }
  }

  cancel() {
    this.hangUp.abort();
    this.playback.stop();
  }

  async receive() {
    const response = await api.speech(this.settings, this.hangUp.signal);
    const points = response.headers.get("Nightingale-Unspoken")?.split(" ") ?? [];
    this.unspoken = points.map((point) => String.fromCodePoint(parseInt(point.slice(2), 16)));
    try {
      for await (const chunk of samplesOf(response.body)) this.take(chunk);
    } catch (error) {
      if (this.cancelled) throw error;
      const seconds = this.seconds.toFixed(1);
      throw new api.Refusal(`The connection broke after ${seconds} s of sound.`, 0);
    }
  }

  take(chunk) {
    this.firstAudio ??= this.elapsed;
    this.chunks.push(chunk);
    this.seconds += chunk.length / SAMPLE_RATE;
    const samples = toFloat(chunk);
    this.playback.push(samples);
    this.timeline.push(samples);
  }
}
