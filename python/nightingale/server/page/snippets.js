// What the page would ask for, as commands and programs to copy.

import { hasKey, toJson } from "./api.js";
import { attempt, element, tell } from "./forms.js";

const OPENAI = ["model", "voice", "input", "response_format", "speed"]; // that its client names
const FORMAT = { response_format: "mp3" };

const base = () => new URL("v1", document.baseURI).href;

/** A word as a shell takes it. */
const quoted = (word) => `'${word.replaceAll("'", "'\\''")}'`;

export function curl(settings) {
  const key = hasKey() ? ` \\\n  -H "Authorization: Bearer $NIGHTINGALE_KEY"` : "";
  const body = quoted(toJson({ ...settings, ...FORMAT }));
  return (
    `curl -s ${base()}/audio/speech \\\n  -H "Content-Type: application/json"${key} \\\n` +
    `  -d ${body} -o speech.mp3\n`
  );
}

export function python(settings) {
  const given = Object.entries({ ...settings, ...FORMAT });
  const own = given.filter(([name]) => !OPENAI.includes(name));
  const named = given.filter(([name]) => OPENAI.includes(name));
  // JSON's strings and numbers are Python's too.
  const lines = named.map(([name, value]) => `    ${name}=${toJson(value)},\n`).join("");
  const key = hasKey() ? 'os.environ["NIGHTINGALE_KEY"]' : '"any"';
  return (
    (hasKey() ? "import os\n\n" : "") +
    `from openai import OpenAI\n\nclient = OpenAI(base_url="${base()}", api_key=${key})\n` +
    `with client.audio.speech.with_streaming_response.create(\n${lines}` +
    `    extra_body=${toJson(Object.fromEntries(own))},\n) as answer:\n` +
    `    answer.stream_to_file("speech.mp3")\n`
  );
}

async function copy(text) {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text);
    return;
  }
  // Browsers keep the clipboard from pages of plain http beyond localhost, but for this old way.
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

/** settings: gives what would be asked for now, or throws what is wrong with it. */
export function prepareSnippets(settings) {
  for (const [name, write, told] of [
    ["copy-curl", curl, "The curl command was copied."],
    ["copy-python", python, "The Python program was copied."],
  ]) {
    element(name).addEventListener("click", () => {
      tell("copy-status", "");
      attempt("speech", async () => {
        await copy(write(settings()));
        element(name).focus();
        tell("copy-status", told);
      });
    });
  }
}
