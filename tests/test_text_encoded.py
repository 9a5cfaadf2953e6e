"""Segments as token ids: each sentence is tokenised once."""

# ruff: noqa: RUF001

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nightingale
from nightingale.text import Segment, prepare

from .sentence_cases import CASES

# By language: sentences that are spoken alone, being too long to be merged with a neighbour.
SENTENCES = {
    "en": "The committee meets every second Tuesday in the old town hall, opposite the station. ",
    "de": "Der Ausschuss tagt jeden zweiten Dienstag im alten Rathaus gegenüber dem Bahnhof. ",
    "ru": "Комитет заседает каждый второй вторник в старой ратуше напротив вокзала города. ",
    "el": "Η επιτροπή συνεδριάζει κάθε δεύτερη Τρίτη στο παλιό δημαρχείο απέναντι από το σταθμό. ",
    "hi": "समिति हर दूसरे मंगलवार को स्टेशन के सामने पुराने टाउन हॉल में बैठक करती है और बात करती है। ",
    "ko": "위원회는 격주 화요일마다 역 맞은편에 있는 오래된 시청에서 회의를 열고 말합니다. ",
}


def watch(tts: nightingale.TTS, patch: pytest.MonkeyPatch) -> list[str]:
    """The texts that reach the checkpoint's tokenizer from now on."""
    texts: list[str] = []
    ids = tts._tokenizer._ids

    def watched(read: str, language: str) -> np.ndarray:
        texts.append(read)
        return ids(read, language)

    patch.setattr(tts._tokenizer, "_ids", watched)
    return texts


@pytest.fixture
def tokenised(tts: nightingale.TTS, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    return watch(tts, monkeypatch)


@pytest.mark.parametrize("language", SENTENCES)
def test_each_sentence_is_tokenised_once(
    language: str, tts: nightingale.TTS, tokenised: list[str]
) -> None:
    segments = tts.prepare(SENTENCES[language] * 3, language)
    assert len(segments) == 3
    assert len(tokenised) == 1  # the same sentence three times
    tts.prepare(f"{SENTENCES[language]}\n\n{SENTENCES[language].replace(',', '')[9:]}", language)
    assert len(tokenised) == 3


def test_short_sentences_that_are_merged_are_tokenised_once(
    tts: nightingale.TTS, tokenised: list[str]
) -> None:
    text = "It rained. We stayed in. Nobody came. The cat slept on the mat all day, as cats do."
    segments = tts.prepare(text, "en")
    assert len(tokenised) == len(segments) < 4


def test_speaking_does_not_tokenise_again(
    quick_tts: nightingale.TTS, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = watch(quick_tts, monkeypatch)
    quick_tts.generate(SENTENCES["en"], max_tokens=5)
    assert len(texts) == 1


@pytest.mark.parametrize("language", SENTENCES)
def test_the_ids_are_those_of_the_segment_alone(language: str, tts: nightingale.TTS) -> None:
    text = SENTENCES[language] * 2 + f"\n\n{SENTENCES[language]}" + "w" * 300 + " x" * 300
    for segment in tts.prepare(text, language):
        assert segment.encoded is not None
        assert segment.encoded.ids.tolist() == tts.tokenize(segment.said, language).tolist()
        assert len(segment.encoded.word_of) == len(segment.encoded.ids)


def test_the_same_sentence_at_two_places_has_the_words_of_each(tts: nightingale.TTS) -> None:
    sentence = SENTENCES["en"]
    first, second = tts.prepare(sentence * 2, "en")
    assert first.encoded is not None
    assert second.encoded is not None
    assert first.encoded.words[1].source == (4, 13)
    assert second.encoded.words[1].source == (4 + len(sentence), 13 + len(sentence))


HARD = ["a; b… c" * 9, "œæßøłðþ" * 30, "İıǅﬃ ½㎒" * 20, "x" * 400, "…" * 50, "ﷺ" * 5, "Ａ１" * 40]


@pytest.mark.parametrize("language", ["en", "fr", "el", "hi", "ar", "tr"])
def test_the_bound_of_a_count_is_one(language: str, tts: nightingale.TTS) -> None:
    tokenizer = tts._tokenizer
    for text in [*HARD, *SENTENCES.values(), *(case for cases in CASES.values() for case in cases)]:
        if text.strip():
            assert tokenizer.count(text, language) <= tokenizer.count_at_most(text, language)


@pytest.mark.parametrize("language", SENTENCES)
def test_segments_are_the_same_with_and_without_the_bound(
    language: str, tts: nightingale.TTS
) -> None:
    text = SENTENCES[language] * 3 + "Ok. " * 5 + "; ".join([SENTENCES[language].strip(" .")] * 9)

    def counted(text: str) -> int:
        return tts._tokenizer.count(text, language)

    def written(segments: list[Segment]) -> list[tuple[Any, ...]]:
        return [(str(s.text), s.pause, s.ends) for s in segments]

    assert written(tts.prepare(text, language)) == written(prepare(text, language, count=counted))


def test_segments_that_were_not_tokenised_are_refused(tts: nightingale.TTS) -> None:
    with pytest.raises(ValueError, match="text must be a string, not list"):
        tts.stepwise(prepare("Hello there."))
