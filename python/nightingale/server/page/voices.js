// The list of voices: choosing, adding and deleting.

import * as api from "./api.js";
import { attempt, element, onSubmit, tell } from "./forms.js";

const select = element("voice");
let known = [];

export function chosenVoice() {
  return select.value;
}

/** Asks the server for its voices; `chosen` is selected where it is among them. */
export async function loadVoices(chosen = select.value) {
  known = await api.voices();
  select.replaceChildren(...known.map(({ id, name }) => new Option(name, id)));
  if (known.some(({ id }) => id === chosen)) select.value = chosen;
  offerDeletion();
}

function offerDeletion() {
  const voice = known.find(({ id }) => id === select.value);
  element("delete-voice").hidden = voice?.source !== "folder";
}

async function upload() {
  const form = element("upload-form");
  if (form.hasAttribute("aria-busy")) return;
  form.setAttribute("aria-busy", "true");
  let outcome = "";
  try {
    tell("upload-status", "Making a voice of the recording…");
    const name = element("voice-name").value.trim();
    const voice = await api.addVoice(name, element("recording").files[0]);
    await loadVoices(voice.id);
    form.reset();
    outcome = `The voice ${voice.name} was added and is chosen.`;
  } finally {
    tell("upload-status", outcome);
    form.removeAttribute("aria-busy");
  }
}

async function remove() {
  const { id, name } = known.find((voice) => voice.id === select.value);
  element("delete-question").textContent = `Delete the voice ${name}? This cannot be undone.`;
  const dialog = element("delete-dialog");
  dialog.returnValue = "keep";
  dialog.showModal();
  await new Promise((resolve) => dialog.addEventListener("close", resolve, { once: true }));
  if (dialog.returnValue !== "delete") return;
  await api.deleteVoice(id);
  await loadVoices();
  select.focus();
  tell("speech-status", `The voice ${name} was deleted.`);
}

export function prepareVoices() {
  select.addEventListener("change", offerDeletion);
  element("delete-voice").addEventListener("click", () => attempt("speech", remove));
  onSubmit("upload", upload);
}
