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
    text: str = ""  # that was spoken, as it was given
    language: str = ""  # code of the language it was read in
    written: str = ""  # the same with spaces in place of markup; each character is where it was
    unspoken: list[str] = field(default_factory=list)  # characters of it that were left out
    words: list[Word] = field(default_factory=list)  # with times and places in the text

    @property
    def duration(self) -> float:
        """Seconds."""
        return len(self.samples) / self.sample_rate

    def save(self, path: str | Path) -> None:
        """Writes a .wav, .flac, .ogg or .mp3 file, which appears whole or not at all."""
        with audio_writer(a_path("path", path), self.sample_rate) as write:
            write(floats("samples", self.samples, (None,)))

    def to_srt(self) -> str:
        """Captions as a SubRip file: two lines of 42 characters, 1 to 7 s each."""
        from .captions import caption_file  # its patterns take a while to compile

        return caption_file("srt", self.words, self.written or self.text)

    def to_vtt(self) -> str:
        """Captions as a WebVTT file, with the same rules."""
        from .captions import caption_file

        return caption_file("vtt", self.words, self.written or self.text)

    def __repr__(self) -> str:
        return f"Audio({self.duration:.2f} s, {len(self.tokens)} tokens)"
