"""A corpus in memory: int16 audio on the device, in batches."""

from __future__ import annotations

import copy
import functools
import hashlib
import itertools
import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from .clips import read_index
from .voices import HELD_OUT_VOICES

RATE = 24000
PARTS = ("train", "valid", "unseen", "all")
READERS = 4  # files that are read in parallel
POOL = 64  # batches whose rows are sorted by length together

# Speed perturbation: each factor makes another speaker of a voice; the middle one is 1.
SPEED_FACTORS = tuple(1.18 ** (step / 3) for step in range(-3, 4))
JITTER = 0.01  # relative, of a factor
SINC_REACH = 12  # samples on either side


@dataclass(frozen=True)
class Row:
    id: str
    text: str
    language: str  # en, es, fr, it, pt
    voice: str
    samples: int
    phonemes: str
    durations: list[int] | None  # 25 ms frames of silence, of each phoneme, of silence
    speed: float = 1.0  # the teacher's


@dataclass(frozen=True, eq=False)
class Batch:
    wave: Tensor  # [B, N] float32 in [-1, 1], 24 kHz, zero past each row's end
    samples: Tensor  # [B] int64, each row's length
    lengths: np.ndarray  # the same on the host
    text: list[str]
    language: list[str]
    voice: Tensor  # [B] int64, index into Corpus.voices
    row: Tensor  # [B] int64, index into Corpus.rows


def split_of(id: str, voice: str) -> str:
    """train, valid (1 %) or unseen (the held-out voices)"""
    if voice in HELD_OUT_VOICES:
        return "unseen"
    digest = hashlib.sha256(id.encode()).digest()
    return "valid" if int.from_bytes(digest[:4], "big") % 100 == 0 else "train"


