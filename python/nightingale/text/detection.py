"""Which of a model's languages a text is written in: by its script, else by its letters."""

from __future__ import annotations

import copy
import logging
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from unicodedata import category

from .._core import Error
from .characters import speaking_time
from .front_ends import Once

logger = logging.getLogger(__name__)

AUTO = "auto"
INSTALL = "pip install 'nightingale-tts[detection]'"
_MOST_READ = 5000  # characters of a text
_LATIN_WEIGHT = 0.25  # texts in other scripts name products and quote terms in Latin
_LEAST_KANA = 0.1  # of the Han beside it in Japanese; Chinese names have a stray の

# Blocks of letters, each with the last code point it has.
_BLOCKS: tuple[tuple[int, int, str], ...] = (
    (0x0041, 0x024F, "Latin"),
    (0x0250, 0x02FF, "Latin"),
    (0x0370, 0x03FF, "Greek"),
    (0x0400, 0x052F, "Cyrillic"),
    (0x0590, 0x05FF, "Hebrew"),
    (0x0600, 0x06FF, "Arabic"),
    (0x0750, 0x077F, "Arabic"),
    (0x08A0, 0x08FF, "Arabic"),
    (0x0900, 0x097F, "Devanagari"),
    (0x1100, 0x11FF, "Hangul"),
    (0x1C80, 0x1C8F, "Cyrillic"),
    (0x1D00, 0x1DBF, "Latin"),
    (0x1E00, 0x1EFF, "Latin"),
    (0x1F00, 0x1FFF, "Greek"),
    (0x3005, 0x3007, "Han"),
    (0x3040, 0x30FF, "kana"),
    (0x3130, 0x318F, "Hangul"),
    (0x31F0, 0x31FF, "kana"),
    (0x3400, 0x9FFF, "Han"),
    (0xA640, 0xA69F, "Cyrillic"),
    (0xA720, 0xA7FF, "Latin"),
    (0xA8E0, 0xA8FF, "Devanagari"),
    (0xAC00, 0xD7FF, "Hangul"),
    (0xF900, 0xFAFF, "Han"),
    (0xFB00, 0xFB06, "Latin"),
    (0xFB1D, 0xFB4F, "Hebrew"),
    (0xFB50, 0xFDFF, "Arabic"),
    (0xFE70, 0xFEFC, "Arabic"),
    (0xFF21, 0xFF5A, "Latin"),
    (0xFF66, 0xFF9F, "kana"),
    (0x20000, 0x3FFFF, "Han"),
)
_FIRSTS = [first for first, _, _ in _BLOCKS]

# The scripts of the models' languages that are not written in Latin.
_SCRIPTS = {
    "ar": ("Arabic",),
    "el": ("Greek",),
    "he": ("Hebrew",),
    "hi": ("Devanagari",),
    "ja": ("kana", "Han"),
    "ko": ("Hangul",),
    "ru": ("Cyrillic",),
    "zh": ("Han",),
}
# Tags and addresses say nothing of the language around them.
_TAG = re.compile(r"\[[^\[\]\n]*\](?!\()")
_ASCII_RUN = re.compile(r"[!-~]+")
_ADDRESS = re.compile(r"://|@|www\.", re.IGNORECASE)


def is_auto(language: object) -> bool:
    """Whether a language is to be detected."""
    return isinstance(language, str) and language.lower() == AUTO


def can_detect(languages: Iterable[str]) -> bool:
    """Whether `detect` has several languages to choose from and what it needs for that."""
    known = list(languages)
    latin = sum(language not in _SCRIPTS for language in known)
    return len(known) > 1 and (latin < 2 or find_spec("py3langid") is not None)


def detect(text: str, languages: Iterable[str]) -> str:
    """The language of a text among those given, the model's.

    Text without a letter of their scripts is taken for the model's first choice, English where it
    has it, with a warning.
    """
    known = list(languages)
    if len(known) == 1:
        return known[0]
    prose = _ASCII_RUN.sub(_without_address, _TAG.sub(" ", text[:_MOST_READ]))
    candidates = _by_script(prose, known)
    if not candidates:
        chosen = "en" if "en" in known else known[0]
        logger.warning("the language of the text cannot be told: it is read as %r", chosen)
        return chosen
    return candidates[0] if len(candidates) == 1 else _by_letters(prose, candidates)


def _without_address(run: re.Match[str]) -> str:
    return " " if _ADDRESS.search(run[0]) else run[0]


def _by_script(text: str, languages: Sequence[str]) -> list[str]:
    """The languages of the script that the text is in, by the time that its letters take."""
    users: dict[str, list[str]] = {}  # languages by script
    for language in languages:
        for script in _SCRIPTS.get(language, ("Latin",)):
            users.setdefault(script, []).append(language)
    seconds: dict[str, float] = {}
    for character, count in Counter(text).items():
        if (script := _script(character)) in users:
            spoken = count * speaking_time(character)
            weight = _LATIN_WEIGHT if script == "Latin" else 1.0
            seconds[script] = seconds.get(script, 0.0) + weight * spoken
    if "kana" in users:  # by Japanese, which is written in both
        kana, han = seconds.pop("kana", 0.0), seconds.pop("Han", 0.0)
        if kana > _LEAST_KANA * han or (han and "zh" not in languages):
            seconds["kana"] = kana + han
        elif han:
            seconds["Han"] = kana + han
            users["Han"].remove("ja")
    return users[max(seconds, key=lambda script: seconds[script])] if seconds else []


@cache
def _script(character: str) -> str:
    """The script of a letter; empty for what is none, or one of another script."""
    point = ord(character)
    place = bisect_right(_FIRSTS, point) - 1
    if place < 0 or point > _BLOCKS[place][1] or category(character)[0] != "L":
        return ""
    return _BLOCKS[place][2]


def _by_letters(text: str, languages: Sequence[str]) -> str:
    found: tuple[str, float] = _identifier(tuple(sorted(languages))).classify(text)
    return found[0]


@cache
def _identifier(languages: tuple[str, ...]) -> Any:
    """py3langid's, for these languages only; its model is read once."""
    identifier = copy.copy(_all_languages())
    identifier.set_languages(languages)
    return identifier


def _load() -> Any:
    try:
        package = import_module("py3langid.langid")
    except ModuleNotFoundError as error:
        raise Error(
            f'language="{AUTO}" needs {error.name} to tell languages of one script apart: {INSTALL}'
        ) from error
    return package.LanguageIdentifier.from_model_file(package.MODEL_FILE)


_all_languages = Once(_load)
