"""What synthesis gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ._core import Error
from .tensor_writers import atomic_path

SAMPLE_RATE = 24000
FORMATS = ("wav", "flac", "ogg", "mp3")


@dataclass(frozen=True, eq=False)
class Audio:
    """Speech, how it came about and how long that took."""

    samples: np.ndarray  # [n] float32, mono, in [-1, 1]
    tokens: np.ndarray  # [m] int32, the speech tokens
    timings: dict[str, float] = field(default_factory=dict)  # seconds by stage, and rtf
    sample_rate: int = SAMPLE_RATE

    @property
    def duration(self) -> float:
        """Seconds."""
        return len(self.samples) / self.sample_rate

    def save(self, path: str | Path) -> None:
        """Writes a .wav, .flac, .ogg or .mp3 file, which appears whole or not at all."""
        import soundfile

        path = Path(path)
        kind = path.suffix.lstrip(".").lower()
        if kind not in FORMATS:
            raise ValueError(f"{path.name} must end in one of .{', .'.join(FORMATS)}")
        try:
            with atomic_path(path) as partial:
                soundfile.write(partial, self.samples, self.sample_rate, format=kind.upper())
        except soundfile.LibsndfileError as error:
            raise Error(f"cannot write {path}: {error}") from error

    def __repr__(self) -> str:
        return f"Audio({self.duration:.2f} s, {len(self.tokens)} tokens)"
