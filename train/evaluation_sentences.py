"""The evaluation sentences, and the assertion that no training text contains them."""

from __future__ import annotations

import hashlib
import lzma
import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path

LANGUAGES = ("en", "es", "fr", "it", "pt")
EVALUATED_ARCTIC = 200
EVALUATED_LINES = 100  # of each language but English


def evaluation_sentences(data: Path) -> dict[str, list[str]]:
    """By language: the Harvard and the first Arctic sentences; the Common Voice lines with the
    smallest SHA-256."""
    arctic = read_lines(data / "cmu_arctic_prompts.txt")
    chosen = {"en": read_lines(data / "harvard_en_half.txt") + arctic[:EVALUATED_ARCTIC]}
    for language in LANGUAGES[1:]:
        lines = read_lines(data / f"cv_{language}.txt.xz")
        chosen[language] = sorted(lines, key=_digest)[:EVALUATED_LINES]
    return {language: [line.strip() for line in lines] for language, lines in chosen.items()}


def forbidden_texts(data: Path) -> set[str]:
    """The normalized texts that training must not contain: the evaluation set and all of Arctic.

    A line with surrounding white space has another SHA-256, so both selections are excluded.
    """
    found = set(read_lines(data / "cmu_arctic_prompts.txt"))
    for sentences in evaluation_sentences(data).values():
        found.update(sentences)
    for language in LANGUAGES[1:]:
        stripped = {line.strip() for line in read_lines(data / f"cv_{language}.txt.xz")}
        found.update(sorted(stripped, key=_digest)[:EVALUATED_LINES])
    return {normalized(text) for text in found}


def normalized(text: str) -> str:
    """Words only: without case, accents and punctuation."""
    plain = unicodedata.normalize("NFKD", text.casefold())
    plain = "".join(c for c in plain if not unicodedata.combining(c))
    return " ".join(re.findall(r"[^\W_]+", plain))


def contains_forbidden(text: str, forbidden: set[str]) -> bool:
    """Whether the text or one of its sentences is among the normalised texts `forbidden`."""
    parts = [text, *re.split(r"[.?!…]+", text)]
    return any(normalized(part) in forbidden for part in parts)


def assert_not_trained_on(texts: Iterable[str], forbidden: set[str]) -> None:
    """Asserts that none of the texts is evaluated."""
    for text in texts:
        assert not contains_forbidden(text, forbidden), (
            f"{text!r} is evaluated: it must not be trained on"
        )


def read_lines(path: Path) -> list[str]:
    """The lines of a text file, compressed or not, that are not blank."""
    opened = lzma.open if path.suffix == ".xz" else open
    with opened(path, "rt", encoding="utf-8", newline="\n") as file:
        return [line for line in file.read().split("\n") if line.strip()]


def _digest(line: str) -> bytes:
    return hashlib.sha256(line.encode()).digest()
