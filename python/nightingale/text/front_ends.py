"""Language-specific conversions of text before it is tokenized.

Chinese is spelled in words and Cangjie codes, Japanese in hiragana, Korean in jamo; Hebrew gets its
vowels and Russian its stress marks. Packages of the `languages` extra are imported when they are
first used.
"""

import json
import logging
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, TypeVar
from unicodedata import category, normalize

from .._core import Error
from ..checkpoint import CANGJIE_TABLE, DICTA_MODELS

logger = logging.getLogger(__name__)

FrontEnd = Callable[[str], str]
Value = TypeVar("Value")

INSTALL = 'pip install "nightingale-tts[languages]"'
_RUSSIAN_INSTALL = "pip install git+https://github.com/Vuizur/add-stress-to-epub"
_RUSSIAN_NEEDS = "it fetches its dictionary on first use"
_NO_VARIATION_SELECTORS = dict.fromkeys((*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))
# The end of the block, past the last syllable, as in the reference.
_FIRST_SYLLABLE, _LAST_SYLLABLE = 0xAC00, 0xD7AF
_MEDIALS, _FINALS = 21, 28

_segmenting = threading.Lock()
_warned: set[tuple[str, str]] = set()  # language and kind of error, once a process
_warning = threading.Lock()


def front_ends(cangjie: Path | None = None, dicta: Path | None = None) -> dict[str, FrontEnd]:
    """Front-ends by language code; a language that is not among them needs none.

    Each takes lower-case text in NFKD. cangjie: the checkpoint's table, which Chinese needs; dicta:
    the model of Hebrew's diacritics.
    """
    return {
        "he": hebrew(dicta),
        "ja": to_kana,
        "ko": to_jamo,
        "ru": add_stress,
        "zh": Chinese(cangjie),
    }


class Once(Generic[Value]):
    """A value created on first use, by one thread; after a failure the next use tries again."""

    def __init__(self, make: Callable[[], Value]) -> None:
        self._make = make
        self._made: list[Value] = []
        self._lock = threading.Lock()

    def __call__(self) -> Value:
        with self._lock:
            if not self._made:
                self._made.append(self._make())
            return self._made[0]


def _required(language: str, package: str) -> Any:
    """A package without which a language cannot be spoken."""
    try:
        return import_module(package)
    except ImportError as error:
        message = f"{language} text needs the package {package} ({error}): {INSTALL}"
        raise Error(message) from error


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
    package = _required("Chinese", "spacy_pkuseg")
    try:
        return package.pkuseg()
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
    return _required("Japanese", "pykakasi").Kakasi()


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


class BestEffort:
    """A front-end that returns the text unchanged if its package fails, and warns once per cause.

    A package that fails to load is not tried again: it may wait seconds for a network.
    """

    def __init__(
        self, language: str, marks: str, install: str, needs: str, start: Callable[[], FrontEnd]
    ) -> None:
        self._language = language
        self._without = f"{language} is spoken without {marks}"
        self._install = install
        self._needs = needs
        self._front_end = Once(lambda: self._started(start))

    def __call__(self, text: str) -> str:
        front_end = self._front_end()
        if front_end is None:
            return text
        try:
            return front_end(text)
        except Exception as error:  # whatever a package may raise
            self._warn(error, f"{self._without} where its package fails: {error!r}")
            return text

    def _started(self, start: Callable[[], FrontEnd]) -> FrontEnd | None:
        try:
            return start()
        except ImportError as error:
            self._warn(error, f"{self._without} ({error}): {self._install}")
        except Exception as error:  # whatever a package may raise
            self._warn(
                error, f"{self._without}, its package does not start ({error}): {self._needs}"
            )
        return None

    def _warn(self, error: Exception, message: str) -> None:
        cause = (self._language, type(error).__name__)
        with _warning:
            if cause in _warned:
                return
            _warned.add(cause)
        logger.warning("%s", message)


def hebrew(model: Path | None) -> FrontEnd:
    """Adds diacritics where dicta_onnx is installed and has its model."""
    needs = f"it needs {DICTA_MODELS[0]} in the checkpoint's folder, see docs/guide/text.md"
    return BestEffort("Hebrew", "diacritics", INSTALL, needs, partial(_load_dicta, model))


def _load_dicta(model: Path | None) -> FrontEnd:
    dicta = import_module("dicta_onnx").Dicta
    front_end: FrontEnd = (dicta() if model is None else dicta(str(model))).add_diacritics
    return front_end


def add_stress(text: str) -> str:
    """Adds stress marks where russian_text_stresser is installed and has its dictionary."""
    return _thread.submit(_stresser, text).result()


def _load_stresser() -> FrontEnd:
    package = import_module("russian_text_stresser.text_stresser")
    front_end: FrontEnd = package.RussianTextStresser().stress_text
    return front_end


def _best_effort() -> FrontEnd:
    return BestEffort("Russian", "stress marks", _RUSSIAN_INSTALL, _RUSSIAN_NEEDS, _load_stresser)


_stresser = _best_effort()
# The package's SQLite connection serves only the thread that opened it.
_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="russian-stress")