class Corpus:
    """A folder written by train.corpus. Its audio is loaded to `device` when it is first used.

    rows, voices and row numbers are those of the whole folder for every part, so that arrays that
    were computed for all rows (tokens, speaker vectors) fit; only the rows in `members` have audio.
    """

    def __init__(self, folder: str | Path, device: str, part: str = "train") -> None:
        self._folder, self._entries = Path(folder), read_index(Path(folder))
        self.device = torch.device(device)
        self.rows = [_row(entry) for entry in self._entries]
        self.voices = sorted({row.voice for row in self.rows})
        voice_number = {voice: i for i, voice in enumerate(self.voices)}
        self._voice = np.array([voice_number[row.voice] for row in self.rows], dtype=np.int64)
        self._samples = np.array([row.samples for row in self.rows], dtype=np.int64)
        self._choose(part)

    def part(self, name: str) -> Corpus:
        """Another part of the same folder, without reading the index again."""
        other = copy.copy(self)
        vars(other).pop("_audio", None)
        other._choose(name)
        return other

    def _choose(self, part: str) -> None:
        if part not in PARTS:
            raise ValueError(f"part is {part!r}; expected one of {', '.join(PARTS)}")
        self.members = np.array(
            [i for i, row in enumerate(self.rows) if part in ("all", split_of(row.id, row.voice))],
            dtype=np.int64,
        )
        ends = self._samples[self.members].cumsum()
        self._size = int(ends[-1]) if len(ends) else 0
        self._starts = np.full(len(self.rows), -1, dtype=np.int64)  # in _audio; -1: not loaded
        self._starts[self.members] = ends - self._samples[self.members]

    @functools.cached_property
    def _audio(self) -> Tensor:
        """The members' clips, concatenated, int16."""
        audio = torch.empty(self._size, dtype=torch.int16, device=self.device)

        def read(rows: list[int]) -> None:
            """Reads rows of one file."""
            entries = [self._entries[row] for row in rows]
            shard = torch.from_numpy(np.load(self._folder / entries[0]["shard"], mmap_mode="c"))
            begins = np.array([entry["start"] for entry in entries])
            ends = begins + self._samples[rows]
            # Adjacent clips are read together.
            gaps = np.flatnonzero(begins[1:] != ends[:-1]) + 1
            for first, last in zip([0, *gaps], [*gaps, len(rows)], strict=True):
                at, count = self._starts[rows[first]], ends[last - 1] - begins[first]
                audio[at : at + count] = shard[begins[first] : ends[last - 1]]

        grouped = itertools.groupby(self.members, lambda row: self._entries[row]["shard"])
        with ThreadPoolExecutor(READERS) as pool:
            list(pool.map(read, [list(rows) for _, rows in grouped]))
        return audio

    @property
    def hours(self) -> float:
        return self._size / RATE / 3600

    @property
    def perturbed_voices(self) -> int:
        """The number of voices after `perturb_speed`."""
        return len(self.voices) * len(SPEED_FACTORS)

    def batches(
        self, seconds: float, seed: int, crop: float | None = None, step: float = 1 / RATE
    ) -> Iterator[Batch]:
        """Endless and shuffled: at most `seconds` of padded audio, rows of similar length together.

        crop: random windows of so many seconds instead of whole rows, uniform over the corpus; a
        shorter row is padded.
        step: whole rows are padded to a multiple of so many seconds. Almost all batches of one
        length have as many rows, so that there are few shapes: cuDNN and cuFFT make plans for each.
        """
        if not len(self.members):
            raise ValueError("this part of the corpus has no rows")
        rng = np.random.default_rng(seed)
        if crop is None:
            return self._whole_rows(seconds, round(step * RATE), rng)
        return self._windows(max(1, int(seconds / crop)), round(crop * RATE), rng)

    def _whole_rows(self, seconds: float, step: int, rng: np.random.Generator) -> Iterator[Batch]:
        longest = self._padded(self.members, step) / RATE
        if seconds < longest:
            raise ValueError(f"a batch of {seconds} s cannot hold a row of {longest:.1f} s")
        while True:
            for rows in self._epoch(round(seconds * RATE), step, rng):
                yield self.row_batch(rows, step)

    def _epoch(self, most: int, step: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
        """The row numbers of batches of at most `most` samples, each row once."""
        order = rng.permutation(self.members)
        mean = max(1, round(self._samples[order].mean()))
        pool = max(1, POOL * most // mean)
        for first in range(0, len(order), pool):
            rows = order[first : first + pool]
            rows = rows[np.argsort(-self._samples[rows], kind="stable")]
            groups = []
            while len(rows):
                count = most // self._padded(rows[:1], step)
                groups.append(rows[:count])
                rows = rows[count:]
            for group in rng.permutation(len(groups)):
                yield groups[group]

    def _windows(self, count: int, length: int, rng: np.random.Generator) -> Iterator[Batch]:
        ends = np.maximum(self._samples[self.members], length).cumsum()
        while True:
            rows = self.members[np.searchsorted(ends, rng.random(count) * ends[-1], side="right")]
            spare = np.maximum(self._samples[rows] - length, 0)
            offsets = (rng.random(count) * (spare + 1)).astype(np.int64)
            yield self._gather(rows, offsets, np.minimum(self._samples[rows], length), length)

    def row_batch(self, rows: Sequence[int] | np.ndarray, step: int = 1) -> Batch:
        """Whole rows by number, padded to a multiple of `step` samples."""
        rows = np.asarray(rows, dtype=np.int64)
        length = self._padded(rows, step)
        return self._gather(rows, np.zeros_like(rows), self._samples[rows], length)

    def _padded(self, rows: np.ndarray, step: int) -> int:
        """The length in samples of a batch of these rows."""
        return math.ceil(self._samples[rows].max() / step) * step

    def _gather(
        self, rows: np.ndarray, offsets: np.ndarray, samples: np.ndarray, length: int
    ) -> Batch:
        starts = self._starts[rows]
        if (starts < 0).any():
            raise ValueError(f"row {rows[starts < 0][0]} is not in this part of the corpus")
        first, counts, numbers, voice = self._to_device(
            starts + offsets, samples, rows, self._voice[rows]
        )
        at = torch.arange(length, device=self.device)
        inside = at < counts[:, None]
        wave = self._audio[torch.where(inside, first[:, None] + at, 0)]
        return Batch(
            wave=wave.float().div_(32768.0).mul_(inside),
            samples=counts,
            lengths=samples,
            text=[self.rows[row].text for row in rows],
            language=[self.rows[row].language for row in rows],
            voice=voice,
            row=numbers,
        )

    def _to_device(self, *arrays: np.ndarray) -> Tensor:
        return torch.from_numpy(np.stack(arrays)).to(self.device, non_blocking=True)

    def perturb_speed(self, batch: Batch, generator: torch.Generator) -> Batch:
        """Changes speed, pitch and formants of each row by a random factor of 0.85 to 1.18; voice
        becomes voice · len(SPEED_FACTORS) + bucket, below `perturbed_voices`.

        generator: of the CPU. The middle bucket has factor 1.
        """
        count = len(batch.samples)
        bucket = torch.randint(len(SPEED_FACTORS), (count,), generator=generator)
        jitter = 1 + JITTER * (2 * torch.rand(count, generator=generator) - 1)
        factor = torch.tensor(SPEED_FACTORS)[bucket] * jitter
        lengths = (torch.from_numpy(batch.lengths) / factor).long()
        longest = int(lengths.max())
        samples, bucket = self._to_device(lengths.numpy(), bucket.numpy())
        wave = change_speed(batch.wave, factor.to(self.device, non_blocking=True), longest)
        return replace(
            batch,
            wave=wave * (torch.arange(longest, device=self.device) < samples[:, None]),
            samples=samples,
            lengths=lengths.numpy(),
            voice=batch.voice * len(SPEED_FACTORS) + bucket,
        )


def sorted_batches(corpus: Corpus, seconds: float) -> Iterator[Batch]:
    """Every row once, from the shortest to the longest, with at most `seconds` of padded audio in a
    batch; a longer row is a batch of its own."""
    order = sorted(corpus.members.tolist(), key=lambda row: corpus.rows[row].samples)
    group: list[int] = []
    for row in order:
        if group and (len(group) + 1) * corpus.rows[row].samples > seconds * RATE:
            yield corpus.row_batch(group)
            group = []
        group.append(row)
    if group:
        yield corpus.row_batch(group)


def change_speed(wave: Tensor, factor: Tensor, length: int) -> Tensor:
    """Resamples each row to `factor` times its speed. wave: [B, N]; factor: [B] → [B, length]"""
    at = torch.arange(length, device=wave.device) * factor[:, None].double()
    whole = at.floor()
    fraction = (at - whole).float()
    # Nothing may remain above the lower of both Nyquist frequencies.
    cutoff = 0.97 / factor.clamp_min(1)[:, None]
    padded = functional.pad(wave, (SINC_REACH, SINC_REACH))
    first = whole.long().clamp_max(wave.shape[1] - 1)
    out = torch.zeros(len(wave), length, device=wave.device)
    for tap in range(1 - SINC_REACH, SINC_REACH + 1):
        distance = fraction - tap
        window = torch.cos(distance * (math.pi / 2 / SINC_REACH)).square()
        weight = torch.sinc(distance * cutoff) * cutoff * window
        out += padded.gather(1, first + (tap + SINC_REACH)) * weight
    return out


def _row(entry: dict) -> Row:
    return Row(
        id=entry["id"],
        text=entry["text"],
        language=entry["lang"].partition("-")[0],
        voice=entry["voice"],
        samples=entry["samples"],
        phonemes=entry["phonemes"],
        durations=entry.get("durations"),
        speed=entry["speed"],
    )


class Tokens:
    """The speech tokens of a corpus by row number, on a device."""

    def __init__(self, starts: np.ndarray, tokens: np.ndarray, device: str = "cpu") -> None:
        """starts: [rows + 1] int64; tokens: [starts[-1]] int16, 25 a second"""
        self._starts = torch.from_numpy(np.asarray(starts, dtype=np.int64)).to(device)
        self._tokens = torch.from_numpy(np.asarray(tokens, dtype=np.int16)).to(device)

    @classmethod
    def of_rows(cls, rows: Sequence[np.ndarray], device: str = "cpu") -> Tokens:
        """rows: the tokens of each row"""
        return cls(np.cumsum([0, *map(len, rows)]), np.concatenate(rows), device)

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, row: int) -> Tensor:
        """→ [n] int64"""
        return self._tokens[self._starts[row] : self._starts[row + 1]].long()

    def batch(self, rows: Tensor, length: int | None = None) -> tuple[Tensor, Tensor]:
        """rows: [B] → tokens [B, T] int64, zero past each row's end, and their counts [B]

        length: T; by default the longest row's, which needs a host sync
        """
        first, counts = self._starts[rows], self._starts[rows + 1] - self._starts[rows]
        length = int(counts.max()) if length is None else length
        at = torch.arange(length, device=counts.device)
        inside = at < counts[:, None]
        return self._tokens[torch.where(inside, first[:, None] + at, 0)].long() * inside, counts


def load_tokens(path: str | Path, device: str = "cpu") -> Tokens:
    """Loads the file of `python -m train.speech_tokenizer tokenize`."""
    with np.load(path) as stored:
        return Tokens(stored["starts"], stored["tokens"], device)
