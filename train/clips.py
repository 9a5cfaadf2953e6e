"""What becomes of a clip of the teacher's: its silence cut to a margin, its loudness evened out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

RATE = 24000
FRAME = 600  # samples of a duration frame
TOKEN = 960  # samples of a speech token: clips are whole numbers of them long
HOP = 240  # samples between the levels by which sound is told from silence
BEFORE, AFTER = 0.05, 0.13  # seconds of near silence that are left
SILENT = -46.0  # dB below the loudest 10 ms of a clip
TARGET = -23.0  # dB of full scale, the level of a voice's speech
PEAK = 0.95
FADE = 240  # samples at both ends


@dataclass(frozen=True)
class Cut:
    begin: int  # samples, a multiple of FRAME
    end: int
    durations: list[int]  # of what is left, in frames


def levels(sound: np.ndarray) -> np.ndarray:
    """sound: [n] int16 → [n // HOP] dB of full scale, every 10 ms"""
    frames = sound[: len(sound) // HOP * HOP].reshape(-1, HOP).astype(np.float32) / 32768
    return 10 * np.log10(np.square(frames).mean(1) + 1e-10)


def cut_silence(sound: np.ndarray, durations: list[int]) -> Cut:
    """Where the clip begins and ends: a margin before the first sound and after the last."""
    level = levels(sound)
    loud = np.flatnonzero(level > level.max() + SILENT)
    first, last = loud[0] * HOP, (loud[-1] + 1) * HOP
    frames = max(0, int((first - BEFORE * RATE) // FRAME))
    # Some of the silent first token stays, so that it still has a duration.
    begin = min(frames, durations[0] - 1) * FRAME
    length = int(last + AFTER * RATE) - begin
    length = -(-length // TOKEN) * TOKEN
    left = [durations[0] - begin // FRAME, *durations[1:]]
    return Cut(begin, begin + length, _shortened(left, -(-length // FRAME)))


def _shortened(durations: list[int], frames: int) -> list[int]:
    """The last tokens, which are silent, made longer or shorter for a sum of `frames`."""
    found, excess = list(durations), sum(durations) - frames
    for token in range(len(found) - 1, -1, -1):
        taken = min(excess, found[token] - 1)
        found[token] -= taken
        excess -= taken
        if excess <= 0:
            break
    return found


def speech_level(sound: np.ndarray) -> float:
    """dB of full scale of the clip's speech, pauses left out."""
    level = levels(sound)
    heard = level[level > level.max() - 30]
    return float(10 * np.log10(np.mean(10 ** (heard / 10))))


def taken(sound: np.ndarray, cut: Cut, gain: float) -> np.ndarray:
    """What the cut leaves, faded at its ends, `gain` dB louder unless it would clip. → [n] int16"""
    clip = sound[cut.begin : cut.end].astype(np.float32)
    clip = np.pad(clip, (0, cut.end - cut.begin - len(clip)))
    factor = min(10 ** (gain / 20), PEAK * 32767 / max(1.0, np.abs(clip).max()))
    ramp = np.minimum(1.0, np.arange(1, len(clip) + 1) / FADE)
    return np.round(clip * factor * ramp * ramp[::-1]).astype(np.int16)
