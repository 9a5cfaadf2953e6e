"""Plain punctuation, as the models were taught to read it."""

import re
from typing import NamedTuple

from .traced import Traced, traced

_FIRST = re.compile(r"\A.", re.DOTALL)


class Punctuation(NamedTuple):
    """The rules of one kind of model."""

    replaced: tuple[tuple[str, str], ...]  # in their order
    enders: tuple[str, ...]  # a text that ends with none of them gets a full stop


_ELLIPSIS_AND_COLON = (("…", ", "), (":", ","))
_DASHES_AND_QUOTES = (
    ("—", "-"),
    ("–", "-"),
    (" ,", ","),
    ("“", '"'),
    ("”", '"'),
    ("‘", "'"),
    ("’", "'"),
)
_REPLACED = (
    ("...", ", "),
    *_ELLIPSIS_AND_COLON,
    (" - ", ", "),
    (";", ", "),
    *_DASHES_AND_QUOTES,
)
_ENDERS = (".", "!", "?", "-", ",")

ENGLISH = Punctuation(_REPLACED, _ENDERS)
MULTILINGUAL = Punctuation(_REPLACED, (*_ENDERS, "、", "，", "。", "？", "！"))
TURBO = Punctuation((*_ELLIPSIS_AND_COLON, *_DASHES_AND_QUOTES), _ENDERS)

# What the rules put two characters in place of.
LONGER_WHEN_NORMALISED = ("…", ";")


def normalise_punctuation(text: str, rules: Punctuation = MULTILINGUAL) -> Traced:
    """One space between words, plain punctuation, a capital first and a sentence end last."""
    text = traced(text)
    if text[:1].islower():
        text = text.sub(_FIRST, lambda first: first[0].upper())
    text = text.collapsed()
    for old, new in rules.replaced:
        text = text.replace(old, new)
    text = text.rstrip(" ")
    return text if text.endswith(rules.enders) else text + "."
