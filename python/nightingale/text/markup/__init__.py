"""Documents with markup: what of them is spoken, how, and where in the document it stands."""

from collections.abc import Callable
from typing import Any

from ..segment import Passage
from ..traced import traced
from .ssml import is_ssml, read_ssml

__all__ = ["MARKUPS", "markup_of", "passages_of"]

MARKUPS = ("plain", "ssml")


def markup_of(text: str) -> str:
    """What a text is by its looks: "ssml" where it begins with <speak>, else "plain"."""
    return "ssml" if is_ssml(text) else "plain"


def passages_of(
    text: str,
    language: str,
    markup: str | None = None,
    find_language: Callable[[str], str] = str,
    find_voice: Callable[[str], Any] = str,
) -> list[Passage]:
    """What is spoken of a text.

    language: of the text, where it does not say. markup: one of MARKUPS; None: by its looks.
    find_language, find_voice: what a code and a name in the text stand for, or a ValueError.
    """
    markup = markup_of(text) if markup is None else markup
    if markup not in MARKUPS:
        raise ValueError(f"markup must be one of {', '.join(MARKUPS)}, not {markup!r}")
    if markup == "ssml":
        return read_ssml(text, language, find_language, find_voice)
    return [Passage(traced(text))]
