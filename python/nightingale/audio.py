"""The result of synthesis."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import BinaryIO

import numpy as np

from .arguments import a_path, floats
from .audio_writer import audio_format, audio_writer, encoded
from .word_times import Word

SAMPLE_RATE = 24000
MOST_SHOWN = 40  # characters of a text in a repr
LONGEST_WAV = 60.0  # seconds of a player in a notebook whose sound is not compressed


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

    def save(self, file: str | Path | BinaryIO, format: str | None = None) -> None:
        """Writes a .wav, .flac, .ogg, .mp3, .opus or .m4a file, which appears whole or not at all.

        file: a path, or a file open for bytes. format: "wav" and so on, of an open file; None:
        what its name ends in, else wav.
        """
        samples = floats("samples", self.samples, (None,))
        if not isinstance(file, (str, Path)) and hasattr(file, "write"):
            kind = _format_of(file) if format is None else format
            file.write(encoded(samples, self.sample_rate, kind))
            return
        if format is not None:
            raise ValueError("format is that of an open file; a path has its own in its name")
        with audio_writer(a_path("file", file), self.sample_rate) as write:
            write(samples)

    def play(self) -> None:
        """Plays it and returns when it was heard: with sounddevice, else with a player of the
        system."""
        from .playback import play

        play(floats("samples", self.samples, (None,)), self.sample_rate)

    def to_srt(self) -> str:
        """Captions as a SubRip file: two lines of 42 characters, 1 to 7 s each."""
        from .captions import caption_file  # its patterns take a while to compile

        return caption_file("srt", self.words, self.written or self.text)

    def to_vtt(self) -> str:
        """Captions as a WebVTT file, with the same rules."""
        from .captions import caption_file

        return caption_file("vtt", self.words, self.written or self.text)

    def __repr__(self) -> str:
        told = f"{cut(self.text)!r}, " if self.text else ""
        return f"Audio({told}{self.duration:.2f} s, {len(self.tokens)} tokens)"

    def _repr_html_(self) -> str:
        """A player, in notebooks."""
        kind, media = ("wav", "wav") if self.duration <= LONGEST_WAV else ("mp3", "mpeg")
        samples = floats("samples", self.samples, (None,))
        data = base64.b64encode(encoded(samples, self.sample_rate, kind)).decode()
        return (
            f'<audio controls preload="metadata" src="data:audio/{media};base64,{data}"></audio>'
            f"<div>{escape(repr(self))}</div>"
        )


def cut(text: str) -> str:
    """A text as a repr shows it, cut where it is long."""
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 1]}…"


def _format_of(file: BinaryIO) -> str:
    """What the name of an open file asks for; wav where it has none."""
    name = getattr(file, "name", None)
    return audio_format(name) if isinstance(name, str) and Path(name).suffix else "wav"
