"""Korean: syllables as the letters they are made of."""

from __future__ import annotations

_FIRST, _LAST = 0xAC00, 0xD7AF  # the block's end, past the last syllable, as in the reference
_MEDIALS, _FINALS = 21, 28


def to_jamo(text: str) -> str:
    """Hangul syllables as two or three jamo each; no white space at the ends."""
    return "".join(_jamo(character) for character in text).strip()


def _jamo(character: str) -> str:
    index = ord(character) - _FIRST
    if not 0 <= index <= _LAST - _FIRST:
        return character
    initial, rest = divmod(index, _MEDIALS * _FINALS)
    medial, final = divmod(rest, _FINALS)
    pair = chr(0x1100 + initial) + chr(0x1161 + medial)
    return pair + chr(0x11A7 + final) if final else pair
