"""Documents with markup: what of them is spoken, how, and where in the document it stands."""

from collections.abc import Callable
from itertools import groupby
from typing import Any

from ...language_tags import language_code
from ..segment import Passage
from ..traced import traced
from .ssml import is_ssml, read_ssml

__all__ = ["MARKUPS", "markup_of", "passages_of", "without_markup"]

MARKUPS = ("plain", "ssml", "markdown", "html")


def markup_of(text: str) -> str:
    """What a text is by its looks: "ssml" where it begins with <speak>, else "plain"."""
    return "ssml" if is_ssml(text) else "plain"


def passages_of(
    text: str,
    language: str,
    markup: str | None = None,
    find_language: Callable[[str], str] = language_code,
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
    if markup == "markdown":
        from .markdown import read_markdown

        return read_markdown(text, language)
    if markup == "html":
        from .html import read_html

        return read_html(text, language)
    return [Passage(traced(text))]


def without_markup(text: str, language: str, markup: str | None = None) -> str:
    """A text that has been read before with spaces in place of its markup, so that each character
    is where it was; plain text as it is. What SSML has other words for stays as it is written."""
    markup = markup_of(text) if markup is None else markup
    if markup == "plain":
        return text
    if markup == "ssml":
        language = "en"  # of words that are not shown; English can say all that other languages can
    written = [" "] * len(text)
    for passage in passages_of(text, language, markup):
        places = zip(passage.text.starts, passage.text.ends, strict=True)
        for (start, end), characters in groupby(zip(places, passage.text, strict=True), _place):
            shown = "".join(character for _, character in characters)
            if len(shown) > 1 and markup == "ssml":
                shown = text[start:end]
            written[start:end] = shown[: end - start].ljust(end - start)
    return "".join(written)


def _place(placed: tuple[tuple[int, int], str]) -> tuple[int, int]:
    return placed[0]
