"""What the vocoder is trained on: windows of speech, their mels and their pitch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from .data import RATE, Corpus, play_at
from .f0 import f0_of
from .features import MEL_HOP, MELS, mel_24k

FRAMES = 40  # of a window that count
CONTEXT = 4  # frames besides on either side: the vocoder reaches about so far
SPARE = 2  # frames besides on either side, which only the mel and the pitch hear
VARIED = 0.25  # of the windows are played faster or slower and at another level
FASTEST = 1.18
QUIETEST, LOUDEST = -9.0, 3.0  # dB
AHEAD = 8  # batches made at once: the pitch is found in many small steps, of any number of rows


@dataclass(frozen=True, eq=False)
class Windows:
    mel: Tensor  # [B, T, 80]
    wave: Tensor  # [B, 480 T]
    f0: Tensor  # [B, T] Hz, 0 where unvoiced

    def batches(self, count: int) -> Iterator[Windows]:
        """`count` of them at a time."""
        parts = (x.split(count) for x in (self.mel, self.wave, self.f0))
        return map(Windows, *parts)


def windows_of(wave: Tensor) -> Windows:
    """wave: [B, 480 (T + 2 SPARE)], of which what is spare is cut off"""
    heard = slice(SPARE, -SPARE)
    inner = slice(SPARE * MEL_HOP, -SPARE * MEL_HOP)
    return Windows(mel_24k(wave)[:, heard], wave[:, inner], f0_of(wave)[:, heard])


def windows(corpus: Corpus, count: int, seed: int) -> Iterator[Windows]:
    """`count` at a time, from anywhere in the corpus, for ever."""
    length = (FRAMES + 2 * (CONTEXT + SPARE)) * MEL_HOP
    seconds = FASTEST * length / RATE
    generator = torch.Generator(corpus.device).manual_seed(seed)
    for batch in corpus.batches(AHEAD * count * seconds, seed, seconds):
        wave = batch.wave[:, :length].clone()
        varied = [row for row in range(len(wave)) if row % count < round(VARIED * count)]
        wave[varied] = vary(batch.wave[varied], length, generator)
        yield from windows_of(wave).batches(count)


def vary(wave: Tensor, length: int, generator: torch.Generator) -> Tensor:
    """As other speakers would say it, farther or nearer. wave: [B, N] → [B, length]"""

    def draw(low: float, high: float) -> Tensor:
        u = torch.rand(len(wave), device=wave.device, generator=generator)
        return low + (high - low) * u

    played = play_at(wave, FASTEST ** draw(-1, 1), length)
    level = 10 ** (draw(QUIETEST, LOUDEST)[:, None] / 20)
    return played * torch.minimum(level, 0.95 / played.abs().amax(1, keepdim=True).clamp_min(1e-3))


class GivenMels:
    """Mels of some rows of a corpus that were made for them, by the flow for one.

    An .npz with rows [n], numbers of the corpus; starts [n + 1]; mels [starts[-1], 80]: the frames
    of each row from its first on, which sound like the row and as the row does at the same time.
    """

    def __init__(self, path: str | Path, corpus: Corpus) -> None:
        with np.load(path) as stored:
            rows, starts = stored["rows"].astype(np.int64), stored["starts"].astype(np.int64)
            self._mels = torch.from_numpy(stored["mels"]).to(corpus.device)
        if self._mels.shape[1] != MELS or len(starts) != len(rows) + 1:
            raise ValueError(
                f"{path} has mels {tuple(self._mels.shape)} and {len(starts)} starts of "
                f"{len(rows)} rows; expected [frames, {MELS}] and one start more than rows"
            )
        frames = np.array([corpus.rows[row].samples // MEL_HOP for row in rows], np.int64)
        frames = np.minimum(frames, np.diff(starts))
        long_enough = (frames >= FRAMES + 2 * CONTEXT) & np.isin(rows, corpus.members)
        if not long_enough.any():
            raise ValueError(f"{path} has no row of the corpus that is long enough for a window")
        self._corpus = corpus
        self._rows, self._starts = rows[long_enough], starts[:-1][long_enough]
        self._frames = frames[long_enough]

    def windows(self, count: int, seed: int) -> Iterator[Windows]:
        """`count` at a time, from anywhere in the rows, for ever."""
        rng = np.random.default_rng(seed)
        total = FRAMES + 2 * CONTEXT
        ends = self._frames.cumsum()
        while True:
            chosen = np.searchsorted(ends, rng.random(AHEAD * count) * ends[-1], side="right")
            first = (rng.random(len(chosen)) * (self._frames[chosen] - total + 1)).astype(np.int64)
            mel = self._mels[self._at(self._starts[chosen] + first, total)]
            spoken = self._corpus.row_batch(self._rows[chosen]).wave
            spare = SPARE * MEL_HOP
            spoken = functional.pad(spoken, (spare, spare))
            at = self._at(first * MEL_HOP, total * MEL_HOP + 2 * spare)
            heard = windows_of(spoken.gather(1, at))
            yield from Windows(mel.float(), heard.wave, heard.f0).batches(count)

    def _at(self, first: np.ndarray, length: int) -> Tensor:
        """[B] → [B, length], places from each first on"""
        begin = torch.from_numpy(first).to(self._corpus.device)
        return begin[:, None] + torch.arange(length, device=begin.device)
