"""Text of any length as segments that T3 can speak, with the pauses that are marked in it."""

import math
from collections.abc import Callable

from ..option import number, whole
from .lexicon import Lexicon
from .segment import Segment

LIMIT = 15.0  # seconds of speech in a segment; T3 can speak 40, but not as well
MAX_TOKENS = 400  # text tokens in a segment


def prepare(
    text: str,
    language: str = "en",
    limit: float | None = None,
    count: Callable[[str], int] | None = None,
    *,
    max_tokens: int = MAX_TOKENS,
    count_at_most: Callable[[str], float] | None = None,
    lexicon: Lexicon | None = None,
    expand: bool = True,
) -> list[Segment]:
    """Splits a text of any length into segments.

    limit: estimated seconds of speech in a segment; None is 15. count: gives the number of tokens
    of a text, at most max_tokens in a segment; count_at_most: a bound of it, where that is faster.
    lexicon: respellings of words. expand: numbers and abbreviations become words.
    Marks such as [pause 500ms] become the pause of the segment before them; several in a row add
    up, to 30 s at most.
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
    from .segmentation import Segmenter

    segmenter = Segmenter(
        language.lower(), limit, count, max_tokens, expand, count_at_most, lexicon
    )
    return segmenter.segments(text)
