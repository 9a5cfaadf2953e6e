"""`[pause 500ms]` marks: silence a text asks for."""

from __future__ import annotations

import re

DEFAULT = 0.5  # seconds of a bare [pause]
LONGEST = 30.0

_MARK = re.compile(r"\[\s*pause(?![a-z_])([^\[\]]*)\]", re.IGNORECASE)
_LENGTH = re.compile(r"\s+([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*(ms|s)\s*", re.IGNORECASE)


def split_pauses(text: str) -> list[tuple[str, float]]:
    """The text between the marks, each with the seconds of silence asked for after it."""
    parts = []
    start = 0
    for mark in _MARK.finditer(text):
        parts.append((text[start : mark.start()], _seconds(mark)))
        start = mark.end()
    parts.append((text[start:], 0.0))
    return parts


def _seconds(mark: re.Match[str]) -> float:
    if not mark[1].strip():
        return DEFAULT
    length = _LENGTH.fullmatch(mark[1])
    seconds = LONGEST + 1
    if length is not None:
        seconds = float(length[1]) / (1000 if length[2].lower() == "ms" else 1)
    if seconds > LONGEST:
        raise ValueError(
            f"{mark[0]!r} is no pause: write [pause], [pause 500ms] or [pause 1.5s], "
            f"at most {LONGEST:g} s"
        )
    return seconds
