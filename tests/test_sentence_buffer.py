"""Sentences found while a text is still arriving."""

from __future__ import annotations

import random

import pytest

from nightingale.text.sentence_buffer import LOOKAHEAD, SPLIT_EVERY, SentenceBuffer
from nightingale.text.sentences import split_sentences

TEXTS = {
    "en": 'Dr. Smith arrived at 5 p.m. on Monday. "Really?" John asked. He said: it\'s 3.14!\n\n'
    "A second paragraph begins here... and goes on. Does it end? Yes, it ends.",
    "fr": "Bonjour à tous. Comment allez-vous ? Très bien, merci ! Il est 8 h. À demain.",
    "zh": "你好,世界。今天天气很好!我们去公园吧?好的,没问题。再见。我们明天早上再见面吧。",
    "de": "Das ist der 1. Mai. Wir feiern z. B. im Garten. Kommst du? Ja, gern.",
}


@pytest.mark.parametrize("language", TEXTS)
@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_the_sentences_are_those_of_the_whole_text(language: str, size: int) -> None:
    text = TEXTS[language]
    buffer = SentenceBuffer(language)
    parts = [buffer.add(text[i : i + size]) for i in range(0, len(text), size)]
    parts.append(buffer.rest())
    assert "".join(parts) == text
    found = [sentence for part in parts for sentence in split_sentences(part, language)]
    assert found == split_sentences(text, language)
    assert len([part for part in parts if part.strip()]) > (1 if size < 1000 else 0)


def test_nothing_is_lost_or_doubled_however_the_text_is_cut() -> None:
    draw = random.Random(5)
    for _ in range(200):
        text = "".join(draw.choices("ab .!?\n\u3002\"'1-", k=80))
        buffer = SentenceBuffer()
        parts, position = [], 0
        while position < len(text):
            size = draw.randint(1, 20)
            parts.append(buffer.add(text[position : position + size]))
            position += size
        assert "".join(parts) + buffer.rest() == text
        assert len(buffer) == 0


def test_a_sentence_waits_for_the_beginning_of_the_next() -> None:
    buffer = SentenceBuffer()
    assert buffer.add("It is late. ") == ""
    assert buffer.add("X" * (LOOKAHEAD - SPLIT_EVERY)) == ""
    assert buffer.add("X" * SPLIT_EVERY) == "It is late. "
    assert buffer.rest() == "X" * LOOKAHEAD
    assert buffer.rest() == ""
