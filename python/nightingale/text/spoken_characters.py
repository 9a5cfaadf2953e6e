"""Which characters of a text are spoken, and about how long they take."""

import re
from functools import cache
from unicodedata import category

# Characters a second of ordinary reading. Unwritten vowels make Arabic and Hebrew slower by the
# letter; a digit or a symbol is a word of its own.
_LETTER, _ABJAD, _DEVANAGARI, _KANA, _SYLLABLE, _HAN = 14.0, 10.0, 11.0, 7.5, 5.5, 4.5
_DIGIT, _SYMBOL = 3.0, 2.5

_SCRIPTS = (
    (0x0590, 0x077F, _ABJAD),
    (0x08A0, 0x08FF, _ABJAD),
    (0x0900, 0x0D7F, _DEVANAGARI),
    (0x3040, 0x30FF, _KANA),
    (0x31F0, 0x31FF, _KANA),
    (0x3400, 0x9FFF, _HAN),
    (0xAC00, 0xD7A3, _SYLLABLE),
    (0xF900, 0xFAFF, _HAN),
    (0xFB1D, 0xFDFF, _ABJAD),
    (0xFE70, 0xFEFC, _ABJAD),
    (0xFF66, 0xFF9F, _KANA),
    (0x20000, 0x3FFFF, _HAN),
)

_SPOKEN_SYMBOLS = "&@%§°$¢£¥€₩₹₽"
_SPOKEN = re.compile(rf"[^\W_]|[{_SPOKEN_SYMBOLS}]")
_REPEATED = re.compile(r"([^\w\s]|_)\1{4,}")
_UNSPOKEN_RUN = re.compile(rf"([^\w{_SPOKEN_SYMBOLS}]{{24}})[^\w{_SPOKEN_SYMBOLS}]+")


@cache
def _seconds(character: str) -> float:
    kind = category(character)
    if kind[0] == "N":
        return 1 / _DIGIT
    if kind in ("Sc", "Sm") or character in "%&@#§°":
        return 1 / _SYMBOL
    if kind == "Zs":
        return 1 / _LETTER
    if kind[0] != "L":
        return 0.0
    point = ord(character)
    for first, last, rate in _SCRIPTS:
        if first <= point <= last:
            return 1 / rate
    return 1 / _LETTER


def speaking_time(text: str) -> float:
    """Seconds that an average reader takes, without the pauses at punctuation."""
    return sum(map(_seconds, text))


def is_spoken(text: str) -> bool:
    """Whether a text has a letter, a digit or a symbol that is read."""
    return _SPOKEN.search(text) is not None


def shorten_runs(text: str) -> str:
    """Shortens runs of unspoken marks, which take tokens: to 3 of a kind, to 24 in all."""
    return _UNSPOKEN_RUN.sub(r"\1", _REPEATED.sub(r"\1\1\1", text))
