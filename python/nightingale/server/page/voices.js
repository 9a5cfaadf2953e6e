// The list of voices: choosing, adding and deleting.

import * as api from "./api.js";
import { attempt, element, onSubmit, tell } from "./forms.js";
import { RecordingInput } from "./recordings.js";

const select = element("voice");
let known = [];
let recording = null;

export function chosenVoice() {
  return select.value;
}

/** Asks the server for its voices; `chosen` is selected where it is among them. languages: names
 *  by code. */
export async function loadVoices(languages, chosen = select.value) {
  known = await api.voices();
  select.replaceChildren(...grouped(languages));
  if (known.some(({ id }) => id === chosen)) select.value = chosen;
  offerDeletion();
}

/** The voices that are native in no language, then a group for each language, then the user's. */
function grouped(languages) {
  const groups = new Map();
  for (const voice of known) {
    const name = voice.source === "folder" ? "Added" : (languages[voice.language] ?? "");
    groups.set(name, [...(groups.get(name) ?? []), voice]);
  }
  const plain = groups.get("") ?? [];
  const added = groups.get("Added") ?? [];
  groups.delete("");
  groups.delete("Added");
  const named = [...groups].sort(([a], [b]) => a.localeCompare(b));
  if (added.length) named.push(["Added", added]);
  return [...plain.map(option), ...named.map(([name, voices]) => group(name, voices))];
}

function group(name, voices) {
  const found = document.createElement("optgroup");
  found.label = name;
  found.append(...voices.map(option));
  return found;
}

const option = ({ id, name }) => new Option(name, id);

/** Chooses a native voice of a language, unless the chosen one is native or was added. preferred:
 *  the id of the one that the model prefers, if any. */
export function preferNative(language, preferred) {
  const chosen = known.find(({ id }) => id === select.value);
  if (!chosen || chosen.source === "folder" || chosen.language === language) return;
  const natives = known.filter((voice) => voice.source === "model" && voice.language === language);
  const native = natives.find(({ id }) => id === preferred) ?? natives[0];
  if (native) select.value = native.id;
  offerDeletion();
}

function offerDeletion() {
  const voice = known.find(({ id }) => id === select.value);
  element("delete-voice").hidden = voice?.source !== "folder";
}

async function upload(languages) {
  const form = element("upload-form");
  if (form.hasAttribute("aria-busy")) return;
  form.setAttribute("aria-busy", "true");
  let outcome = "";
  try {
    tell("upload-status", "Making a voice of the recording…");
    const name = element("voice-name").value.trim();
    const voice = await api.addVoice(name, recording.file);
    await loadVoices(languages(), voice.id);
    form.reset();
    outcome = `The voice ${voice.name} was added and is chosen.`;
  } finally {
    tell("upload-status", outcome);
    form.removeAttribute("aria-busy");
  }
}

async function remove(languages) {
  const { id, name } = known.find((voice) => voice.id === select.value);
  element("delete-question").textContent = `Delete the voice ${name}? This cannot be undone.`;
  const dialog = element("delete-dialog");
  dialog.returnValue = "keep";
  dialog.showModal();
  await new Promise((resolve) => dialog.addEventListener("close", resolve, { once: true }));
  if (dialog.returnValue !== "delete") return;
  await api.deleteVoice(id);
  await loadVoices(languages());
  select.focus();
  tell("speech-status", `The voice ${name} was deleted.`);
}

/** languages: gives their names by code. */
export function prepareVoices(languages) {
  recording = new RecordingInput("upload", "recording");
  select.addEventListener("change", offerDeletion);
  element("delete-voice").addEventListener("click", () => attempt("speech", () => remove(languages)));
  onSubmit("upload", () => upload(languages));
}
