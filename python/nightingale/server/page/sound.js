// 16-bit mono sound: from the body of a response, to float, into a WAV file.

export const SAMPLE_RATE = 24000;

/** Yields Int16Arrays of a stream of bytes that may be split anywhere, also inside a sample. */
export async function* samplesOf(body) {
  const reader = body.getReader();
  let odd = new Uint8Array(0);
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const bytes = new Uint8Array(odd.length + value.length);
    bytes.set(odd);
    bytes.set(value, odd.length);
    const whole = bytes.length - (bytes.length % 2);
    odd = bytes.slice(whole);
    if (whole) yield new Int16Array(bytes.buffer, 0, whole / 2);
  }
}

export function toFloat(samples) {
  return Float32Array.from(samples, (sample) => sample / 32768);
}

/** A WAV file of all chunks. */
export function wavOf(chunks) {
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
  header.setUint32(24, SAMPLE_RATE, true);
  header.setUint32(28, 2 * SAMPLE_RATE, true);
  header.setUint16(32, 2, true);
  header.setUint16(34, 16, true);
  word(36, "data");
  header.setUint32(40, length, true);
  return new Blob([header, ...chunks], { type: "audio/wav" });
}
