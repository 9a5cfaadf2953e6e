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
MOST_WHOLE_BYTES = 2**25  # of a file that holds all; GPT-2's takes 4 MB
_TAG = re.compile(r"\[[^\[\]]+\]")
_LAST_OF_LATIN_1 = "\xff"


class ByteLevelTokenizer(Tokenizer):
    """Reads vocab.json, and merges.txt and added_tokens.json beside it, or a tokenizer.json that
    holds all three.

    Bytes can spell every text, so that the script tells what the model was taught to speak.
    """

    def __init__(self, vocabulary: Path, languages: Mapping[str, str]) -> None:
        if vocabulary.name == VOCABULARY:
            added = _added_tokens(vocabulary.with_name(ADDED_TOKENS))
            model, source = _read_model(vocabulary), vocabulary.with_name(ADDED_TOKENS)
        else:
            model, added = _read_whole(vocabulary)
            source = vocabulary
        self._tokenizer = _with_added(model, added, source)
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


def _read_model(vocabulary: Path) -> Any:
    # Imported here: it is half the package's import time and not every command needs it.
    from tokenizers import models

    merges = vocabulary.with_name(MERGES)
    if not merges.is_file():
        raise Error(f"{vocabulary.parent} has {vocabulary.name} but not its {MERGES}")
    try:
        return models.BPE.from_file(str(vocabulary), str(merges))
    except Exception as error:  # the library raises bare Exception
        raise Error(f"{vocabulary} and {merges.name} are not a tokenizer: {error}") from error


def _read_whole(path: Path) -> tuple[Any, dict[str, int]]:
    """The model of a tokenizer.json, and its added tokens with their ids."""
    from tokenizers import models

    try:
        content = json.loads(read_small(path, MOST_WHOLE_BYTES).decode())
        vocabulary = content["model"]["vocab"]
        merges = [
            tuple(pair.split(" ", 1) if isinstance(pair, str) else pair)
            for pair in content["model"]["merges"]
        ]
        model = models.BPE(vocabulary, merges)
        added = {token["content"]: int(token["id"]) for token in content["added_tokens"]}
    except Error:
        raise
    except Exception as error:  # the library raises bare Exception
        raise Error(f"{path} is not a byte-level tokenizer: {error}") from error
    return model, {token: id for token, id in added.items() if token not in vocabulary}


def _with_added(model: Any, added: Mapping[str, int], source: Path) -> Any:
    """source: where the added tokens come from, in messages"""
    from tokenizers import AddedToken, pre_tokenizers
    from tokenizers import Tokenizer as FileTokenizer

    tokenizer = FileTokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.add_special_tokens([END_OF_TEXT])
    for token, id in sorted(added.items(), key=lambda item: item[1]):
        tokenizer.add_tokens([AddedToken(token, normalized=False)])
        if tokenizer.token_to_id(token) != id:
            raise Error(
                f"{source}: {token} has id {id}; expected "
                f"{tokenizer.token_to_id(token)}, the next after those of {VOCABULARY}"
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
