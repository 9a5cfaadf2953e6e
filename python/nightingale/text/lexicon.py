"""How words are to be read: a lexicon of words and phrases, each with its respelling."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, Union
from unicodedata import category, normalize

from ..arguments import a_path
from ..option import shown
from .lexicon_file import Entry, checked_entry, read_entries
from .traced import Traced, joined, traced

MOST_ENTRIES = 50_000  # of all files together
_WHOLE = re.compile(r"\A.*\Z", re.DOTALL)
# [pause 500ms], [laughter]: not text, unless a link's address follows.
_TAG = re.compile(r"\[\s*[A-Za-z][^\[\]\n]*\](?!\()")
_CONTRACTION = re.compile(r"['’]t\b", re.IGNORECASE)  # of won't, which is not the word "won"
_BETWEEN = r"(?:[^\S\n]+|[^\S\n]*\n[^\S\n]*)"  # two parts of a phrase
_APOSTROPHES = re.compile("['’]")
# Scripts without spaces between words: Han, kana, Thai, Lao, Khmer, Burmese.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff"
    "\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)
_HANGUL = re.compile("[\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3]")


class _Found(NamedTuple):
    """An entry that applies to a part of a text."""

    start: int
    end: int
    entry: Entry
    order: int  # of the entry; a later one wins

    @property
    def rank(self) -> tuple[int, int, bool, bool, int, int]:
        """Which of several is used: the smallest."""
        entry = self.entry
        length = self.end - self.start
        shared = entry.language is None
        return (-entry.priority, -length, entry.any_case, shared, -self.order, self.start)


# What options take for a lexicon; a path may also be a Path.
LexiconSource = Union["Lexicon", str, Path, Mapping[str, str], Sequence["LexiconSource"]]


@dataclass(frozen=True)
class Lexicon:
    """Words and phrases with their respellings, by language; docs/guide/text.md has the format.

    Lexicon.load("words.txt") reads a file. Later entries win over earlier ones.
    """

    entries: tuple[Entry, ...]

    def __post_init__(self) -> None:
        if len(self.entries) > MOST_ENTRIES:
            raise ValueError(
                f"a lexicon has {MOST_ENTRIES} entries at most, not {len(self.entries)}"
            )

    @classmethod
    def load(cls, *paths: str | Path) -> Lexicon:
        """Reads files, of which later ones win over earlier ones."""
        files = [a_path("lexicon", path) for path in paths]
        return cls(tuple(entry for file in files for entry in _read(file)))

    @classmethod
    def of(cls, given: Any) -> Lexicon | None:
        """What options take for a lexicon: one, a path, respellings by word, or a list of these."""
        if given is None or isinstance(given, Lexicon):
            return given
        if isinstance(given, (str, PathLike)):
            return cls.load(given)  # type: ignore[arg-type]
        if isinstance(given, Mapping):
            return cls(tuple(checked_entry(word, spelled) for word, spelled in given.items()))
        if isinstance(given, (list, tuple)):
            found = (cls.of(each) for each in given)
            return cls(tuple(entry for each in found if each for entry in each.entries))
        raise ValueError(
            "lexicon must be a path, a Lexicon, a dict of respellings by word or a list of these, "
            f"not {shown(given)}"
        )

    @property
    def digest(self) -> str:
        """Changes with the content."""
        return sha256(repr(self.entries).encode("utf-8", "surrogatepass")).hexdigest()

    def applied(self, text: str, language: str) -> Traced:
        """The text with respellings in place of the words that have one. Respellings are not looked
        up again."""
        text = traced(text)
        parts: list[Traced] = []
        end = 0
        for found in self._chosen(text, language):
            parts += [text[end : found.start], _respelled(text, found)]
            end = found.end
        return joined([*parts, text[end:]]) if parts else text

    def _chosen(self, text: str, language: str) -> list[_Found]:
        """What applies, in the order of the text, without two for one character."""
        taken = bytearray(len(text))
        for tag in _TAG.finditer(text):
            taken[tag.start() : tag.end()] = b"\1" * (tag.end() - tag.start())
        chosen = []
        for found in sorted(self._found(text, language), key=lambda found: found.rank):
            if not any(taken[found.start : found.end]):
                taken[found.start : found.end] = b"\1" * (found.end - found.start)
                chosen.append(found)
        return sorted(chosen, key=lambda found: found.start)

    def _found(self, text: str, language: str) -> Iterator[_Found]:
        for start, key in _beginnings(text):
            for order in self._by_beginning.get(key, ()):
                entry = self.entries[order]
                if entry.language not in (None, language):
                    continue
                match = _pattern(entry).match(text, start)
                if match and _stands_alone(text, start, match.end()):
                    yield _Found(start, match.end(), entry, order)

    @cached_property
    def _by_beginning(self) -> dict[str, list[int]]:
        """The numbers of the entries by what they begin with."""
        found: dict[str, list[int]] = {}
        for order, entry in enumerate(self.entries):
            _, key = next(_beginnings(entry.word))
            found.setdefault(key, []).append(order)
        return found


def _respelled(text: Traced, found: _Found) -> Traced:
    return text[found.start : found.end].sub(_WHOLE, lambda _: found.entry.spelled)


def _beginnings(text: str) -> Iterator[tuple[int, str]]:
    """Where a word may begin in a text, and what is the same wherever that word is: all of it in
    scripts with spaces, else its first letter."""
    end = 0
    for start, character in enumerate(text):
        if start < end or character.isspace() or category(character)[0] == "M":
            continue
        end = start + 1
        if _is_hangul(character) or _UNSPACED.match(character):
            yield start, normalize("NFD", character)[0]
            continue
        while end < len(text) and _same_word(text[end - 1], text[end]):
            end += 1
        yield start, normalize("NFC", text[start:end]).casefold()


@lru_cache(maxsize=MOST_ENTRIES)
def _pattern(entry: Entry) -> re.Pattern[str]:
    """Finds the entry's word; a line may end between its parts."""
    forms = {normalize(form, entry.word) for form in ("NFC", "NFD")}
    parts = (_BETWEEN.join(map(_written, form.split())) for form in sorted(forms))
    return re.compile("|".join(parts), re.IGNORECASE if entry.any_case else 0)


