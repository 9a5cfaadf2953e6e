// Buttons for the sounds that the model has tags for.

import { element } from "./forms.js";

/** Shows a button for each tag, which puts it into the text at the cursor. */
export function showSoundTags(tags, text) {
  element("sounds").hidden = !tags.length;
  element("sounds").replaceChildren(...tags.map((tag) => button(tag, text)));
}

function button(tag, text) {
  const found = document.createElement("button");
  found.type = "button";
  found.textContent = tag;
  found.addEventListener("click", () => insert(tag, text));
  return found;
}

function insert(tag, text) {
  const { value, selectionStart, selectionEnd } = text;
  const before = /(^|\s)$/.test(value.slice(0, selectionStart)) ? "" : " ";
  const after = /^([\s.,;:!?]|$)/.test(value.slice(selectionEnd)) ? "" : " ";
  text.setRangeText(before + tag + after, selectionStart, selectionEnd, "end");
  text.dispatchEvent(new Event("input", { bubbles: true }));
  text.focus();
}
