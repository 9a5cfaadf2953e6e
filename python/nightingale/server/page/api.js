// What the page asks of the server, and what a refusal is in words.

/** The server said no; the message is for the reader. */
export class Refusal extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

const KEY = "nightingale-key";
let key = storage()?.getItem(KEY) ?? "";

/** Where the key outlives a reload, or null where the browser keeps nothing for pages. */
function storage() {
  try {
    return window.sessionStorage;
  } catch {
    return null;
  }
}

export const hasKey = () => Boolean(key);

export function setKey(given) {
  key = given;
  storage()?.setItem(KEY, given);
}

export async function health() {
  return (await request("health")).json();
}

/** The options of speech that the page shows. */
export async function options() {
  return (await request("page/options.json")).json();
}

export async function model() {
  return (await (await request("v1/models")).json()).data[0];
}

export async function voices() {
  return (await (await request("v1/audio/voices")).json()).data;
}

export async function addVoice(name, recording) {
  const body = new FormData();
  body.append("name", name);
  body.append("audio_sample", recording);
  return (await request("v1/audio/voices", { method: "POST", body })).json();
}

export async function deleteVoice(id) {
  await request(`v1/audio/voices/${encodeURIComponent(id)}`, { method: "DELETE" });
}

/** The response to a request for speech, until `signal` hangs up. */
export async function speech(settings, signal) {
  const headers = { "Content-Type": "application/json" };
  return request("v1/audio/speech", { method: "POST", headers, body: toJson(settings), signal });
}

/** The same for a recording in another voice. */
export async function conversion(recording, settings, signal) {
  const body = new FormData();
  for (const [name, value] of Object.entries(settings)) body.append(name, String(value));
  body.append("file", recording);
  return request("v1/audio/conversions", { method: "POST", body, signal });
}

/** JSON with all digits of BigInts. */
export function toJson(value) {
  if (typeof value === "bigint") return String(value);
  if (typeof value !== "object") return JSON.stringify(value);
  const members = Object.entries(value).map(([name, member]) => `"${name}": ${toJson(member)}`);
  return `{${members.join(", ")}}`;
}

/** The response to a request with the key; throws a Refusal. */
export async function request(path, { headers = {}, ...options } = {}) {
  if (key) headers = { ...headers, Authorization: `Bearer ${key}` };
  let response;
  try {
    response = await fetch(path, { headers, ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal("The server does not answer. Is it still running?", 0);
  }
  if (!response.ok) throw new Refusal(await reason(response), response.status);
  return response;
}

async function reason(response) {
  if (response.status === 401) {
    return key ? "The server does not take this key." : "This server wants a key.";
  }
  if (response.status === 429) {
    const wait = response.headers.get("Retry-After");
    return `The server is busy. Try again ${wait ? `in ${wait} s` : "soon"}.`;
  }
  const told = await response.json().catch(() => null);
  const message = told?.error?.message;
  if (!message) return `The server answered ${response.status} ${response.statusText}`.trim() + ".";
  return sentence(message);
}

/** A message of the server with a capital and a full stop. */
export function sentence(message) {
  return message[0].toUpperCase() + message.slice(1) + (/[.!?]$/.test(message) ? "" : ".");
}
