// The options of speech, as the server describes them: sliders and numbers.

import * as api from "./api.js";
import { element } from "./forms.js";

let controls = []; // as the server describes them, each with its `input`

/** The row of one option: label, value, input and hint. */
function row(control) {
  const { name, label, help, minimum, maximum, step, unset } = control;
  const slider = step !== null;
  const found = document.createElement("div");
  found.className = slider ? "slider" : "field";
  const caption = document.createElement("label");
  caption.htmlFor = name;
  caption.textContent = label;
  const input = document.createElement("input");
  input.id = name;
  input.setAttribute("aria-describedby", `${name}-hint`);
  const hint = document.createElement("p");
  hint.id = `${name}-hint`;
  hint.className = "hint";
  hint.textContent = sentence(help + (isUnset(control) ? `; until it is moved, ${unset}` : ""));
  if (slider) {
    Object.assign(input, { type: "range", min: minimum, max: maximum, step });
    const value = document.createElement("span");
    value.id = `${name}-value`;
    value.className = "value";
    value.ariaHidden = "true";
    found.append(caption, value, input, hint);
    input.addEventListener("input", () => {
      control.moved = true;
      show(control);
    });
  } else {
    // Not of type number, whose value would not be exact beyond 2^53.
    Object.assign(input, { type: "text", inputMode: "numeric", autocomplete: "off" });
    found.append(caption, input, hint);
  }
  control.input = input;
  return found;
}

const sentence = (words) => `${words[0].toUpperCase()}${words.slice(1)}.`;

/** Whether the model or the voice decides until the reader does. */
const isUnset = ({ default: value }) => value === null;

function show(control) {
  if (control.step === null) return;
  const own = isUnset(control) && !control.moved;
  const shown = own ? control.unset : Number(control.input.value).toFixed(2);
  element(`${control.name}-value`).textContent = shown;
  control.input.setAttribute("aria-valuetext", shown);
}

function reset() {
  for (const control of controls) {
    control.moved = false;
    control.input.value = control.default ?? control.fallback;
    show(control);
  }
}

/** As the server takes them; what was not moved and has no value of its own is left out. */
export function settings() {
  const given = controls.filter((control) => control.moved || !isUnset(control));
  return Object.fromEntries(
    given.map(({ name, step, input }) => [
      name,
      step === null ? BigInt(input.value) : Number(input.value),
    ]),
  );
}

/** What is wrong with a number, and its input; no words where all are right. */
export function numberFault() {
  for (const { label, minimum, maximum, step, input } of controls) {
    if (step !== null) continue;
    const digits = /^\d+$/.test(input.value);
    if (!digits || BigInt(input.value) < BigInt(minimum) || BigInt(input.value) > BigInt(maximum)) {
      const name = label.toLowerCase();
      return [`The ${name} must be a whole number from ${minimum} to ${maximum}.`, input];
    }
  }
  return ["", null];
}

/** The inputs of numbers, which can be wrong. */
export function numberInputs() {
  return controls.filter(({ step }) => step === null).map(({ input }) => input);
}

export async function prepareSettings() {
  controls = await api.options();
  element("options").replaceChildren(...controls.map(row));
  element("reset").addEventListener("click", reset);
  reset();
}
