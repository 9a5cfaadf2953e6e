// An AudioWorklet that passes on what the microphone hears, as 16-bit samples.

class Capture extends AudioWorkletProcessor {
  process([[samples]]) {
    if (samples) {
      this.port.postMessage(Int16Array.from(samples, (x) => 32767 * Math.min(Math.max(x, -1), 1)));
    }
    return true;
  }
}

registerProcessor("capture", Capture);
