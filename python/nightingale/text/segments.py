"""Text of any length as segments that T3 can speak, with the pauses that are marked in it."""

import math
from collections.abc import Callable, Sequence

from ..language_tags import language_code
from ..option import number, whole
from .lexicon import Lexicon
from .segment import Passage, Segment

LIMIT = 15.0  # seconds of speech in a segment; T3 can speak 40, but not as well
MAX_TOKENS = 400  # text tokens in a segment


def prepare(
    text: str,
    language: str = "en",
    limit: float | None = None,
    count: Callable[[str], int] | None = None,
    *,
    max_tokens: int = MAX_TOKENS,
    lexicon: Lexicon | None = None,
    expand: bool = True,
    markup: str | None = None,
) -> list[Segment]:
    """Splits a text of any length into segments.

    limit: estimated seconds of speech in a segment; None is 15. count: gives the number of tokens
    of a text, at most max_tokens in a segment. lexicon: respellings of words. expand: numbers and
    abbreviations become words.
    Marks such as [pause 500ms] become the pause of the segment before them; several in a row add
    up, to 30 s at most. markup: one of MARKUPS; None is "ssml" for a text that begins with
    <speak>, else "plain".
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
    from .markup import passages_of
    from .segmentation import Segmenter

    code = language_code(language)
    passages = passages_of(text, code, markup)
    counted = None if count is None else (lambda text, _: count(text))
    segmenter = Segmenter(code, limit, counted, max_tokens, expand, lexicon=lexicon)
    return segmenter.segments(passages)


def prepare_passages(
    passages: Sequence[Passage],
    language: str,
    count: Callable[[str, str], int],
    *,
    count_at_most: Callable[[str, str], float] | None = None,
    lexicon: Lexicon | None = None,
) -> list[Segment]:
    """What `prepare` makes of a text whose passages are known; what counts also gets the
    language."""
    from .segmentation import Segmenter

    segmenter = Segmenter(
        language,
        LIMIT,
        count,
        MAX_TOKENS,
        expand=True,
        count_at_most=count_at_most,
        lexicon=lexicon,
    )
    return segmenter.segments(passages)
