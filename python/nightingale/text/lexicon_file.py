"""The file of a lexicon: a word or phrase and its respelling a line, in sections by language."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple
from unicodedata import category, normalize

from ..checkpoint import LANGUAGES
from ..language_tags import language_code
from ..option import shown
from ..small_files import read_small

MOST_BYTES = 2_000_000  # of a file
MOST_WORD, MOST_SPELLED = 100, 300  # characters
MOST_PRIORITY = 1000
ANY_LANGUAGE = "*"
_SECTION = re.compile(r"\[\s*([^\[\]]*?)\s*\]")
_SEPARATOR = re.compile(r"(?<!\S)=(?!\S)")
_MARKS = re.compile(r"\s\{([^{}]*)\}$")
_PRIORITY = re.compile(r"priority\s+(-?[0-9]{1,6})")


class Entry(NamedTuple):
    """How one word or phrase is written for the model."""

    word: str
    spelled: str
    language: str | None = None  # None: in all
    any_case: bool = True
    priority: int = 0


def read_entries(path: Path) -> list[Entry]:
    """The entries of a file; a ValueError names the line that is wrong."""
    content = read_small(path, MOST_BYTES).removeprefix(b"\xef\xbb\xbf")
    lines: dict[tuple[Any, ...], int] = {}  # by word, language and case
    entries: list[Entry] = []
    language: str | None = None
    for number, line in enumerate(re.split(rb"\r\n|\r|\n", content), 1):
        try:
            text = _decoded(line)
            if not text or text.startswith("#"):
                continue
            if text.startswith("["):
                language = _language(text)
                continue
            entry = _entry(text, language)
            first = lines.setdefault((entry.word, entry.language, entry.any_case), number)
            if first != number:
                raise ValueError(f"{shown(entry.word)} is there before, in line {first}")
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {error}") from None
        entries.append(entry)
    return entries


def checked_entry(
    word: Any, spelled: Any, language: str | None = None, any_case: bool | None = None
) -> Entry:
    """An entry, or a ValueError that says what is wrong. any_case: None is by the word, which is
    found in any case where it has no capital itself."""
    for name, given, most in (("word", word, MOST_WORD), ("respelling", spelled, MOST_SPELLED)):
        if not isinstance(given, str):
            raise ValueError(f"the {name} must be a string, not {shown(given)}")
        if len(given) > most:
            raise ValueError(f"the {name} has {len(given)} characters; {most} are the most")
        if any(category(c) in ("Cc", "Cs") and not c.isspace() for c in given):
            raise ValueError(f"the {name} {shown(given)} has control characters")
        if "[" in given or "]" in given:
            raise ValueError(f"the {name} {shown(given)} has brackets, which mark pauses")
    if not word.strip():
        raise ValueError(f"there is no word before the respelling {shown(spelled)}")
    if category(normalize("NFC", word.strip())[0])[0] == "M":
        raise ValueError(f"the word {shown(word)} begins with a combining mark")
    if not any(category(c)[0] in "LN" for c in spelled):
        raise ValueError(f"the respelling of {shown(word)} has no letter: {shown(spelled)}")
    word = " ".join(normalize("NFC", word).split())
    if any_case is None:
        any_case = not any(category(c) in ("Lu", "Lt") for c in word)
    return Entry(word, " ".join(spelled.split()), language, any_case)


def _decoded(line: bytes) -> str:
    try:
        return line.decode().strip()
    except UnicodeDecodeError as error:
        raise ValueError(f"is not text in UTF-8: see its byte {error.start + 1}") from None


def _language(text: str) -> str | None:
    section = _SECTION.fullmatch(text)
    if section is None:
        raise ValueError(f"{shown(text)} is no section: write [en], or [{ANY_LANGUAGE}] for all")
    code = language_code(section[1])
    if code == ANY_LANGUAGE:
        return None
    if code not in LANGUAGES:
        known = ", ".join(LANGUAGES)
        raise ValueError(f"unknown language {shown(section[1])}; expected * or one of {known}")
    return code


def _entry(text: str, language: str | None) -> Entry:
    marks: list[str] = []
    while found := _MARKS.search(text):
        marks += (mark.strip() for mark in found[1].split(","))
        text = text[: found.start()].rstrip()
    separator = _SEPARATOR.search(text)
    if separator is None:
        raise ValueError(f"write WORD = RESPELLING, with spaces around =, not {shown(text)}")
    word, spelled = text[: separator.start()].rstrip(), text[separator.end() :].lstrip()
    any_case: bool | None = None
    priority = 0
    for mark in marks:
        if mark in ("exact", "any case"):
            any_case = mark == "any case"
        elif (number := _PRIORITY.fullmatch(mark)) and abs(int(number[1])) <= MOST_PRIORITY:
            priority = int(number[1])
        else:
            raise ValueError(
                f"unknown mark {shown(mark)}; expected exact, any case or priority N, where N is "
                f"between -{MOST_PRIORITY} and {MOST_PRIORITY}"
            )
    return checked_entry(word, spelled, language, any_case)._replace(priority=priority)
