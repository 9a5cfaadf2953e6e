"""Gathers the text between a document's marks into passages."""

import re
from dataclasses import replace

from ..segment import PLAIN, Passage, Style
from ..traced import Traced, joined

_WHITE_SPACE = re.compile(r"\s")
_RANK = {"": 0, "sentence": 1, "paragraph": 2}

MOST_CHARACTERS = 1_000_000  # of a document with markup


class Collector:
    """What readers of markup hand their text to, in its order.

    White space is what markup makes of it: any of it is a space, and only `end` ends a paragraph.
    """

    def __init__(self) -> None:
        self._passages: list[Passage] = []
        self._parts: list[str] = []  # of the passage that is being gathered
        self._style = PLAIN
        self._between = ""  # a mark that more text must follow

    def separate(self, mark: str) -> None:
        """Puts a mark between what has come and what will, where both are of one passage."""
        if any(part.strip() for part in self._parts):
            self._between = mark

    def add(self, text: str, style: Style = PLAIN) -> None:
        """Text that continues what came before, unless its style differs. Plain strings are put in
        between and come from no part of the document."""
        if style != self._style:
            self._close()
            self._style = style
        if self._between and text.strip():
            self._parts.append(self._between)
            self._between = ""
        if isinstance(text, Traced):
            text = Traced(_WHITE_SPACE.sub(" ", text), text.starts, text.ends)
        self._parts.append(text)

    def end(self, kind: str) -> None:
        """Ends a "sentence" or a "paragraph"; where nothing new has come, the one before."""
        self._close(ends=kind)
        if self._passages and _RANK[kind] > _RANK[self._passages[-1].ends]:
            self._passages[-1] = replace(self._passages[-1], ends=kind)

    def pause(self, seconds: float) -> None:
        if not self._close(pause=seconds):
            self._passages.append(Passage(Traced(""), pause=seconds, style=self._style))

    def passages(self) -> list[Passage]:
        """All that was gathered."""
        self._close()
        return self._passages

    def _close(self, ends: str = "", pause: float | None = None) -> bool:
        """Whether there was text."""
        text = joined(self._parts)
        self._parts = []
        self._between = ""
        if not text.strip():
            return False
        self._passages.append(Passage(text, ends, pause, self._style))
        return True


def check_size(text: str) -> None:
    if len(text) > MOST_CHARACTERS:
        raise ValueError(
            f"a text with markup may have {MOST_CHARACTERS:,} characters, not {len(text):,}"
        )