def _written(part: str) -> str:
    return "['’]".join(map(re.escape, _APOSTROPHES.split(part)))


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Whether words begin and end here: nothing of the same word stands beside it."""
    before, after = text[start - 1 : start], text[end : end + 1]
    if before and _same_word(before, text[start]):
        return False
    if not after or not _same_word(text[end - 1], after):
        return not (_is_letter(text[end - 1]) and _CONTRACTION.match(text, end))
    # Korean particles are written together with the word.
    return category(after)[0] != "M" and _is_hangul(text[end - 1]) and _is_hangul(after)


def _same_word(first: str, second: str) -> bool:
    if category(second)[0] == "M":
        return True
    if not (_is_letter(first) and _is_letter(second)):
        return False
    if _UNSPACED.match(first) or _UNSPACED.match(second):
        return False
    return _is_hangul(first) == _is_hangul(second)


def _is_letter(character: str) -> bool:
    return category(character)[0] in "LMN"


def _is_hangul(character: str) -> bool:
    return _HANGUL.match(character) is not None


def _read(file: Path) -> Sequence[Entry]:
    """The entries of a file, which is read again when it has changed."""
    try:
        state = file.stat()
    except OSError:
        return read_entries(file)  # says what is wrong
    return _read_at(file, state.st_mtime_ns, state.st_size, state.st_ino)


@lru_cache(maxsize=32)
def _read_at(file: Path, modified: int, size: int, inode: int) -> Sequence[Entry]:
    return read_entries(file)
