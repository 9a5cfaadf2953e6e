"""Pauses: their marks in a text, `[pause 500ms]`, and how long they may be."""

import re
from collections.abc import Iterator
from dataclasses import replace

from .segment import Passage

DEFAULT = 0.5  # seconds of a bare [pause]
LONGEST = 30.0  # of one mark, and of all that nothing spoken stands between

PAUSE_MARK = re.compile(r"\[\s*pause(?![a-z_])([^\[\]]*)\]", re.IGNORECASE)
# After a colon the unit may be left out: seconds.
_LENGTH = re.compile(
    r"(?:\s+(?=.*s)|\s*:\s*)([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*(ms|s|)\s*", re.IGNORECASE
)


def split_pauses(passage: Passage) -> Iterator[Passage]:
    """The passage in parts, each of which but the last ends with a pause mark."""
    start = 0
    for mark in PAUSE_MARK.finditer(passage.text):
        yield replace(
            passage, text=passage.text[start : mark.start()], ends="", pause=_seconds(mark)
        )
        start = mark.end()
    yield replace(passage, text=passage.text[start:])


def together(first: float, second: float) -> float:
    """The seconds of two pauses in a row."""
    return min(first + second, LONGEST)


def _seconds(mark: re.Match[str]) -> float:
    if not mark[1].strip():
        return DEFAULT
    length = _LENGTH.fullmatch(mark[1])
    seconds = LONGEST + 1
    if length is not None:
        seconds = float(length[1]) / (1000 if length[2].lower() == "ms" else 1)
    if seconds > LONGEST:
        raise ValueError(
            f"{mark[0]!r} is no pause: write [pause], [pause 500ms], [pause 1.5s] or [pause:1.5], "
            f"at most {LONGEST:g} s"
        )
    return seconds
