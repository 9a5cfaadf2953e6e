"""Reads, checks and resamples recordings of a speaker, as the reference does."""

import logging
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from ._core import Error
from .sound_file import OpenSound, Source, open_sound

logger = logging.getLogger(__name__)

USED_SECONDS = 60
LEAST_SECONDS = 1
ADVISED_SECONDS = 5
ADVISED_RATE = 16_000
MOST_SAMPLES = 50_000_000  # of all channels, in the part that is used: 17 channels of 48 kHz
SILENT_PEAK = 1e-3  # -60 dBFS
WRONG_SCALE_PEAK = 100
CLIPPED_LEVEL = 0.999
CLIPPED_SHARE = 1e-3
SOUND_RANGE_DB = 40
SOUND_FRAMES_PER_SECOND = 20

# Opus decodes differently after a read ends, so a block is large enough for 60 s of any usual
# recording; more channels or higher rates come in several, and memory stays bounded.
BLOCK_SAMPLES = 2**24
CLIPPING_SAMPLES = 2**20  # looked at together


@dataclass(frozen=True, eq=False)
class Recording:
    """The part of a recording that is used: mono, at the two sample rates of the models."""

    at_24k: np.ndarray  # [n] float32
    at_16k: np.ndarray  # [m] float32
    duration: float  # seconds of the source that are used

    def louder(self, gain: float) -> "Recording":
        """The recording with its samples multiplied."""
        scale = np.float32(gain)
        return Recording(self.at_24k * scale, self.at_16k * scale, self.duration)


def read_recording(source: Source, sample_rate: int | None = None) -> Recording:
    """Reads at most the first 60 s of a WAV, FLAC, OGG or MP3 file, or of an array of samples.

    source: a path, a binary file object (read from its start) or an array [n] or [n, channels] of
    floats in [-1, 1], int16 or int32, which needs its sample_rate. Error: it cannot be read;
    ValueError: it cannot make a voice. What makes a poor voice is logged as a warning.
    """
    sound = _sound_of(source, sample_rate)
    _refuse_unusable(sound)
    _warn_of_poor(sound)
    at_24k = _resample(sound.samples, sound.rate, 24_000)
    return Recording(at_24k, _resample(at_24k, 24_000, 16_000), sound.duration)


@dataclass(frozen=True, eq=False)
class _Sound:
    """A recording at its own rate, cut to the used length, its channels averaged."""

    name: str
    rate: int
    samples: np.ndarray  # [n] float32
    peak: float  # of the loudest channel
    clipped: float  # share of the samples that stand at full scale between two that do
    longer: bool  # than what is used

    @property
    def duration(self) -> float:
        return len(self.samples) / self.rate


def _sound_of(source: Source, sample_rate: int | None) -> _Sound:
    with open_sound(source, sample_rate) as sound:
        used = min(sound.frames, USED_SECONDS * sound.rate + 1)
        if used * sound.channels > MOST_SAMPLES:
            kind = ValueError if isinstance(source, np.ndarray) else Error
            raise kind(
                f"{sound.name} has {sound.channels} channels of {used} samples in its first "
                f"{USED_SECONDS} s; together they may have {MOST_SAMPLES}"
            )
        return _gather(sound.name, sound.rate, _blocks(sound))


