// Pause, play, play again and the place in the sound, of the latest speech.

import { element, tell } from "./forms.js";
import { SAMPLE_RATE } from "./sound.js";

const slider = element("seek");

/** What the controls show of a speech. */
export function showTransport({ playback, position, seconds }) {
  const { over, paused } = playback;
  tell("play", over ? "Play again" : paused ? "Play" : "Pause");
  slider.max = seconds;
  slider.value = position;
  slider.setAttribute("aria-valuetext", `${position.toFixed(1)} of ${seconds.toFixed(1)} seconds`);
  tell("time", `${position.toFixed(1)} / ${seconds.toFixed(1)} s`);
}

/** current: gives the latest speech. changed: is called when it goes on or has another place. */
export function prepareTransport(current, changed) {
  element("play").addEventListener("click", () => {
    const { playback } = current();
    if (playback.playing) playback.pause();
    else playback.play();
    changed();
  });
  slider.addEventListener("input", () => seek(Number(slider.value)));
  element("waveform").addEventListener("click", ({ offsetX, target }) => {
    seek((offsetX / target.clientWidth) * current().timeline.span);
  });

  function seek(second) {
    current().playback.seek(second * SAMPLE_RATE);
    changed();
  }
  return seek;
}
