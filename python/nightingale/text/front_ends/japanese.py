"""Japanese: kanji as they are read, in hiragana; kana stay."""

from __future__ import annotations

from typing import Any
from unicodedata import normalize

from .packages import Once, missing

_NO_VARIATION_SELECTORS = dict.fromkeys((*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))


def to_kana(text: str) -> str:
    """Phrases with kanji in hiragana, and all in NFKD: voicing marks apart from their kana."""
    kakasi = _kakasi()
    try:
        phrases = kakasi.convert(text)
    except IndexError:  # pykakasi trips over a variation selector near the end
        phrases = kakasi.convert(text.translate(_NO_VARIATION_SELECTORS))
    return normalize("NFKD", "".join(_reading(phrase) for phrase in phrases))


def _reading(phrase: dict[str, str]) -> str:
    if not any("\u4e00" <= character <= "\u9fff" for character in phrase["orig"]):
        return phrase["orig"]
    # As in the reference: set apart, a word's は or へ is not taken for the particle.
    return " " + phrase["hira"] if phrase["hira"].startswith(("は", "へ")) else phrase["hira"]


def _load_kakasi() -> Any:
    try:
        from pykakasi import Kakasi
    except ImportError as error:
        raise missing("Japanese", "pykakasi", error) from error
    return Kakasi()


_kakasi = Once(_load_kakasi)
