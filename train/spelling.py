"""Texts as letters to hear, and how far a hearing of them is off."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable


class Letters:
    """The letters of all texts in one alphabet; 0 is CTC's blank."""

    def __init__(self, texts: Iterable[str]) -> None:
        spelled = {text: spell(text) for text in texts}
        self.alphabet = "".join(sorted(set().union(*spelled.values())))
        number = {letter: i for i, letter in enumerate(self.alphabet, 1)}
        self._numbers = {text: [number[c] for c in word] for text, word in spelled.items()}

    def numbers(self, text: str) -> list[int]:
        """Of a text that the alphabet was made of."""
        return self._numbers[text]


def spell(text: str) -> str:
    """Lower-case letters, apostrophes and single spaces."""
    text = unicodedata.normalize("NFC", text.lower()).replace("\u2019", "'")
    return " ".join("".join(c if c.isalpha() or c == "'" else " " for c in text).split())


def collapse(letters: list[int]) -> list[int]:
    """CTC's reading: repeated letters are one, blanks are none."""
    return [c for before, c in zip([0, *letters], letters, strict=False) if c and c != before]


def edits(found: list[int], true: list[int]) -> int:
    """Letters to insert, leave out or change."""
    row = list(range(len(true) + 1))
    for i, letter in enumerate(found, 1):
        corner, row[0] = row[0], i
        for j, wanted in enumerate(true, 1):
            corner, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, corner + (letter != wanted))
    return row[-1]
