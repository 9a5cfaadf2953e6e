"""Long text to pieces that T3 can say, with the pauses asked for."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from ..arguments import number, whole

LIMIT = 15.0  # seconds of speech a piece; T3 can say 40, but not as well
MAX_TOKENS = 400  # text tokens a piece


@dataclass(frozen=True)
class Piece:
    """Text to say in one go, and what comes after it.

    Text is empty where a pause has no text before it: at the start, or when there is nothing else.
    """

    text: str  # what goes to the tokenizer
    pause: float  # seconds of silence asked for after it
    ends: str  # with a "sentence", "clause", "cut" or "paragraph"


def prepare(
    text: str,
    language: str = "en",
    limit: float | None = None,
    count: Callable[[str], int] | None = None,
    *,
    max_tokens: int = MAX_TOKENS,
    expand: bool = True,
) -> list[Piece]:
    """Cuts a text of any length into pieces to say one after another.

    limit: seconds of speech a piece may take, as estimated; None is 15. count: tokens of a text,
    max_tokens at most in a piece. expand: English numbers and abbreviations become words. Marks
    such as [pause 500ms] become the pause of the piece before them; several in a row add up.
    """
    if not isinstance(text, str):
        raise ValueError(f"text must be a string, not {type(text).__name__}")
    if not isinstance(language, str):
        raise ValueError(f"language must be a code such as 'en', not {language!r}")
    limit = LIMIT if limit is None else number("limit", limit)
    if not 0 < limit < math.inf:
        raise ValueError(f"limit must be a number of seconds above 0, not {limit}")
    max_tokens = whole("max_tokens", max_tokens, 1, 2**31 - 1)
    # Imported here: its patterns take a while to compile and not every command speaks.
    from .preparation import Preparation

    return Preparation(language.lower(), limit, count, max_tokens, expand).pieces(text)
