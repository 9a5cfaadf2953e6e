"""The embedded model's text tokenizer: letters of five languages, in the official file format.

    python -m train.text_tokenizer OUT.json

Letters instead of larger units: sequences are short enough, unknown words need no special case,
and the alignment moves in small steps, as the alignment analyser expects.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np
from tokenizers import Tokenizer

from .state import write_json

LANGUAGES = ("en", "es", "fr", "it", "pt")
STOP, UNKNOWN, SPACE, START = 0, 1, 2, 255
VOCABULARY = 256

LETTERS = "abcdefghijklmnopqrstuvwxyz"
DIGITS = "0123456789"  # English numbers are written out before; other languages keep digits
MARKS = ".,!?-'¿¡"
ACCENTED = "áéíóúýàèìòùâêîôûãõñäëïöüÿç"  # one token each, merged from the two of NFKD
# Other characters are removed.
WRITTEN_OUT = {"œ": "oe", "æ": "ae", "ß": "ss", "ø": "o", "ł": "l", "ð": "d", "þ": "th"}

_REPLACED = (
    ("...", ", "),
    ("…", ", "),
    (":", ","),
    (" - ", ", "),
    (";", ", "),
    ("—", "-"),
    ("–", "-"),  # noqa: RUF001
    (" ,", ","),
    ("“", '"'),
    ("”", '"'),
    ("‘", "'"),  # noqa: RUF001
    ("’", "'"),  # noqa: RUF001
)
_ENDERS = (".", "!", "?", "-", ",")


def tokenizer_json() -> dict[str, Any]:
    """The content of the tokenizer file."""
    pairs = [tuple(normalize("NFKD", letter)) for letter in ACCENTED]
    accents = sorted({accent for _, accent in pairs})
    tags = [f"[{language}]" for language in LANGUAGES]
    special = {"[STOP]": STOP, "[UNK]": UNKNOWN, "[SPACE]": SPACE, "[START]": START}
    tokens = [*tags, *LETTERS, *DIGITS, *MARKS, *accents, *("".join(pair) for pair in pairs)]
    vocabulary = special | {token: SPACE + 1 + i for i, token in enumerate(tokens)}
    known = LETTERS + DIGITS + "".join(accents) + MARKS.replace("-", "\\-")
    replaced = [({"String": old}, new) for old, new in WRITTEN_OUT.items()]
    replaced.append(({"Regex": f"[^{known}]"}, ""))
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": vocabulary[token],
                "special": True,
                "content": token,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
            }
            for token in sorted([*special, *tags], key=vocabulary.__getitem__)
        ],
        "normalizer": {
            "type": "Sequence",
            "normalizers": [
                {"type": "Replace", "pattern": pattern, "content": new} for pattern, new in replaced
            ],
        },
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None,
        "decoder": None,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": "[UNK]",
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "vocab": dict(sorted(vocabulary.items(), key=lambda item: item[1])),
            "merges": [f"{letter} {accent}" for letter, accent in pairs],
        },
    }


class TextTokenizer:
    """Text to ids like nightingale's own tokenizer, without its C++ extension.

    content: of a checkpoint's tokenizer file; default: the embedded model's. If not multilingual,
    texts are not lower-cased and there are no language tags.
    """

    def __init__(self, content: dict[str, Any] | None = None, multilingual: bool = True) -> None:
        content = content or tokenizer_json()
        self._tokenizer = Tokenizer.from_str(json.dumps(content))
        self._multilingual = multilingual
        names = {i: token for token, i in self._tokenizer.get_vocab().items()}
        self.is_letter = np.array(
            [names.get(i, "[")[0] not in f"[{MARKS}" for i in range(max(VOCABULARY, *names) + 1)]
        )  # [vocabulary] bool

    def tag(self, language: str) -> int | None:
        """The id of a language tag, if there is one."""
        return self._tokenizer.token_to_id(f"[{language}]") if self._multilingual else None

    def reads(self, language: str) -> bool:
        return self.tag(language) is not None if self._multilingual else language == "en"

    def encode(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Ids of each text, int16, without tag, start and stop."""
        read = [normalise_punctuation(text) for text in texts]
        if self._multilingual:
            read = [normalize("NFKD", text.lower()) for text in read]
        encodings = self._tokenizer.encode_batch([text.replace(" ", "[SPACE]") for text in read])
        return [np.array(encoding.ids, dtype=np.int16) for encoding in encodings]


def normalise_punctuation(text: str) -> str:
    """The normalization of nightingale.text for multilingual models; a test compares them."""
    if text[:1].islower():
        text = text[0].upper() + text[1:]
    text = " ".join(text.split())
    for old, new in _REPLACED:
        text = text.replace(old, new)
    text = text.rstrip(" ")
    return text if text.endswith(_ENDERS) else text + "."


if __name__ == "__main__":
    write_json(Path(sys.argv[1]), tokenizer_json())
