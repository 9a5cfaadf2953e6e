"""What a reader sees as one character, so that no cut falls inside it."""

from functools import cache
from unicodedata import category, combining

_ZWJ = "\u200d"
_VIRAMA_CLASS = 9  # the canonical combining class of signs that join two consonants


def graphemes(text: str) -> list[str]:
    """The text in graphemes: base and marks, emoji sequences, flags, Hangul jamo, conjuncts."""
    found: list[str] = []
    flags = 0  # regional indicators in a row; each pair is one flag
    previous = ""
    for character in text:
        kind = _kind(character)
        flags = flags + 1 if kind == "flag" else 0
        if previous and _joins(previous, character, kind, flags):
            found[-1] += character
        else:
            found.append(character)
        previous = character
    return found


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
