"""Text that arrives in the smallest parts."""

from __future__ import annotations

import random

import pytest

from nightingale.text import sentence_buffer
from nightingale.text.sentence_buffer import SentenceBuffer
from nightingale.text.sentences import split_sentences

from ..sentence_cases import CASES

# What is never, or only late, a sentence's end.
ENDLESS = ["Mr. ", "a ", "a.b", "e.g. ", "x\n", "1.5 ", "Hello there. "]


def passages(text: str, language: str, cuts: list[int]) -> list[str]:
    buffer = SentenceBuffer(language)
    parts = [buffer.add(text[i:j]) for i, j in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    return [part for part in (*parts, buffer.rest()) if part]


def split_from_the_start(text: str, language: str, cuts: list[int]) -> list[str]:
    """Passages as they are found by splitting all there is after every fourth character."""
    found, rest, seen = [], "", 0
    for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        rest += text[begin:end]
        if len(rest) - seen < 4:
            continue
        seen = len(rest)
        parts = split_sentences(rest, language)
        last = parts.pop() if parts else ""
        while parts and len(last) < 16:
            last = parts.pop() + last
        if parts:
            place = sentence_buffer._start_of(last, rest)
            found.append(rest[:place])
            rest = rest[place:]
            seen = len(rest)
    return [part for part in (*found, rest) if part]


@pytest.mark.parametrize("language", CASES)
def test_the_passages_are_those_of_splitting_from_the_start(language: str) -> None:
    draw = random.Random(language)
    for case in CASES[language]:
        first = case.replace("|", "")
        text = f"{first} {first}" if "\n" not in first else first
        for count in (0, 1, 3, len(text) - 1):
            cuts = sorted(draw.sample(range(1, len(text)), min(count, len(text) - 1)))
            found = passages(text, language, cuts)
            assert "".join(found) == text
            assert found == split_from_the_start(text, language, cuts)


@pytest.mark.nightly
@pytest.mark.parametrize("unit", ENDLESS)
def test_the_work_grows_with_the_length_of_the_text(
    monkeypatch: pytest.MonkeyPatch, unit: str
) -> None:
    work = 0

    def watched(text: str, language: str) -> list[str]:
        nonlocal work
        work += len(text)
        return split_sentences(text, language)

    monkeypatch.setattr(sentence_buffer, "split_sentences", watched)
    buffer = SentenceBuffer()
    text = (unit * 10_000)[:10_000]
    taken = [buffer.add(character) for character in text]
    assert "".join(taken) + buffer.rest() == text
    assert work <= 12 * len(text)
