"""What becomes of the chunks of a text: one audio, or a stream with warnings."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterator

import numpy as np

from ._core import Error
from .audio import Audio
from .model_rules import IgnoredOptionWarning, ignored_text
from .options import SpeechOptions
from .speech import Chunk
from .text.markup import without_markup
from .text.unspoken import UnspokenWarning, named


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
