// The sliders and the seed.

import { element } from "./forms.js";

const SLIDERS = ["speed", "temperature", "cfg_weight", "exaggeration"];
const VOICES_OWN = "the voice's own";

let exaggerationMoved = false;

function show(slider) {
  const own = slider.id === "exaggeration" && !exaggerationMoved;
  const shown = own ? VOICES_OWN : Number(slider.value).toFixed(2);
  element(`${slider.id}-value`).textContent = shown;
  slider.setAttribute("aria-valuetext", shown);
}

function reset() {
  exaggerationMoved = false;
  for (const input of [...SLIDERS.map(element), element("seed")]) input.value = input.defaultValue;
  SLIDERS.map(element).forEach(show);
}

/** As the server takes them; the exaggeration is the voice's unless its slider was moved. */
export function settings() {
  const values = Object.fromEntries(SLIDERS.map((name) => [name, Number(element(name).value)]));
  if (!exaggerationMoved) delete values.exaggeration;
  return { ...values, seed: Number(element("seed").value) };
}

/** What is wrong with the seed, or "". */
export function seedFault() {
  const { validity, min, max } = element("seed");
  return validity.valid ? "" : `The seed must be a whole number from ${min} to ${max}.`;
}

export function prepareSettings() {
  for (const slider of SLIDERS.map(element)) {
    slider.addEventListener("input", () => {
      exaggerationMoved ||= slider.id === "exaggeration";
      show(slider);
    });
  }
  element("reset").addEventListener("click", reset);
  reset();
}
