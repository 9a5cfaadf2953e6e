// Files of the latest speech.

import { attempt, element, tell } from "./forms.js";
import { wavOf } from "./sound.js";

const FORMATS = { wav: "WAV", mp3: "MP3", opus: "Opus" };

export function enableDownloads(enabled) {
  for (const format of Object.keys(FORMATS)) element(`download-${format}`).disabled = !enabled;
}

/** current: gives the latest speech. */
export function prepareDownloads(current) {
  for (const format of Object.keys(FORMATS)) {
    element(`download-${format}`).addEventListener("click", () => {
      attempt("speech", () => download(current(), format));
    });
  }
}

async function download(speech, format) {
  if (format === "wav") {
    save(wavOf(speech.chunks), `${speech.name}.wav`);
    return;
  }
  const button = element(`download-${format}`);
  button.disabled = true;
  tell("speech-status", `Making the ${FORMATS[format]} file…`);
  let outcome = "";
  try {
    save(await speech.encoded(format), `${speech.name}.${format}`);
    outcome = `The ${FORMATS[format]} file is ready.`;
  } finally {
    button.disabled = false;
    tell("speech-status", outcome);
  }
}

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000); // some browsers read it later
}

/** The first words of a text, as a file's name. */
export function fileName(text) {
  const words = text.match(/[\p{L}\p{M}\p{N}]+/gu) ?? ["nightingale"];
  return words.slice(0, 6).join("-").toLowerCase().slice(0, 48);
}
