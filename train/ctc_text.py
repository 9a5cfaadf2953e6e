"""Letters as CTC targets."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable


class Alphabet:
    """The letters of all texts; 0 is the CTC blank."""

    def __init__(self, texts: Iterable[str]) -> None:
        spelled = {text: to_letters(text) for text in texts}
        self.alphabet = "".join(sorted(set().union(*spelled.values())))
        number = {letter: i for i, letter in enumerate(self.alphabet, 1)}
        self._numbers = {text: [number[c] for c in word] for text, word in spelled.items()}

    def numbers(self, text: str) -> list[int]:
        """The ids of a text that the alphabet was made of."""
        return self._numbers[text]


def to_letters(text: str) -> str:
    """Lower-case letters, apostrophes and single spaces."""
    text = unicodedata.normalize("NFC", text.lower()).replace("\u2019", "'")
    return " ".join("".join(c if c.isalpha() or c == "'" else " " for c in text).split())


def ctc_collapse(letters: list[int]) -> list[int]:
    """Merges repeated letters and removes blanks."""
    return [c for before, c in zip([0, *letters], letters, strict=False) if c and c != before]
