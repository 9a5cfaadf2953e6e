"""Tables of words as compact text, and the full stop of an abbreviation at a sentence's end."""

import re
from collections.abc import Iterable

from ..abbreviations import LAST, abbreviations

_AT_END = re.compile(r"['\"”’»)\]]*(?:\s*\Z|\s*\n\s*\n)")
_NEXT_WORD = re.compile(r"['\"”’»)\]]*\s+['\"“‘«(]*([^\W\d_]+)")


def word_table(entries: str) -> dict[str, str]:
    """Spoken words by what is written for them: "yd yds: yard, mi: mile"."""
    table = {}
    for entry in entries.split(", "):
        written, spoken = entry.split(": ")
        table.update(dict.fromkeys(written.split(), spoken))
    return table


def either(written: Iterable[str]) -> str:
    """A pattern of any of these, longest first."""
    return "|".join(re.escape(entry) for entry in sorted(written, key=len, reverse=True))


def ends_sentence(text: str, end: int, language: str = "en") -> bool:
    """Whether a full stop right before `end` also ends the sentence."""
    if _AT_END.match(text, end):
        return True
    word = _NEXT_WORD.match(text, end)
    return word is not None and word[1] in abbreviations(language).starters


def kept_stop(match: re.Match[str], language: str = "en") -> str:
    """The stop of an abbreviation that is written out, where it also ends the sentence."""
    written, text, end = match[0], match.string, match.end()
    if not written.endswith("."):
        return ""
    if ends_sentence(text, end, language):
        return "."
    following = _NEXT_WORD.match(text, end)
    capital = following is not None and following[1][0].isupper()
    return "." if capital and abbreviations(language).kind(written[:-1]) == LAST else ""
