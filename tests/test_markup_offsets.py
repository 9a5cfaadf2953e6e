"""Which characters of a document with markup each spoken word comes from."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise

import pytest

from nightingale.checkpoint import EMBEDDED, LANGUAGES
from nightingale.family import MULTILINGUAL_TOKENIZER
from nightingale.text import Tokenizer, prepare
from nightingale.text.traced import Traced

from . import markup_texts
from .markup_texts import Document, documents


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer(EMBEDDED / MULTILINGUAL_TOKENIZER, LANGUAGES, True)


def words_of(tokenizer: Tokenizer, document: Document, markup: str) -> list[Traced]:
    segments = [s for s in prepare(document.text, document.language, markup=markup) if s.text]
    # Words are the same in all languages without a front-end.
    return [word for segment in segments for word in tokenizer.encode_words(segment.text, "en")[1]]


@pytest.mark.slow
@pytest.mark.parametrize("count", [250, pytest.param(1250, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("markup", ["plain", "ssml", "markdown", "html"])
def test_offsets_increase_cover_every_spoken_word_and_slice_the_source(
    markup: str, count: int, tokenizer: Tokenizer
) -> None:
    write: Callable[[Document], None] = getattr(markup_texts, markup)
    for document in documents(count, write, seed=count):
        text = document.text
        if not any(document.spoken):
            continue
        words = words_of(tokenizer, document, markup)
        covered = [False] * len(text)
        for word in words:
            start, end = word.source
            assert 0 <= start < end <= len(text), text
            assert text[start:end].strip(), (text, word)
            covered[start:end] = [True] * (end - start)
        assert all(a.source[0] <= b.source[0] for a, b in pairwise(words)), text
        assert not any(word.lower() == "no" for word in words), text
        missed = [i for i, spoken in enumerate(document.spoken) if spoken and not covered[i]]
        assert not missed, (text, missed)


@pytest.mark.slow
@pytest.mark.parametrize("markup", ["ssml", "markdown", "html"])
def test_any_text_is_read_or_refused(markup: str) -> None:
    draw = random.Random(9)
    parts = (
        *("<speak>", "</speak>", "<p>", "</p>", "<b", "<!--", "-->", "&amp;", "&#1", "<![CDATA["),
        *(
            "# ",
            "- ",
            "1. ",
            "> ",
            "*",
            "**",
            "`",
            "```\n",
            "|",
            "\n",
            "\n\n",
            "\\",
            "[",
            "](",
            ")",
        ),
        *("\r", "\t", "    ", "\0", "é", "word", "!", "]]>", "<script>", "<br/>", "=", "---", "~~"),
    )
    for _ in range(500):
        text = "".join(draw.choice(parts) for _ in range(draw.randint(1, 25)))
        try:
            segments = prepare(text, markup=markup)
        except ValueError:
            continue
        for segment in segments:
            for word in segment.text.words():
                assert 0 <= word.source[0] <= word.source[1] <= len(text), text
