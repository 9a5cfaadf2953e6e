"""What a model cannot speak: characters of other scripts, emoji, signs it has no words for."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from unicodedata import category

from .characters import graphemes
from .segment import Segment
from .traced import Traced, joined

MOST_NAMED = 10  # characters in a message


class UnspokenWarning(UserWarning):
    """Characters of a text are left out of the speech."""


def speakable(
    segments: Sequence[Segment], reads: Callable[[str, str | None], bool]
) -> list[Segment]:
    """The segments without the characters that are not read.

    reads: whether the model reads a letter, digit or sign in a language; None: that of the text. A
    segment with no letter or digit left is only its pause.
    """
    kept: list[Segment] = []
    waiting: tuple[str, ...] = ()  # characters of segments that have gone
    for segment in segments:
        found = _speakable(segment, reads)
        found = replace(found, unspoken=waiting + found.unspoken)
        if found.text or found.pause or not segment.text:
            kept.append(found)
            waiting = ()
        else:
            waiting = found.unspoken
    if waiting:
        last = kept.pop() if kept else Segment(Traced(""), 0.0, "cut")
        kept.append(replace(last, unspoken=last.unspoken + waiting))
    return kept


def _speakable(segment: Segment, reads: Callable[[str, str | None], bool]) -> Segment:
    parts: list[Traced] = []
    dropped: list[str] = []
    for grapheme in graphemes(segment.text):
        if not _may_be_unknown(grapheme[0]) or reads(grapheme[0], segment.style.language):
            parts.append(grapheme)
        else:
            dropped.append(str(grapheme))
    text = joined(parts).collapsed() if dropped else segment.text
    return replace(segment, text=text if has_words(text) else Traced(""), unspoken=tuple(dropped))


def _may_be_unknown(character: str) -> bool:
    """Letters, numbers, signs and what Unicode leaves open; marks are read or passed over."""
    kind = category(character)
    return kind[0] in "LNS" or kind in ("Cn", "Co")


def has_words(text: str) -> bool:
    """Whether there is a letter or a number in a text."""
    return any(category(character)[0] in "LN" for character in text)


def named(characters: Sequence[str]) -> str:
    """Characters as a message names them: 好 (U+597D), 🙂 (U+1F642)."""
    shown = [f"{c} ({' '.join(f'U+{ord(part):04X}' for part in c)})" for c in characters]
    more = len(shown) - MOST_NAMED
    return ", ".join(shown[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def nothing_to_speak(dropped: Sequence[str], language: str, languages: Mapping[str, str]) -> str:
    """Why a text cannot be spoken at all."""
    known = ", ".join(f"{name} ({code})" for code, name in languages.items())
    if not dropped:
        return "there is no letter or number in the text, so that there is nothing to speak"
    return (
        f"this model cannot speak {named(dropped)} in {languages.get(language, language)}; "
        f"it speaks {known}"
    )
