// The page: what its controls do and what it tells.

import * as api from "./api.js";
import { enableDownloads, fileName, prepareDownloads } from "./downloads.js";
import { Drawing } from "./drawing.js";
import { attempt, element, lock, onSubmit, tell } from "./forms.js";
import { Player } from "./player.js";
import { RecordingInput } from "./recordings.js";
import { numberFault, numberInputs, prepareSettings, settings } from "./settings.js";
import { prepareSnippets } from "./snippets.js";
import { SAMPLE_RATE } from "./sound.js";
import { showSoundTags } from "./sound_tags.js";
import { Speech } from "./speech.js";
import { Transcript } from "./transcript.js";
import { prepareTransport, showTransport } from "./transport.js";
import { chosenVoice, loadVoices, preferNative, prepareVoices } from "./voices.js";

const text = element("text");
const HELD_BACK = "The browser holds the sound back: tap the page or press a key to hear it.";
const drawing = new Drawing(element("waveform"), element("spectrogram"));
let player = null; // made at the first speech, as browsers let no page sound before a click
let model = null;
let speech = null; // the latest, which may be over
let speaking = false; // it comes, or is heard for the first time
let following = false; // it is shown as it goes on

const say = (words) => tell("speech-status", words);

async function load() {
  const { version } = await api.health();
  element("version").textContent = `Nightingale ${version}`;
  model = await api.model();
  const languages = Object.entries(model.languages).sort(([, a], [, b]) => a.localeCompare(b));
  if (model.detects_language) languages.unshift(["auto", "Detect automatically"]);
  element("language").replaceChildren(...languages.map(([code, name]) => new Option(name, code)));
  if ("en" in model.languages) element("language").value = "en";
  for (const form of ["upload", "convert"]) element(`${form}-form`).hidden = !model.can_bake;
  showSoundTags(model.sound_tags, text);
  await loadVoices(model.languages);
  followLanguage();
  countCharacters();
  say("Ready.");
}

function followLanguage() {
  const language = element("language").value;
  text.lang = language === "auto" ? "" : language;
}

function characters() {
  return [...text.value].length;
}

const counted = (number) => number.toLocaleString("en");

function countCharacters() {
  const most = model?.max_input_characters;
  const count = element("count");
  count.textContent = most ? `${counted(characters())} of ${counted(most)} characters` : "";
  count.classList.toggle("over", characters() > most);
}

/** What keeps the page from asking for speech: words for the reader and where to mend it. */
function fault() {
  const most = model.max_input_characters;
  if (!text.value.trim()) return ["There is no text to speak.", text];
  if (characters() > most) return [`The text is longer than ${counted(most)} characters.`, text];
  return numberFault();
}

function openSound() {
  player ??= new Player(new AudioContext({ sampleRate: SAMPLE_RATE }));
  window.nightingale = player; // whose analyser lets a test, or a console, hear what is played
  player.context.resume();
}

/** What is asked for now; a Refusal where that cannot be, told at its field. */
function asked() {
  const [words, place] = fault();
  for (const input of [text, ...numberInputs()]) {
    input.setAttribute("aria-invalid", Boolean(words) && input === place);
  }
  if (words) {
    place.focus();
    throw new api.Refusal(words, 0);
  }
  return {
    model: model.id,
    input: text.value,
    voice: chosenVoice(),
    language: element("language").value,
    ...settings(),
  };
}

async function speak() {
  openSound();
  if (!model) await load();
  const wanted = asked();
  const ask = (formats, signal) => api.speech({ ...wanted, ...formats }, signal);
  await begin(new Speech(ask, wanted.input, fileName(wanted.input), player));
}

async function convert() {
  openSound();
  const recording = source.file;
  const wanted = { voice: chosenVoice() };
  const ask = (formats, signal) => api.conversion(recording, { ...wanted, ...formats }, signal);
  await begin(new Speech(ask, "", fileName(recording.name.replace(/\.\w+$/, "")), player));
}

