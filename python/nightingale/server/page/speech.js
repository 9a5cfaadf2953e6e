// One speech, or one conversion: from the click over the events that come to the last sound.

import * as api from "./api.js";
import { eventsOf, SAMPLE_RATE, samplesOf, toFloat } from "./sound.js";
import { Timeline } from "./timeline.js";

const EVENTS = { response_format: "pcm", stream_format: "sse" };

export class Speech {
  /** ask: sends the request with these formats and an AbortSignal; gives the response. text: what
   *  is said, "" for a conversion. name: of its files. */
  constructor(ask, text, name, player) {
    this.ask = ask;
    this.text = text;
    this.name = name;
    this.playback = player.begin();
    this.timeline = new Timeline();
    this.chunks = []; // Int16Arrays, as they came
    this.words = []; // [text, start, end, source_start, source_end]
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

  /** Seconds of the sound before what is heard now. */
  get position() {
    return this.playback.position / SAMPLE_RATE;
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

  /** All of it as a file of another format: the same request again, which gives the same sound. */
  async encoded(format) {
    const response = await this.ask({ response_format: format }, undefined);
    return response.blob();
  }

  async receive() {
    const response = await this.ask(EVENTS, this.hangUp.signal);
    const points = response.headers.get("Nightingale-Unspoken")?.split(" ") ?? [];
    this.unspoken = points.map((point) => String.fromCodePoint(parseInt(point.slice(2), 16)));
    let done = false;
    try {
      for await (const event of eventsOf(response.body)) {
        if (event.type === "error") throw new api.Refusal(api.sentence(event.error.message), 0);
        done ||= event.type === "speech.audio.done";
        this.take(event);
      }
    } catch (error) {
      if (this.cancelled || error instanceof api.Refusal) throw error;
    }
    if (!done) {
      const seconds = this.seconds.toFixed(1);
      throw new api.Refusal(`The connection broke after ${seconds} s of sound.`, 0);
    }
  }

  take({ audio, words = [] }) {
    this.words.push(...words);
    if (!audio) return;
    this.firstAudio ??= this.elapsed;
    const chunk = samplesOf(audio);
    this.chunks.push(chunk);
    this.seconds += chunk.length / SAMPLE_RATE;
    const samples = toFloat(chunk);
    this.playback.push(samples);
    this.timeline.push(samples);
  }
}
