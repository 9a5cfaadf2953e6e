"""A checkpoint's tokenizer: text to token ids, as the reference does it."""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from unicodedata import category, normalize

import numpy as np

from .._core import Error
from ..checkpoint import known_language
from ..family import AS_WRITTEN, FULL_CASE, LOWER_CASE
from .front_ends import front_ends
from .punctuation import ENGLISH, LONGER_WHEN_NORMALISED, MULTILINGUAL, normalise_punctuation
from .segment import Encoded
from .tags import Tags
from .traced import Traced, joined

# Characters that are counted at once: the time of Japanese grows with the square of the length.
COUNTED = 500
_FIRST = re.compile(r"\A.", re.DOTALL)
# Languages whose front-ends belong to a way of reading; None: all.
_READ_BY = {LOWER_CASE: None, FULL_CASE: ("zh", "ru"), AS_WRITTEN: ("zh", "ja", "he", "ko")}


class Tokenizer:
    """A checkpoint's text tokenizer, with the front-ends of the languages that have one."""

    tags = Tags()  # of the text that are sounds or styles
    _preprocessing = LOWER_CASE

    def __init__(
        self,
        path: str | Path,
        languages: dict[str, str],
        multilingual: bool,
        cangjie: Path | None = None,
        dicta: Path | None = None,
        preprocessing: str = LOWER_CASE,
    ) -> None:
        """preprocessing: of a multilingual model, one of family.TEXT_PREPROCESSING"""
        # Imported here: it is half the package's import time and not every command needs it.
        from tokenizers import Tokenizer as FileTokenizer

        try:
            self._tokenizer = FileTokenizer.from_file(str(path))
        except Exception as error:  # the library raises bare Exception
            raise Error(f"{path} is not a tokenizer file: {error}") from error
        for token in ("[START]", "[STOP]"):
            if self._tokenizer.token_to_id(token) is None:
                raise Error(f"{path} has no {token} token")
        self.languages = {
            code: name
            for code, name in languages.items()
            if not multilingual or self._tokenizer.token_to_id(f"[{code}]") is not None
        }
        if not self.languages:
            raise Error(f"{path} has no tag of any language, such as [en]: it is of another model")
        self.multilingual = multilingual
        self.punctuation = MULTILINGUAL if multilingual else ENGLISH
        self._preprocessing = preprocessing
        read_by = _READ_BY[preprocessing]
        self._front_ends = {
            code: front_end
            for code, front_end in front_ends(cangjie, dicta).items()
            if read_by is None or code in read_by
        }
        self._known: dict[tuple[str, str], bool] = {}  # by language and character

    @property
    def vocabulary(self) -> int:
        """One more than the highest token id."""
        return max(self._tokenizer.get_vocab().values()) + 1

    def encode(self, text: str, language: str = "en") -> np.ndarray:
        """Token ids of one segment of text, without start and stop, its punctuation normalised."""
        return self.encode_as_is(self.normalised(text), self.known_language(language))

    def count(
        self, text: str, language: str = "en", check: Callable[[], None] | None = None
    ) -> int:
        """How many tokens `encode` gives; of a long text, which has to be split, about how many.

        check: is called before each part of it.
        """
        tokens = 0
        for part in _counted_parts(text):
            if check is not None:
                check()
            tokens += len(self.encode(part, language))
        return tokens

    def count_at_most(self, text: str, language: str) -> float:
        """A bound of what `count` gives, without tokenising: a token has a byte at least."""
        if language in self._front_ends:
            return math.inf
        put_in = 2 + sum(map(text.count, LONGER_WHEN_NORMALISED))  # 2: the tag and the last mark
        # Compatibility characters decompose, upper case may have another length in lower case.
        read = self._plain(text) if not text.isascii() else text
        return len(read.encode("utf-8", "replace")) + put_in

    def encode_as_is(self, text: str, language: str) -> np.ndarray:
        """Token ids of text that has been checked and normalised; `language` is a known code."""
        return self.read_ids(text, language)[1]

    def read_ids(self, text: str, language: str) -> tuple[str, np.ndarray]:
        """Normalised text as the model was taught to read it, and its token ids."""
        read = self._read(text, language)
        return read, self._ids(read, language)

    def encode_words(self, text: str, language: str) -> Encoded:
        """What `encode` gives, the words of the text, and which of them each token is in."""
        written, language = self.normalised(text), self.known_language(language)
        return self.with_words(written, *self.read_ids(written, language), language)

    def with_words(self, written: Traced, read: str, ids: np.ndarray, language: str) -> Encoded:
        """Token ids with the words they are in. written: normalised; read: what was tokenised."""
        places, words = _spoken_words(_shown(written, read, self._plain))
        spaces = np.cumsum(ids == self._tokenizer.token_to_id("[SPACE]"))
        # A [SPACE] that stands in the text itself would count too many.
        word_of = [places[min(count, len(places) - 1)] for count in spaces] if words else []
        return Encoded(ids, words, word_of, language)

    def reads(self, character: str, language: str) -> bool:
        """Whether the model knows a letter, digit or sign, as `language` reads it."""
        known = self._known.get((language, character))
        if known is None:
            read = self._read(character, language)
            base = "".join(part for part in read if category(part)[0] != "M") or read
            ids = self._tokenizer.encode(base).ids
            known = any(id != self._tokenizer.token_to_id("[UNK]") for id in ids)
            self._known[language, character] = known
        return known

    def normalised(self, text: str) -> Traced:
        """The text with plain punctuation, or a ValueError where it cannot be spoken."""
        if not isinstance(text, str):
            raise ValueError(f"text must be a string, not {type(text).__name__}")
        if not text.strip():
            raise ValueError("there is no text to speak")
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise ValueError("the text holds bytes that are not valid UTF-8")
        return normalise_punctuation(text, self.punctuation)

    def _read(self, text: str, language: str) -> str:
        """The text as the model was taught to read it."""
        if not self.multilingual:
            return text
        front_end = self._front_ends.get(language, str)
        if self._preprocessing == FULL_CASE:
            return self._plain(front_end(text))
        return front_end(self._plain(text))

    def _plain(self, text: str) -> str:
        """The text as any language reads it."""
        if self._preprocessing == AS_WRITTEN:
            return str(text)
        return normalize("NFKD", text.lower() if self._preprocessing == LOWER_CASE else text)

    def _ids(self, read: str, language: str) -> np.ndarray:
        tag = f"[{language}]" if self.multilingual else ""
        ids = self._tokenizer.encode(tag + read.replace(" ", "[SPACE]")).ids
        return np.asarray(ids, dtype=np.int32)

    def known_language(self, language: str) -> str:
        """The code of a language of this model, or a ValueError."""
        return known_language(language, self.languages)


