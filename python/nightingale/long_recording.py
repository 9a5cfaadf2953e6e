"""Recordings of any length, read block by block: what voice conversion hears."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from .recording import SILENT_PEAK, WRONG_SCALE_PEAK
from .sound_file import OpenSound, Source, open_sound

RATE = 16_000  # samples a second that the speech tokenizer hears
LEAST_SECONDS = 0.2
MOST_SECONDS = 24 * 60 * 60  # the vocoder counts samples in 31 bits
BLOCK_SAMPLES = 2**20  # of all channels


@dataclass(frozen=True, eq=False)
class LongRecording:
    """A recording that can be heard as often as is asked for, always from its start."""

    name: str
    seconds: float  # as far as the file knows
    blocks: Callable[[], Iterator[np.ndarray]]  # mono at 16 kHz, [n] float32 each

    @classmethod
    def of(cls, source: Source | LongRecording, sample_rate: int | None = None) -> LongRecording:
        """Opens a source as `open_sound` does, once now, so that what is no recording is refused
        here, and again for each time it is heard."""
        if isinstance(source, LongRecording):
            return source
        with open_sound(source, sample_rate) as sound:
            name, seconds = sound.name, sound.frames / sound.rate
        return cls(name, seconds, lambda: _blocks(source, sample_rate))

    @classmethod
    def of_samples(cls, samples: np.ndarray) -> LongRecording:
        """samples: mono at 16 kHz, [n] float32"""
        starts = range(0, len(samples), BLOCK_SAMPLES)
        return cls(
            "the recording",
            len(samples) / RATE,
            lambda: (samples[start : start + BLOCK_SAMPLES] for start in starts),
        )


@dataclass
class Level:
    """What is known of a recording's samples so far; `check` refuses what cannot be converted."""

    name: str
    most_seconds: float
    samples: int = 0  # at 16 kHz
    peak: float = 0.0

    def add(self, block: np.ndarray) -> None:
        self.samples += len(block)
        if not np.isfinite(block).all():
            raise ValueError(f"{self.name} holds samples that are not finite")
        self.peak = max(self.peak, float(np.abs(block).max(initial=0)))
        if self.samples > self.most_seconds * RATE:
            raise ValueError(
                f"{self.name} is longer than {self.most_seconds:g} s, the most that is converted"
            )

    def check(self) -> None:
        """At the end of the recording."""
        if self.samples < LEAST_SECONDS * RATE:
            raise ValueError(
                f"{self.name} is {math.floor(1000 * self.samples / RATE) / 1000:.3f} s long; "
                f"{LEAST_SECONDS} s are the least that is converted"
            )
        if self.peak > WRONG_SCALE_PEAK:
            raise ValueError(
                f"{self.name} has samples up to {self.peak:.6g}; expected -1 to 1 "
                "(16-bit samples kept as floats are to be divided by 32768)"
            )
        if self.peak < SILENT_PEAK:
            raise ValueError(
                f"{self.name} is silent: it never reaches {20 * math.log10(SILENT_PEAK):.0f} dB "
                "of full scale in mono"
            )


def _blocks(source: Source, sample_rate: int | None) -> Iterator[np.ndarray]:
    with open_sound(source, sample_rate) as sound:
        yield from _resampled(sound)


def _resampled(sound: OpenSound) -> Iterator[np.ndarray]:
    """As librosa.load resamples a whole recording: soxr HQ, cut or filled with zeros to the length
    due."""
    import soxr

    stream = soxr.ResampleStream(sound.rate, RATE, 1, dtype="float32", quality="HQ")
    read = made = 0
    ended = False
    while not ended:
        block = sound.read(max(1, BLOCK_SAMPLES // sound.channels))
        read, ended = read + len(block), not len(block)
        with np.errstate(all="ignore"):  # what is not finite is refused later
            mono = block.mean(axis=1) if len(block) else np.zeros(0, np.float32)
        samples = mono if sound.rate == RATE else stream.resample_chunk(mono, last=ended)
        if ended:
            missing = math.ceil(read * (RATE / sound.rate)) - made
            samples = np.pad(samples[: max(missing, 0)], (0, max(missing - len(samples), 0)))
        made += len(samples)
        yield np.ascontiguousarray(samples)