/** Has a speech come and be heard, in place of the one before. */
async function begin(current) {
  speech?.cancel();
  speech = current;
  setSpeaking(true);
  say("Waiting for the first sound…");
  transcript.begin(current.text);
  element("transcript").hidden = !current.text;
  follow();
  let outcome = "";
  try {
    await current.run();
    outcome = ending(current);
  } finally {
    if (current === speech) {
      setSpeaking(false);
      show();
      say(outcome);
      if (current.seconds) drawing.describe(current.seconds);
    }
  }
}

function ending(done) {
  const seconds = `${done.seconds.toFixed(1)} s of speech`;
  if (done.cancelled) return `Cancelled; ${seconds} had come.`;
  if (!done.seconds) return "The model said nothing: try another seed or a longer text.";
  const first = `first sound after ${Math.round(done.firstAudio)} ms`;
  const factor = `real-time factor ${done.realTimeFactor.toFixed(2)}`;
  const left = done.unspoken.length ? ` Left out, as the model cannot speak it: ${done.unspoken.join("")}` : "";
  return `Spoken: ${seconds}, ${first}, ${factor}.${left}`;
}

function setSpeaking(now) {
  speaking = now;
  if (!now && document.activeElement === element("cancel")) element("speak").focus();
  element("cancel").disabled = !now;
}

/** Shows the speech as it goes on, about 25 times a second: the processor may be the one speaking. */
function follow() {
  if (following) return;
  following = true;
  const next = () => {
    show();
    following = speaking || speech.playback.playing;
    if (following) setTimeout(() => requestAnimationFrame(next), 25);
  };
  next();
}

function show() {
  const { firstAudio, elapsed, seconds, realTimeFactor, playback, position, timeline } = speech;
  const waits = firstAudio === null;
  tell("first-audio", waits && !speaking ? "–" : String(Math.round(firstAudio ?? elapsed)));
  tell("real-time-factor", waits ? "–" : realTimeFactor.toFixed(2));
  tell("seconds", seconds.toFixed(1));
  enableDownloads(!waits);
  element("level").style.setProperty("--level", playback.playing ? player.level() : 0);
  if (waits) return;
  element("sound").hidden = false;
  if (speaking) say(playback.paused ? "Paused." : isHeldBack() ? HELD_BACK : "Speaking.");
  showTransport(speech);
  transcript.take(speech.words);
  transcript.show(playback.over ? null : position);
  drawing.draw(timeline, position);
}

/** Whether the browser keeps silent until the page is touched. */
function isHeldBack() {
  const patience = 500; // ms, as a context takes a moment to start
  const sinceFirst = performance.now() - speech.clicked - speech.firstAudio;
  return player.context.state !== "running" && sinceFirst > patience;
}

function cancel() {
  if (speaking) speech.cancel();
  else if (speech?.playback.playing) speech.playback.pause();
}

async function useKey() {
  api.setKey(element("key").value);
  await load();
  lock(false);
  text.focus();
}

function onKey(event) {
  player?.context.resume();
  if (element("delete-dialog").open) return;
  if (event.key === "Escape") cancel();
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.repeat) {
    event.preventDefault();
    attempt("speech", speak);
  }
}

onSubmit("speech", speak);
onSubmit("key", useKey);
onSubmit("convert", convert);
element("cancel").addEventListener("click", cancel);
element("language").addEventListener("change", () => {
  followLanguage();
  const language = element("language").value;
  preferNative(language, model.language_voices[language]);
});
text.addEventListener("input", countCharacters);
document.addEventListener("keydown", onKey);
document.addEventListener("pointerup", () => player?.context.resume());
prepareVoices(() => model.languages);
const source = new RecordingInput("convert", "source");
const seek = prepareTransport(() => speech, follow);
const transcript = new Transcript(element("transcript"), (second) => seek(second));
prepareDownloads(() => speech);
prepareSnippets(asked);
attempt("speech", async () => {
  await prepareSettings();
  await load();
});
