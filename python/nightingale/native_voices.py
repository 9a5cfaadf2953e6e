"""What the names of voices such as af_heart say: their native language, accent and sex."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

Sex = Literal["female", "male"]

# By the first letter.
_LANGUAGES = {"a": "en", "b": "en", "e": "es", "f": "fr", "i": "it", "p": "pt"}
_ACCENTS = {
    "a": "American English",
    "b": "British English",
    "e": "Spanish",
    "f": "French",
    "i": "Italian",
    "p": "Brazilian Portuguese",
}
_SEXES: dict[str, Sex] = {"f": "female", "m": "male"}
_PEOPLE = {"f": "woman", "m": "man"}
_NAME = re.compile(r"([a-z])([fm])_(\w+)")


def native_language(voice: str) -> str | None:
    """The code of the language that a voice was made with; None: its name does not say."""
    found = _NAME.fullmatch(voice)
    return _LANGUAGES.get(found[1]) if found else None


def sex_of(voice: str) -> Sex | None:
    """Of a voice; None: its name does not say."""
    found = _NAME.fullmatch(voice)
    return _SEXES[found[2]] if found and found[1] in _LANGUAGES else None


def title_of(voice: str) -> str:
    """What a person is shown, such as "Emma, British English, woman"; the name itself where it does
    not say."""
    found = _NAME.fullmatch(voice)
    if found is None or found[1] not in _ACCENTS:
        return voice
    given = found[3].replace("_", " ").title()
    return f"{given}, {_ACCENTS[found[1]]}, {_PEOPLE[found[2]]}"


def has_title(voice: str, title: str) -> bool:
    """Whether people are shown this for a voice, in any case. A voice whose name does not say who
    speaks has no title."""
    own = title_of(voice)
    return own != voice and own.casefold() == title.casefold()


def voice_titled(title: str, voices: Iterable[str]) -> str | None:
    """The voice with this title; None: there is none, or several."""
    found = {voice for voice in voices if has_title(voice, title)}
    return found.pop() if len(found) == 1 else None


def native_voice(voices: Iterable[str], language: str, sex: str | None = None) -> str | None:
    """The first of the voices that is native in a language, one of this sex where there is one."""
    native = [name for name in voices if native_language(name) == language]
    same = [name for name in native if sex and sex_of(name) == sex]
    return next(iter(same or native), None)
