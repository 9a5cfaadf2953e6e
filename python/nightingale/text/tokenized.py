"""A text as tokenised segments: all that happens to it before T3 reads it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from .encoded import SegmentEncoder
from .lexicon import Lexicon
from .markup import passages_of
from .segment import Segment
from .segments import prepare_passages
from .tokenizer import Tokenizer
from .unspoken import nothing_to_speak, speakable


def tokenized_segments(
    tokenizer: Tokenizer,
    text: str,
    language: str,
    *,
    lexicon: Lexicon | None = None,
    markup: str | None = None,
    find_voice: Callable[[str], Any] = str,
    check: Callable[[], None] | None = None,
) -> list[Segment]:
    """The sentences of a text with their pauses and token ids; see `TTS.prepare`.

    language: a code of the tokenizer's.
    """
    known, tags = tokenizer.known_language, tokenizer.tags
    passages = [
        replace(passage, text=tags.hidden(passage.text))
        for passage in passages_of(text, language, markup, known, find_voice)
    ]
    encoder = SegmentEncoder(tokenizer, language, check)
    segments = [
        replace(segment, text=tags.shown(segment.text))
        for segment in prepare_passages(
            passages,
            language,
            encoder.count,
            count_at_most=encoder.count_at_most,
            lexicon=lexicon,
        )
    ]
    found = speakable(segments, lambda character, own: tokenizer.reads(character, own or language))
    if not any(segment.text for segment in found) and any(s.text for s in segments):
        unspoken = list(dict.fromkeys(c for segment in found for c in segment.unspoken))
        raise ValueError(nothing_to_speak(unspoken, language, tokenizer.languages))
    return encoder.encoded(found)
