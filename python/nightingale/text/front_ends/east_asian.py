"""Chinese in words and Cangjie codes, Japanese in hiragana, Korean in jamo."""

import json
import threading
from collections import Counter
from pathlib import Path
from typing import Any
from unicodedata import category, normalize

from ..._core import Error
from ...checkpoint import CANGJIE_TABLE
from .packages import Once, missing

_segmenting = threading.Lock()
_NO_VARIATION_SELECTORS = dict.fromkeys((*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))
# The end of the block, past the last syllable, as in the reference.
_FIRST_SYLLABLE, _LAST_SYLLABLE = 0xAC00, 0xD7AF
_MEDIALS, _FINALS = 21, 28


class Chinese:
    """Separates words with spaces and spells characters in a checkpoint's Cangjie codes."""

    def __init__(self, table: Path | None) -> None:
        self._table = table
        self._codes = Once(self._read_table)

    def __call__(self, text: str) -> str:
        segmenter = _segmenter()
        codes = self._codes()
        with _segmenting:
            try:
                words = segmenter.cut(text)
            except Exception as error:  # whatever the package may raise
                raise Error(f"spacy_pkuseg cannot read this text: {error!r}") from error
        return "".join(_spelt(character, codes) for character in " ".join(words))

    def _read_table(self) -> dict[str, str]:
        if self._table is None:
            raise Error(
                f"Chinese text needs {CANGJIE_TABLE} beside the checkpoint's tokenizer; "
                "it comes with the official multilingual model"
            )
        try:
            entries = json.loads(self._table.read_text(encoding="utf-8"))
            return cangjie_codes([entry.split("\t")[:2] for entry in entries])
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise Error(
                f"{self._table} is not a Cangjie table, a list of 'glyph<TAB>code': {error}"
            ) from error


def cangjie_codes(table: list[list[str]]) -> dict[str, str]:
    """Codes by glyph. If glyphs share a code, all but the first get their position as a suffix.

    A glyph that is listed twice has its last code, and its first place there.
    """
    codes: dict[str, str] = {}
    places: dict[tuple[str, str], int] = {}
    sharing: Counter[str] = Counter()
    for glyph, code in table:
        codes[glyph] = code
        places.setdefault((glyph, code), sharing[code])
        sharing[code] += 1
    return {glyph: f"{code}{places[glyph, code] or ''}" for glyph, code in codes.items()}


def _spelt(character: str, codes: dict[str, str]) -> str:
    if category(character) != "Lo" or character not in codes:
        return character
    return "".join(f"[cj_{key}]" for key in codes[character] + ".")


def _load_segmenter() -> Any:
    try:
        from spacy_pkuseg import pkuseg
    except ImportError as error:
        raise missing("Chinese", "spacy_pkuseg", error) from error
    try:
        return pkuseg()
    except Exception as error:  # from the network, the disk or the model
        raise Error(
            "spacy_pkuseg, which finds the words of Chinese text, cannot load its model "
            f"({error}); it is fetched on first use: check the network, and empty ~/.pkuseg if an "
            "earlier download broke off"
        ) from error


_segmenter = Once(_load_segmenter)


def to_kana(text: str) -> str:
    """Converts phrases with kanji to hiragana and the whole text to NFKD."""
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


def to_jamo(text: str) -> str:
    """Hangul syllables as two or three jamo each; no white space at the ends."""
    return "".join(_jamo(character) for character in text).strip()


def _jamo(character: str) -> str:
    index = ord(character) - _FIRST_SYLLABLE
    if not 0 <= index <= _LAST_SYLLABLE - _FIRST_SYLLABLE:
        return character
    initial, rest = divmod(index, _MEDIALS * _FINALS)
    medial, final = divmod(rest, _FINALS)
    pair = chr(0x1100 + initial) + chr(0x1161 + medial)
    return pair + chr(0x11A7 + final) if final else pair
