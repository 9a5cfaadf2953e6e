"""The segments of a text as token ids, each text tokenised once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from .segment import Encoded, Segment
from .tokenizer import COUNTED, Tokenizer
from .traced import traced


class SegmentEncoder:
    """Tokenises what one request needs: to measure its sentences, and to speak its segments.

    check: is called many times on the way, and ends the work where it raises.
    """

    def __init__(
        self, tokenizer: Tokenizer, language: str, check: Callable[[], None] | None = None
    ) -> None:
        self._tokenizer = tokenizer
        self._language = language
        self._check = check
        # By language and normalised text.
        self._read: dict[tuple[str, str], tuple[str, np.ndarray]] = {}

    def count_at_most(self, text: str, language: str) -> float:
        """A bound of `count` that is fast to compute."""
        self._go_on()
        return self._tokenizer.count_at_most(text, language)

    def count(self, text: str, language: str) -> int:
        """How many tokens a text has, whose tags may be hidden; of one that has to be split, about
        how many."""
        text = self._tokenizer.tags.shown(traced(text))
        if len(text) > COUNTED:
            return self._tokenizer.count(text, language, self._check)
        self._go_on()
        return len(self._ids(self._tokenizer.normalised(text), language)[1])

    def encoded(self, segments: Sequence[Segment]) -> list[Segment]:
        """The segments with their token ids; one that is only a pause has none."""
        return [
            replace(segment, encoded=self._encoded(segment)) if segment.text else segment
            for segment in segments
        ]

    def _encoded(self, segment: Segment) -> Encoded:
        self._go_on()
        written = self._tokenizer.normalised(segment.said)
        language = segment.style.language or self._language
        read, ids = self._ids(written, language)
        return self._tokenizer.with_words(written, read, ids, language)

    def _ids(self, written: str, language: str) -> tuple[str, np.ndarray]:
        found = self._read.get((language, written))
        if found is None:
            found = self._tokenizer.read_ids(str(written), language)
            self._read[language, str(written)] = found
        return found

    def _go_on(self) -> None:
        if self._check is not None:
            self._check()