def _counted_parts(text: str) -> Iterator[str]:
    """A text in parts of bounded length, between words where it has spaces."""
    begin = 0
    while len(text) - begin > COUNTED:
        space = text.rfind(" ", begin + 1, begin + COUNTED)
        end = space if space > 0 else begin + COUNTED
        if text[begin:end].strip():
            yield text[begin:end]
        begin = end
    yield text[begin:]


# A glyph in Cangjie codes, or any other character.
_READ_CHARACTER = re.compile(r"(?:\[cj_[^.\]]\])+\[cj_\.\]|.", re.DOTALL)


def _shown(text: Traced, read: str, plain: Callable[[str], str]) -> list[Traced]:
    """What stands in the text for each of the words, spaces apart, of what is read of it. plain: as
    any language reads a text"""
    read_words, words = read.split(" "), text.parts(" ")
    if len(read_words) == len(words):
        return words
    if "[cj_" in read:
        characters = _decomposed(text, plain).replace(" ", "")
        shown, start = [], 0
        for word in read_words:
            end = start + len(_READ_CHARACTER.findall(word))
            shown.append(characters[start:end])
            start = end
        return shown
    return _spread([normalize("NFC", word) for word in read_words], text)


def _decomposed(text: Traced, plain: Callable[[str], str]) -> Traced:
    counts = [len(plain(character)) for character in text]
    each = [text[i : i + 1].sub(_FIRST, "x" * count) for i, count in enumerate(counts)]
    positions = joined(each)
    return Traced(plain(text), positions.starts, positions.ends)


def _spread(words: Sequence[str], text: Traced) -> list[Traced]:
    """Words that a front-end made of the whole text, each at its share of it."""
    total = max(1, sum(map(len, words)))
    spread, before = [], 0
    for word in words:
        begin = min(len(text) * before // total, len(text) - 1)
        before += len(word)
        end = max(begin + 1, len(text) * before // total)
        spread.append(text[begin:end].replaced_by(word))
    return spread


def _spoken_words(shown: list[Traced]) -> tuple[list[int], list[Traced]]:
    """The words without the marks around them, and each one's place; marks alone go with a word."""
    places: list[int] = []
    words: list[Traced] = []
    for word in shown:
        letters = [i for i, c in enumerate(word) if category(c)[0] in "LMN"]
        if letters:
            words.append(word[letters[0] : letters[-1] + 1])
        places.append(max(0, len(words) - 1))
    return places, words
