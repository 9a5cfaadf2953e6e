// An operation's example as a curl command, and a form that sends it.

import { request } from "./api.js";

/** The parts of an operation's article that show and try its example. */
export function examples(path, method, operation, schema) {
  const place = path.replace("{id}", "NAME");
  const body = operation.requestBody?.content["application/json"] && exampleOf(schema);
  const form = operation.requestBody?.content["multipart/form-data"];
  const shown = element("pre", element("code", curl(place, method, body, form)));
  shown.tabIndex = 0;
  const parts = [element("h3", "Example"), shown];
  return form ? parts : [...parts, tryIt(place, method, body)];
}

/** The fields of a body that are required or have an example. */
function exampleOf(schema) {
  const fields = Object.entries(schema.properties).filter(([, field]) => field.examples);
  return Object.fromEntries(fields.map(([name, field]) => [name, field.examples[0]]));
}

function curl(path, method, body, form) {
  const url = new URL(path.slice(1), document.baseURI);
  const words = ["curl", "-s", String(url)];
  if (form) {
    words.push("-F", path.endsWith("voices") ? "name=Anna" : "voice=default");
    words.push("-F", path.endsWith("voices") ? "audio_sample=@reference.wav" : "file=@reference.wav");
  } else if (body) {
    words.push("-H", '"Content-Type: application/json"', "-d", `'${JSON.stringify(body)}'`);
  } else if (method !== "get") {
    words.push("-X", method.toUpperCase());
  }
  return (path.endsWith("speech") || path.endsWith("conversions") ? [...words, "-o", "speech.mp3"] : words).join(" ");
}

function tryIt(path, method, body) {
  const name = `${method.toUpperCase()} ${path}`;
  const where = labelled(`Path of ${name}`, element("input"));
  where.field.value = path;
  const what = body && labelled(`Body of ${name}`, element("textarea"));
  const button = element("button", "Try it");
  button.ariaLabel = `Try ${name}`;
  const answer = element("output");
  const form = element("form", where.label, ...(what ? [what.label] : []), button, answer);
  if (what) {
    what.field.value = JSON.stringify(body, null, 2);
    what.field.rows = 5;
  }
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    answer.replaceChildren("…");
    const headers = what ? { "Content-Type": "application/json" } : {};
    try {
      const sent = { method: method.toUpperCase(), headers, body: what?.field.value };
      answer.replaceChildren(await shown(await request(where.field.value.slice(1), sent)));
    } catch (refusal) {
      answer.replaceChildren(String(refusal.message));
    }
  });
  return form;
}

/** What a response brings: sound to play, or its text. */
async function shown(response) {
  const type = response.headers.get("content-type") ?? "";
  if (type.startsWith("audio/") && !type.startsWith("audio/pcm")) {
    const audio = element("audio");
    audio.controls = true;
    audio.src = URL.createObjectURL(await response.blob());
    return audio;
  }
  const text = element("pre", (await response.text()).slice(0, 10000));
  text.tabIndex = 0;
  return text;
}

function labelled(text, field) {
  const label = element("label", text, field);
  return { label, field };
}

function element(name, ...children) {
  const made = document.createElement(name);
  made.append(...children);
  return made;
}
