// 16-bit mono sound: from the events of a response, to float, into a WAV file.

export const SAMPLE_RATE = 24000;

/** Yields the server-sent events of a stream of bytes that may be split anywhere. */
export async function* eventsOf(body) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const events = (rest + decoder.decode(value, { stream: true })).split("\n\n");
    rest = events.pop();
    for (const event of events) yield JSON.parse(event.slice("data: ".length));
  }
}

/** The samples of an event's base64. */
export function samplesOf(audio) {
  const bytes = Uint8Array.from(atob(audio), (character) => character.charCodeAt(0));
  return new Int16Array(bytes.buffer);
}

export function toFloat(samples) {
  return Float32Array.from(samples, (sample) => sample / 32768);
}

/** A WAV file of all chunks, which are Int16Arrays. */
export function wavOf(chunks, rate = SAMPLE_RATE) {
  const length = 2 * chunks.reduce((sum, chunk) => sum + chunk.length, 0);
  const header = new DataView(new ArrayBuffer(44));
  const word = (at, letters) => {
    for (let i = 0; i < 4; i++) header.setUint8(at + i, letters.charCodeAt(i));
  };
  word(0, "RIFF");
  header.setUint32(4, 36 + length, true);
  word(8, "WAVE");
  word(12, "fmt ");
  header.setUint32(16, 16, true);
  header.setUint16(20, 1, true); // integers
  header.setUint16(22, 1, true); // mono
  header.setUint32(24, rate, true);
  header.setUint32(28, 2 * rate, true);
  header.setUint16(32, 2, true);
  header.setUint16(34, 16, true);
  word(36, "data");
  header.setUint32(40, length, true);
  return new Blob([header, ...chunks], { type: "audio/wav" });
}
