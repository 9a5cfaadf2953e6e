"""Recordings to bake voices of: kept ones, made in code, and those of Debian's synthesisers."""

from __future__ import annotations

import shutil
import subprocess
import wave
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tools.synthetic import uniform

SYLLABLE = 0.16  # seconds
HARMONICS = 24
FORMANTS = ((250, 850), (800, 2400), (2300, 3300))  # Hz
BANDWIDTHS = (90, 140, 220)


@dataclass(frozen=True)
class MadeUp:
    """A speech-like sound: equal to the last bit wherever it is made, but for rare rounding."""

    name: str
    seconds: float
    rate: int
    channels: int
    pitch: float  # Hz

    def write(self, folder: Path) -> Path:
        path = folder / f"{self.name}.wav"
        write_wav(path, self.samples(), self.rate)
        return path

    def samples(self) -> np.ndarray:
        """int16 [n, channels]."""
        time = np.arange(round(self.seconds * self.rate)) / self.rate
        place = time / SYLLABLE
        pitch = self.pitch * along(place, self.drawn("pitch", 0.75, 1.35))
        formants = [along(place, self.drawn(f"formant {low}", low, high)) for low, high in FORMANTS]
        loudness = self.drawn("loudness", -0.15, 1.0)  # below 0 is a pause
        loudness = along(place, np.maximum(loudness, 0.0))[:, None]
        breath = along(place, self.drawn("breath", 0.0, 0.06))[:, None] * loudness + 0.0005
        noise = uniform(0, f"{self.name} noise", (len(time), self.channels)).astype(np.float64)
        voiced = harmonics(np.cumsum(pitch / self.rate), pitch, formants, self.rate / 2)
        # A second channel hears less of the voice.
        balance = np.linspace(1.0, 0.7, self.channels)
        mixed = voiced[:, None] * loudness * balance + breath * noise
        return np.clip(np.round(mixed * 2**15), -(2**15), 2**15 - 1).astype(np.int16)

    def drawn(self, what: str, low: float, high: float) -> np.ndarray:
        """A number for the start of each syllable, and for the end of the last."""
        syllables = int(self.seconds / SYLLABLE) + 2
        unit = uniform(0, f"{self.name} {what}", (syllables,)).astype(np.float64)
        return low + (high - low) * (0.5 * unit + 0.5)


def harmonics(
    cycles: np.ndarray, pitch: np.ndarray, formants: Sequence[np.ndarray], nyquist: float
) -> np.ndarray:
    """The sum of a pitch's harmonics, each as loud as the formants near it make it."""
    sound = np.zeros_like(pitch)
    for harmonic in range(1, HARMONICS + 1):
        frequency = harmonic * pitch
        gain = np.zeros_like(pitch)
        for centre, width in zip(formants, BANDWIDTHS, strict=True):
            distance = (frequency - centre) / width
            gain += 1 / (1 + distance * distance)
        gain[frequency >= nyquist] = 0.0
        sound += 0.2 * gain * sine(harmonic * cycles) / np.sqrt(harmonic)
    return sound


def along(place: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Straight lines between points, at places counted in points."""
    before = place.astype(int)
    return points[before] + (place - before) * (points[before + 1] - points[before])


def sine(cycles: np.ndarray) -> np.ndarray:
    """Within 0.001 of sin(2πx) by parabolas alone, which IEEE defines to the last bit."""
    turn = cycles - np.floor(cycles + 0.5)
    arch = 8 * turn * (1 - 2 * np.abs(turn))
    return arch + 0.225 * arch * (np.abs(arch) - 1)


def write_wav(path: Path, samples: np.ndarray, rate: int) -> None:
    """samples: int16 [n, channels]."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(samples.shape[1])
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(samples.astype("<i2").tobytes())


KEPT = (
    MadeUp("low", 12.0, 24_000, 1, pitch=110.0),
    MadeUp("short", 3.0, 16_000, 1, pitch=210.0),
    MadeUp("stereo", 7.0, 44_100, 2, pitch=150.0),
)
# Of the prompt's mel: both edges, where the sound is reflected, and some of the frames between.
KEPT_EDGE, KEPT_EVERY = 4, 8


def kept_frames(mel: np.ndarray) -> np.ndarray:
    """[frames, 80] cut down to the frames that are kept beside the tests."""
    middle = mel[KEPT_EDGE:-KEPT_EDGE:KEPT_EVERY]
    return np.concatenate([mel[:KEPT_EDGE], middle, mel[-KEPT_EDGE:]])


@dataclass(frozen=True)
class Spoken:
    """A text read out by a speech synthesiser; its command ends with the name of the file."""

    name: str
    command: tuple[str, ...]
    text: str

    @property
    def installed(self) -> bool:
        return shutil.which(self.command[0]) is not None

    def write(self, folder: Path) -> Path:
        path = folder / f"{self.name}.wav"
        command = [*self.command, str(path)]
        subprocess.run(command, input=self.text, text=True, check=True, capture_output=True)
        return path


HARVARD = (
    "The birch canoe slid on the smooth planks. Glue the sheet to the dark blue background. "
    "It is easy to tell the depth of a well. These days a chicken leg is a rare dish. "
    "Rice is often served in round bowls. The juice of lemons makes fine punch. "
    "The box was thrown beside the parked truck. The hogs were fed chopped corn and garbage. "
)
SPOKEN = (
    # 22 kHz, 23 s
    Spoken("espeak english", ("espeak-ng", "-v", "en-us", "-s", "150", "-w"), HARVARD),
    # 22 kHz, 4 s, another language and throat
    Spoken(
        "espeak french",
        ("espeak-ng", "-v", "fr+f3", "-s", "160", "-w"),
        "Bonjour, je voudrais une chambre pour deux personnes, avec vue sur la mer.",
    ),
    # 16 kHz, 7 s. Not of voice slt: near 8 kHz it is so quiet beside the rest of it that the
    # reference's mel is 1e-3 from one computed in float64.
    Spoken(
        "flite awb",
        ("flite", "-voice", "awb", "-f", "/dev/stdin", "-o"),
        "The boy was there when the sun rose. A rod is used to catch pink salmon. "
        "The source of the huge river is the clear spring.",
    ),
    # 8 kHz, 2 s
    Spoken(
        "flite kal",
        ("flite", "-voice", "kal", "-f", "/dev/stdin", "-o"),
        "Kick the ball straight and follow through.",
    ),
    # 48 kHz, 12 s
    Spoken("festival", ("text2wave", "-F", "48000", "-o"), HARVARD[: HARVARD.index("Rice")]),
)
