"""The tokenizer of Turbo and Nano: GPT-2's byte-level BPE, with tags such as [laugh]."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unicodedata import category, name, normalize

import numpy as np

from .._core import Error
from ..small_files import read_small
from .punctuation import TURBO
from .segment import Encoded
from .tags import Tags
from .tokenizer import Tokenizer
from .traced import Traced

VOCABULARY, MERGES, ADDED_TOKENS = "vocab.json", "merges.txt", "added_tokens.json"
END_OF_TEXT = "<|endoftext|>"
MOST_BYTES = 2**20  # of the added tokens
_TAG = re.compile(r"\[[^\[\]]+\]")
_LAST_OF_LATIN_1 = "\xff"


class ByteLevelTokenizer(Tokenizer):
    """Reads vocab.json, and merges.txt and added_tokens.json beside it.

    Bytes can spell every text, so that the script tells what the model was taught to speak.
    """

    def __init__(self, vocabulary: Path, languages: Mapping[str, str]) -> None:
        added = _added_tokens(vocabulary.with_name(ADDED_TOKENS))
        self._tokenizer = _open(vocabulary, added)
        self.tags = Tags([token for token in added if _TAG.fullmatch(token)])
        self.languages = dict(languages)
        self.multilingual = False
        self.punctuation = TURBO
        self._front_ends = {}

    def with_words(self, written: Traced, read: str, ids: np.ndarray, language: str) -> Encoded:
        """Token ids with the words they are in; a tag is a word of its own."""
        word_at, words = self._words(written)
        # A token's last character: the first may be the space before a word.
        ends = [max(end, 1) - 1 for _, end in self._tokenizer.encode(read).offsets]
        return Encoded(ids, words, [word_at[end] for end in ends] if words else [], language)

    def reads(self, character: str, language: str) -> bool:
        """Whether it is Latin, or a sign of Latin-1 or of a currency."""
        parts = normalize("NFKD", character)
        return any(_is_english(part) for part in parts if category(part)[0] != "M")

    def _ids(self, read: str, language: str) -> np.ndarray:
        return np.asarray(self._tokenizer.encode(read).ids, dtype=np.int32)

    def _words(self, text: Traced) -> tuple[list[int], list[Traced]]:
        """For each character the number of the word that it is in or follows, and the words."""
        words: list[Traced] = []
        word_at: list[int] = []
        for found in self.tags.words.finditer(text):
            word_at += [max(0, len(words) - 1)] * (found.start() - len(word_at))
            word = text[found.start() : found.end()]
            letters = [i for i, c in enumerate(word) if category(c)[0] in "LMN"]
            if found["tag"]:
                words.append(word)
            elif letters:
                words.append(word[letters[0] : letters[-1] + 1])
            word_at += [max(0, len(words) - 1)] * len(word)
        return word_at, words


def _open(vocabulary: Path, added: Mapping[str, int]) -> Any:
    # Imported here: it is half the package's import time and not every command needs it.
    from tokenizers import AddedToken, models, pre_tokenizers
    from tokenizers import Tokenizer as FileTokenizer

    merges = vocabulary.with_name(MERGES)
    if not merges.is_file():
        raise Error(f"{vocabulary.parent} has {vocabulary.name} but not its {MERGES}")
    try:
        model = models.BPE.from_file(str(vocabulary), str(merges))
    except Exception as error:  # the library raises bare Exception
        raise Error(f"{vocabulary} and {merges.name} are not a tokenizer: {error}") from error
    tokenizer = FileTokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.add_special_tokens([END_OF_TEXT])
    for token, id in sorted(added.items(), key=lambda item: item[1]):
        tokenizer.add_tokens([AddedToken(token, normalized=False)])
        if tokenizer.token_to_id(token) != id:
            raise Error(
                f"{vocabulary.with_name(ADDED_TOKENS)}: {token} has id {id}; expected "
                f"{tokenizer.token_to_id(token)}, the next after those of {vocabulary.name}"
            )
    return tokenizer


def _added_tokens(path: Path) -> dict[str, int]:
    """Ids by token, in their order."""
    if not path.exists():
        raise Error(f"{path.parent} has {VOCABULARY} but not its {ADDED_TOKENS}")
    try:
        found = json.loads(read_small(path, MOST_BYTES).decode())
    except (ValueError, RecursionError) as error:
        raise Error(f"{path} is not JSON in UTF-8: {error}") from error
    if not isinstance(found, dict) or not all(
        token and isinstance(id, int) and not isinstance(id, bool) for token, id in found.items()
    ):
        raise Error(f"{path}: expected an object of ids by token")
    return dict(sorted(found.items(), key=lambda item: item[1]))


def _is_english(character: str) -> bool:
    return (
        character <= _LAST_OF_LATIN_1
        or category(character) == "Sc"
        or name(character, "").startswith("LATIN ")
    )
