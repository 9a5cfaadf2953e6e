"""The result of synthesis."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from .arguments import a_path, floats
from .audio_writer import audio_writer
from .word_times import Word

SAMPLE_RATE = 24000


@dataclass(frozen=True, eq=False)
class Audio:
    """Generated speech, its tokens, word times and timings."""

    samples: np.ndarray  # [n] float32, mono, in [-1, 1]
    tokens: np.ndarray  # [m] int32, the speech tokens
    timings: dict[str, float] = field(default_factory=dict)  # seconds by stage, and rtf
    sample_rate: int = SAMPLE_RATE
    words: list[Word] = field(default_factory=list)  # with start and end in seconds

    @property
    def duration(self) -> float:
        """Seconds."""
        return len(self.samples) / self.sample_rate

    def save(self, path: str | Path) -> None:
        """Writes a .wav, .flac, .ogg or .mp3 file, which appears whole or not at all."""
        with audio_writer(a_path("path", path), self.sample_rate) as write:
            write(floats("samples", self.samples, (None,)))

    def __repr__(self) -> str:
        return f"Audio({self.duration:.2f} s, {len(self.tokens)} tokens)"
