"""Chinese: words set apart, glyphs spelt by the keys that write them in Cangjie."""

from __future__ import annotations

import json
import threading
from collections import Counter
from pathlib import Path
from typing import Any
from unicodedata import category

from ..._core import Error
from ...checkpoint import CANGJIE_TABLE
from .packages import Once, missing

_segmenting = threading.Lock()


class Chinese:
    """Words apart by spaces, their glyphs in the codes of a checkpoint's Cangjie table."""

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
    """Codes by glyph; of glyphs that share one, all but the first get their place as a suffix.

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
