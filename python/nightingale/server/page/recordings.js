// A recording for a form: a file, or what the microphone hears.

import { Refusal } from "./api.js";
import { attempt, element, tell } from "./forms.js";
import { wavOf } from "./sound.js";

const LONGEST = 60; // s; of longer ones a voice would use no more

/** What the microphone hears from `start` to `stop`, as a WAV file. */
class Microphone {
  constructor() {
    this.chunks = [];
    this.samples = 0;
  }

  get seconds() {
    return this.context ? this.samples / this.context.sampleRate : 0;
  }

  async start() {
    const audio = { echoCancellation: false, noiseSuppression: false, autoGainControl: false };
    try {
      this.stream = await navigator.mediaDevices.getUserMedia({ audio });
    } catch (error) {
      throw new Refusal(reason(error), 0);
    }
    this.context = new AudioContext();
    await this.context.audioWorklet.addModule(new URL("capture.js", import.meta.url));
    const capture = new AudioWorkletNode(this.context, "capture", { numberOfOutputs: 0 });
    capture.port.onmessage = ({ data }) => {
      this.chunks.push(data);
      this.samples += data.length;
    };
    this.context.createMediaStreamSource(this.stream).connect(capture);
  }

  async stop() {
    for (const track of this.stream.getTracks()) track.stop();
    await this.context.close();
    return new File([wavOf(this.chunks, this.context.sampleRate)], "microphone.wav", {
      type: "audio/wav",
    });
  }
}

function reason({ name, message }) {
  if (name === "NotAllowedError") return "The browser does not let this page use the microphone.";
  if (name === "NotFoundError") return "There is no microphone.";
  return `The microphone cannot be used: ${message}`;
}

/** The recording of a form "upload" or "convert", whose inputs have ids that begin with `id`. */
export class RecordingInput {
  constructor(form, id) {
    this.id = id;
    this.input = element(id);
    this.button = element(`${id}-record`);
    this.preview = element(`${id}-preview`);
    this.microphone = null; // while it records
    this.recorded = null;
    this.button.hidden = !navigator.mediaDevices; // on plain http beyond localhost
    this.button.addEventListener("click", () => attempt(form, () => this.toggle()));
    this.input.addEventListener("change", () => this.keep(null));
    element(`${form}-form`).addEventListener("reset", () => this.keep(null));
  }

  get file() {
    return this.recorded ?? this.input.files[0];
  }

  async toggle() {
    if (this.microphone) {
      await this.end();
      return;
    }
    const microphone = new Microphone();
    this.button.disabled = true;
    try {
      await microphone.start();
    } finally {
      this.button.disabled = false;
    }
    this.microphone = microphone;
    this.button.textContent = "Stop";
    this.button.classList.add("recording");
    this.tick();
  }

  tick() {
    if (!this.microphone) return;
    const { seconds } = this.microphone;
    tell(`${this.id}-clock`, `${seconds.toFixed(0)} s`);
    if (seconds >= LONGEST) this.end();
    else setTimeout(() => this.tick(), 200);
  }

  async end() {
    const { microphone } = this;
    this.microphone = null;
    this.button.textContent = "Record";
    this.button.classList.remove("recording");
    tell(`${this.id}-clock`, `${microphone.seconds.toFixed(1)} s recorded`);
    this.input.value = "";
    this.keep(await microphone.stop());
  }

  /** Takes what was recorded in place of a file; null: nothing. */
  keep(recorded) {
    this.recorded = recorded;
    this.input.required = !recorded;
    if (this.preview.src) URL.revokeObjectURL(this.preview.src);
    this.preview.hidden = !recorded;
    if (recorded) {
      this.preview.src = URL.createObjectURL(recorded);
    } else {
      this.preview.removeAttribute("src");
      tell(`${this.id}-clock`, "");
    }
  }
}
