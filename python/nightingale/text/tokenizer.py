"""A checkpoint's tokenizer: text to token ids, as the reference does it."""

from __future__ import annotations

from pathlib import Path
from unicodedata import normalize

import numpy as np

from .._core import Error

_REPLACED_PUNCTUATION = (
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
_MULTILINGUAL_ENDERS = (*_ENDERS, "、", "，", "。", "？", "！")  # noqa: RUF001

# These need a front-end of their own before the tokenizer can read them.
_NEEDS_FRONT_END = {"zh": "Chinese", "ja": "Japanese"}


def normalise_punctuation(text: str, multilingual: bool = True) -> str:
    """One space between words, plain punctuation, a capital first and a sentence end last."""
    if text[:1].islower():
        text = text[0].upper() + text[1:]
    text = " ".join(text.split())
    for old, new in _REPLACED_PUNCTUATION:
        text = text.replace(old, new)
    text = text.rstrip(" ")
    enders = _MULTILINGUAL_ENDERS if multilingual else _ENDERS
    return text if text.endswith(enders) else text + "."


class Tokenizer:
    """A checkpoint's text tokenizer."""

    def __init__(self, path: str | Path, languages: dict[str, str], multilingual: bool) -> None:
        # Imported here: it is half the package's import time and not every command needs it.
        from tokenizers import Tokenizer as FileTokenizer

        try:
            self._tokenizer = FileTokenizer.from_file(str(path))
        except Exception as error:  # the library raises bare Exception
            raise Error(f"{path} is not a tokenizer file: {error}") from error
        for token in ("[START]", "[STOP]"):
            if self._tokenizer.token_to_id(token) is None:
                raise Error(f"{path} has no {token} token")
        self.languages = languages
        self.multilingual = multilingual

    def encode(self, text: str, language: str = "en") -> np.ndarray:
        """Token ids of one piece of text, without start and stop."""
        if not isinstance(text, str):
            raise ValueError(f"text must be a string, not {type(text).__name__}")
        if not text.strip():
            raise ValueError("there is no text to speak")
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise ValueError("the text holds bytes that are not valid UTF-8")
        language = self._known(language)
        text = normalise_punctuation(text, self.multilingual)
        if self.multilingual:
            text = f"[{language}]{normalize('NFKD', text.lower()).strip()}"
        ids = self._tokenizer.encode(text.replace(" ", "[SPACE]")).ids
        return np.asarray(ids, dtype=np.int32)

    def _known(self, language: str) -> str:
        code = language.lower() if isinstance(language, str) else language
        if code not in self.languages:
            known = ", ".join(self.languages)
            raise ValueError(f"unknown language {language!r}; this model speaks {known}")
        if code in _NEEDS_FRONT_END:
            raise Error(
                f"{_NEEDS_FRONT_END[code]} text cannot be read yet: its front-end is not in this "
                "version; token ids from elsewhere can be given to t3_logits"
            )
        return code
