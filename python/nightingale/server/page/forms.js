// What the forms of the page do alike: begin an action, and tell what becomes of it.

import { Refusal } from "./api.js";

export const element = (id) => document.getElementById(id);

/** Changes a text only where it differs, as a screen reader reads out again what is set again. */
export function tell(id, words) {
  if (element(id).textContent !== words) element(id).textContent = words;
}

/** Runs an action of the form "speech", "upload", "convert" or "key"; a refusal is told there. */
export async function attempt(form, action) {
  tell(`${form}-error`, "");
  try {
    await action();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    if (error.status === 401) askForKey(error.message);
    else tell(`${form}-error`, error.message);
  }
}

/** Without the key nothing else on the page works, so that nothing else is shown. */
export function lock(locked) {
  element("key-form").hidden = !locked;
  for (const part of document.querySelectorAll(".stage, .side")) part.hidden = locked;
}

function askForKey(words) {
  lock(true);
  element("key").focus();
  tell("key-error", words);
}

export function onSubmit(form, action) {
  element(`${form}-form`).addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(form, action);
  });
}
