"""The chunks of a text and what becomes of them: one audio, or a stream with warnings."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field

import numpy as np

from ._core import Error
from .audio import SAMPLE_RATE, Audio, cut
from .model_rules import IgnoredOptionWarning, ignored_text
from .options import SpeechOptions
from .text.markup import without_markup
from .text.unspoken import UnspokenWarning, named
from .word_times import Word


@dataclass(frozen=True, eq=False)
class Chunk:
    """A part of the speech as it comes."""

    samples: np.ndarray  # [n] float32, mono, in [-1, 1]
    tokens: np.ndarray  # [m] int32, the speech tokens new since the last chunk
    words: list[Word]  # that ended in it, with times in seconds of the whole
    index: int
    timings: dict[str, float] = field(default_factory=dict)  # seconds by stage up to here, and rtf
    unspoken: list[str] = field(default_factory=list)  # left out of the text; in the first chunk
    ignored: list[str] = field(default_factory=list)  # options without effect; in the first chunk
    sample_rate: int = SAMPLE_RATE
    text_tokens: int = 0  # of the sentence that begins with it
    language: str = ""  # code of the language that the text is read in

    def __repr__(self) -> str:
        said = " ".join(word.text for word in self.words)
        told = f", {cut(said)!r}" if said else ""
        seconds = len(self.samples) / self.sample_rate
        return f"Chunk({self.index}, {seconds:.2f} s, {len(self.tokens)} tokens{told})"


def whole_audio(chunks: list[Chunk], text: str, options: SpeechOptions) -> Audio:
    """All chunks of a text as one."""
    if not chunks:
        raise Error("the model said nothing: try another seed or a longer text")
    return Audio(
        np.concatenate([chunk.samples for chunk in chunks]),
        np.concatenate([chunk.tokens for chunk in chunks]),
        chunks[-1].timings,
        text=text,
        language=chunks[0].language,
        written=without_markup(text, chunks[0].language, options.markup),
        unspoken=chunks[0].unspoken,
        words=[word for chunk in chunks for word in chunk.words],
    )


def without_steps(spoken: Iterator[Chunk | None]) -> Generator[Chunk, None, None]:
    for chunk in spoken:
        if chunk is not None:
            warn_of(chunk)
            yield chunk


def with_warnings(spoken: Iterator[Chunk | None]) -> Iterator[Chunk | None]:
    for chunk in spoken:
        if chunk is not None:
            warn_of(chunk)
        yield chunk


def warn_of(chunk: Chunk) -> None:
    """For whoever called the caller."""
    if chunk.unspoken:
        message = f"left out of the speech: {named(chunk.unspoken)}"
        warnings.warn(message, UnspokenWarning, stacklevel=3)
    if chunk.ignored:
        warnings.warn(ignored_text(chunk.ignored), IgnoredOptionWarning, stacklevel=3)
