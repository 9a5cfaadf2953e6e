"""Clips of the teacher: trimming, level, and storage as shards of int16 audio with an index."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

RATE = 24000
FRAME = 600  # samples of a duration frame
TOKEN = 960  # samples of a speech token: clips are whole numbers of them long
HOP = 240  # samples of a level frame in silence detection
BEFORE, AFTER = 0.05, 0.13  # seconds of silence that are kept
SILENT = -46.0  # dB relative to the loudest 10 ms of a clip
TARGET = -23.0  # dB of full scale, the speech level of every voice
PEAK = 0.95
FADE = 240  # samples at both ends


@dataclass(frozen=True)
class Cut:
    begin: int  # samples, a multiple of FRAME
    end: int
    durations: list[int]  # of the rest, in frames


def levels(sound: np.ndarray) -> np.ndarray:
    """sound: [n] int16 → [n // HOP] dB of full scale, every 10 ms"""
    frames = sound[: len(sound) // HOP * HOP].reshape(-1, HOP).astype(np.float32) / 32768
    return 10 * np.log10(np.square(frames).mean(1) + 1e-10)


def cut_silence(sound: np.ndarray, durations: list[int]) -> Cut:
    """Trims the silence of a clip to a margin before the first and after the last sound."""
    level = levels(sound)
    loud = np.flatnonzero(level > level.max() + SILENT)
    first, last = loud[0] * HOP, (loud[-1] + 1) * HOP
    frames = max(0, int((first - BEFORE * RATE) // FRAME))
    # Keeps at least one frame of the silent first token.
    begin = min(frames, durations[0] - 1) * FRAME
    length = int(last + AFTER * RATE) - begin
    length = -(-length // TOKEN) * TOKEN
    left = [durations[0] - begin // FRAME, *durations[1:]]
    return Cut(begin, begin + length, _shortened(left, -(-length // FRAME)))


def _shortened(durations: list[int], frames: int) -> list[int]:
    """Changes the last durations, which are silent, so that their sum is `frames`."""
    found, excess = list(durations), sum(durations) - frames
    for token in range(len(found) - 1, -1, -1):
        removed = min(excess, found[token] - 1)
        found[token] -= removed
        excess -= removed
        if excess <= 0:
            break
    return found


def speech_level(sound: np.ndarray) -> float:
    """The level of the clip's speech without pauses, in dB of full scale."""
    level = levels(sound)
    speech = level[level > level.max() - 30]
    return float(10 * np.log10(np.mean(10 ** (speech / 10))))


def cut_clip(sound: np.ndarray, cut: Cut, gain: float) -> np.ndarray:
    """The trimmed clip with fades, `gain` dB louder unless it would clip. → [n] int16"""
    clip = sound[cut.begin : cut.end].astype(np.float32)
    clip = np.pad(clip, (0, cut.end - cut.begin - len(clip)))
    factor = min(10 ** (gain / 20), PEAK * 32767 / max(1.0, np.abs(clip).max()))
    ramp = np.minimum(1.0, np.arange(1, len(clip) + 1) / FADE)
    return np.round(clip * factor * ramp * ramp[::-1]).astype(np.int16)


def write_shard(folder: Path, name: str, clips: Iterable[tuple[dict, np.ndarray]]) -> list[str]:
    """Writes clips, [n] int16, to the file `name`. → their lines of the index"""
    parts, lines, start = [np.empty(0, np.int16)], [], 0
    for entry, clip in clips:
        place = {"shard": name, "start": start, "samples": len(clip)}
        lines.append(json.dumps(entry | place, ensure_ascii=False) + "\n")
        parts.append(clip)
        start += len(clip)
    np.save(folder / name, np.concatenate(parts))
    return lines


def write_index(folder: Path, lines: Iterable[str]) -> None:
    """Write the index last: it marks a complete folder."""
    partial = folder / ".index.jsonl.partial"
    partial.write_text("".join(lines), encoding="utf-8")
    os.replace(partial, folder / "index.jsonl")


def read_index(folder: Path) -> list[dict]:
    """The entries of an index, written by train.corpus or by the teacher."""
    with (folder / "index.jsonl").open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