def _blocks(sound: OpenSound) -> Iterator[np.ndarray]:
    """Its frames, [n, channels] float32, to one past what is used."""
    left = USED_SECONDS * sound.rate + 1
    while left:
        block = sound.read(min(left, BLOCK_SAMPLES // sound.channels))
        if not len(block):
            return
        left -= len(block)
        yield block


def _gather(name: str, rate: int, blocks: Iterable[np.ndarray]) -> _Sound:
    used = USED_SECONDS * rate
    mixed = np.empty(used + 1, np.float32)
    length, peak, clipped, count = 0, 0.0, 0, 0
    for block in blocks:
        clipped += _count_clipped(block)
        count += block.size
        peak = max(peak, _peak(block))
        with np.errstate(all="ignore"):  # what is not finite is refused later
            block.mean(axis=1, out=mixed[length : length + len(block)])
        length += len(block)
    samples = mixed[: min(length, used)]
    return _Sound(name, rate, samples, peak, clipped / max(count, 1), length > used)


def _count_clipped(block: np.ndarray) -> int:
    """Samples at full scale between two that are. In parts, which take less memory."""
    step = max(1, CLIPPING_SAMPLES // block.shape[1])
    found = 0
    for begin in range(0, len(block), step):
        part = block[begin : begin + step + 2]
        full = (part >= CLIPPED_LEVEL) | (part <= -CLIPPED_LEVEL)
        found += int(np.count_nonzero(full[:-2] & full[1:-1] & full[2:]))
    return found


def _peak(samples: np.ndarray) -> float:
    return max(float(samples.max(initial=0)), -float(samples.min(initial=0)))


def _refuse_unusable(sound: _Sound) -> None:
    if sound.duration < LEAST_SECONDS:
        raise ValueError(
            f"{sound.name} is {_seconds(sound.duration)} long; a voice needs {LEAST_SECONDS} s at "
            f"least and {ADVISED_SECONDS} s or more to be good"
        )
    if not np.isfinite(sound.samples).all():
        raise ValueError(f"{sound.name} holds samples that are not finite")
    if sound.peak > WRONG_SCALE_PEAK:
        raise ValueError(
            f"{sound.name} has samples up to {sound.peak:.6g}; expected -1 to 1 "
            "(16-bit samples kept as floats are to be divided by 32768)"
        )
    if _peak(sound.samples) < SILENT_PEAK:
        why = "is silent" if sound.peak < SILENT_PEAK else "has channels that cancel out"
        raise ValueError(
            f"{sound.name} {why}: it never reaches {20 * math.log10(SILENT_PEAK):.0f} dB of "
            "full scale in mono"
        )


def _warn_of_poor(sound: _Sound) -> None:
    def warn(fault: str) -> None:
        logger.warning("%s %s", sound.name, fault)

    if sound.longer:
        warn(f"is longer than {USED_SECONDS} s; what follows is not used")
    if sound.duration < ADVISED_SECONDS:
        warn(f"is {_seconds(sound.duration)} long; {ADVISED_SECONDS} s or more make a better voice")
    if sound.rate < ADVISED_RATE:
        warn(
            f"has {sound.rate} samples a second; "
            f"its voice will lack what is above {sound.rate // 2} Hz"
        )
    if sound.peak > 1:
        warn(f"has samples up to {sound.peak:.4g} of full scale; they are used as they are")
    elif sound.clipped > CLIPPED_SHARE:
        warn(f"is clipped: {100 * sound.clipped:.1f} % of its samples are stuck at full scale")
    if (seconds := _seconds_of_sound(sound)) < LEAST_SECONDS:
        warn(
            f"is almost silent: only {_seconds(seconds)} are within {SOUND_RANGE_DB} dB "
            "of the loudest"
        )


def _seconds(duration: float) -> str:
    """Rounded down, so that what is too short never reads as long enough."""
    return f"{math.floor(100 * duration) / 100:.2f} s"


def _seconds_of_sound(sound: _Sound) -> float:
    size = sound.rate // SOUND_FRAMES_PER_SECOND
    frames = sound.samples[: len(sound.samples) // size * size].reshape(-1, size)
    energy = np.einsum("fs,fs->f", frames, frames) / size
    share = np.mean(energy >= energy.max() * 10 ** (-SOUND_RANGE_DB / 10))
    return float(share) * sound.duration


def _resample(samples: np.ndarray, rate: int, new_rate: int) -> np.ndarray:
    """As librosa.resample does: soxr HQ, cut or filled with zeros to the length due."""
    if rate == new_rate:
        return samples
    import soxr

    length = math.ceil(len(samples) * (new_rate / rate))
    found = soxr.resample(samples, rate, new_rate, quality="HQ")[:length]
    return np.ascontiguousarray(np.pad(found, (0, length - len(found))))
