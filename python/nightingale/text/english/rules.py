"""Rules of expansion: patterns and what is spoken in their place."""

import re
from collections.abc import Callable

from ..abbreviations import abbreviations

# By pattern, in their order; a replacement is what `re.sub` takes.
Rules = dict[str, Callable[[re.Match[str]], str] | str]

_AT_END = re.compile(r"['\"”’»)\]]*(?:\s*\Z|\s*\n\s*\n)")
_NEXT_WORD = re.compile(r"['\"”’»)\]]*\s+['\"“‘«(]*([A-Z]\w*)")


def word_table(entries: str) -> dict[str, str]:
    """Spoken words by what is written for them: "yd yds: yard, mi: mile"."""
    table = {}
    for entry in entries.split(", "):
        written, spoken = entry.split(": ")
        table.update(dict.fromkeys(written.split(), spoken))
    return table


def ends_sentence(text: str, end: int) -> bool:
    """Whether a full stop right before `end` also ends the sentence."""
    if _AT_END.match(text, end):
        return True
    word = _NEXT_WORD.match(text, end)
    return word is not None and word[1] in abbreviations("en").starters


def kept_stop(match: re.Match[str]) -> str:
    """The stop of an abbreviation that is written out, where it also ends the sentence."""
    return "." if match[0].endswith(".") and ends_sentence(match.string, match.end()) else ""
