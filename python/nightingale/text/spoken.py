"""What of a text has a sound."""

from __future__ import annotations

import re

_SYMBOLS = "&@%§°$¢£¥€₩₹₽"
_SPOKEN = re.compile(rf"[^\W_]|[{_SYMBOLS}]")
_REPEATED = re.compile(r"([^\w\s]|_)\1{4,}")
_UNSPOKEN_RUN = re.compile(rf"([^\w{_SYMBOLS}]{{24}})[^\w{_SYMBOLS}]+")


def is_spoken(text: str) -> bool:
    """Whether there is anything to say: a letter, a digit or a symbol that is read."""
    return _SPOKEN.search(text) is not None


def shorten_runs(text: str) -> str:
    """Cuts long rows of marks: they have no sound but cost tokens. Three alike stay, or 24."""
    return _UNSPOKEN_RUN.sub(r"\1", _REPEATED.sub(r"\1\1\1", text))
