"""Characters: which are spoken, about how long they take, and which a reader sees as one."""

import re
from functools import cache
from itertools import pairwise
from unicodedata import category, combining

from .traced import Traced, traced

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

# Characters that stand for a model's tags while a text is split: for private use in Unicode.
FIRST_STAND_IN = 0x100000
STAND_INS = "\U00100000-\U0010fffd"
_STAND_IN_SECONDS = 0.8  # of a laugh or a sigh

_SPOKEN_SYMBOLS = f"&@%§°$¢£¥€₩₹₽{STAND_INS}"
_SPOKEN = re.compile(rf"[^\W_]|[{_SPOKEN_SYMBOLS}]")
_REPEATED = re.compile(rf"([^\w\s{STAND_INS}]|_)\1{{4,}}")
_UNSPOKEN_RUN = re.compile(rf"([^\w{_SPOKEN_SYMBOLS}]{{24}})[^\w{_SPOKEN_SYMBOLS}]+")


@cache
def _seconds(character: str) -> float:
    kind = category(character)
    if ord(character) >= FIRST_STAND_IN:
        return _STAND_IN_SECONDS
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


def shorten_runs(text: Traced) -> Traced:
    """Shortens runs of unspoken marks, which take tokens: to 3 of a kind, to 24 in all."""
    return text.sub(_REPEATED, r"\1\1\1").sub(_UNSPOKEN_RUN, r"\1")


_ZWJ = "\u200d"
_VIRAMA_CLASS = 9  # the canonical combining class of signs that join two consonants


def graphemes(text: str) -> list[Traced]:
    """The text in graphemes: base and marks, emoji sequences, flags, Hangul jamo, conjuncts."""
    text = traced(text)
    starts: list[int] = []
    flags = 0  # regional indicators in a row; each pair is one flag
    previous = ""
    for i, character in enumerate(text):
        kind = _kind(character)
        flags = flags + 1 if kind == "flag" else 0
        if not (previous and _joins(previous, character, kind, flags)):
            starts.append(i)
        previous = character
    return [text[i:j] for i, j in pairwise([*starts, len(text)])]


def _joins(previous: str, character: str, kind: str, flags: int) -> bool:
    if kind == "extend" or previous == _ZWJ:
        return True
    if kind == "flag":
        return flags % 2 == 0
    if kind == "letter":
        return combining(previous) == _VIRAMA_CLASS
    return kind in _JOINED.get(_kind(previous), ())


# The kinds of character that each kind is joined to when they follow it.
_JOINED = {
    "lead": ("lead", "vowel", "open", "closed"),
    "vowel": ("vowel", "tail"),
    "open": ("vowel", "tail"),
    "closed": ("tail",),
    "tail": ("tail",),
    "high": ("low",),
}


@cache
def _kind(character: str) -> str:
    point = ord(character)
    if point < 0x300:
        return "other"
    if 0x1100 <= point <= 0x115F or 0xA960 <= point <= 0xA97C:
        return "lead"
    if 0x1160 <= point <= 0x11A7 or 0xD7B0 <= point <= 0xD7C6:
        return "vowel"
    if 0x11A8 <= point <= 0x11FF or 0xD7CB <= point <= 0xD7FB:
        return "tail"
    if 0xAC00 <= point <= 0xD7A3:
        return "open" if (point - 0xAC00) % 28 == 0 else "closed"
    if 0xD800 <= point <= 0xDFFF:
        return "high" if point < 0xDC00 else "low"
    if 0x1F1E6 <= point <= 0x1F1FF:
        return "flag"
    if _extends(character, point):
        return "extend"
    return "letter" if category(character) == "Lo" else "other"


def _extends(character: str, point: int) -> bool:
    return (
        category(character)[0] == "M"
        or point in (0x200C, 0x200D, 0x0E33, 0x0EB3, 0xFF9E, 0xFF9F)
        or 0x1F3FB <= point <= 0x1F3FF  # skin tones
        or 0xE0020 <= point <= 0xE007F  # tags of subdivision flags
    )
