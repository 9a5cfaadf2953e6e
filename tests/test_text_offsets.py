"""Which characters of the input each spoken word comes from."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

import nightingale
from nightingale.text import Tokenizer, prepare
from nightingale.text.traced import Traced, joined, traced

from .test_text_properties import generated, settings_of


def sources(text: Traced) -> list[tuple[str, str]]:
    """The words of a text and what they come from in `SOURCE`."""
    return [(word, SOURCE[slice(*word.source)]) for word in text.words()]


SOURCE = "Henry VIII had  6 wives, at $5 each."


def test_slices_and_sums_keep_the_positions() -> None:
    text = traced(SOURCE)
    assert text == SOURCE
    assert text[6:10].source == (6, 10)
    assert (text[:5] + text[10:]).source == (0, len(SOURCE))
    assert text.strip(" .H").source == (1, len(SOURCE) - 1)
    assert [part.source for part in text.parts(",")] == [(0, 23), (24, len(SOURCE))]
    assert text.parts(",") == SOURCE.split(",")
    assert text.collapsed() == " ".join(SOURCE.split())
    assert sources(text.collapsed()) == [(word, word) for word in SOURCE.split()]
    assert type(text[0]) is str
    assert type(text.upper()) is str


def test_what_is_put_in_has_no_width() -> None:
    text = traced(SOURCE)
    assert (text + "!").ends[-1] == (text + "!").starts[-1] == len(SOURCE)
    before = "So " + text[6:]
    assert isinstance(before, Traced)
    assert list(before.starts[:4]) == [6, 6, 6, 6]
    assert joined([text[:5], "and", text[6:10]], " ").source == (0, 10)
    assert list(traced("").starts) == []
    assert traced("").source == (0, 0)


def test_a_substitution_comes_from_what_it_replaces() -> None:
    text = traced(SOURCE).sub(re.compile(r"(Henry) VIII"), r"\1 the Eighth")
    text = text.sub(re.compile(r"\$([0-9])"), lambda found: f"{found[1]} dollars")
    text = text.sub(re.compile("[0-9]"), lambda found: {"6": "six", "5": "five"}[found[0]])
    assert text == "Henry the Eighth had  six wives, at five dollars each."
    assert sources(text)[:3] == [("Henry", "Henry"), ("the", "VIII"), ("Eighth", "VIII")]
    assert ("six", "6") in sources(text)
    assert ("five", "$5") in sources(text)
    assert ("dollars", "$5") in sources(text)
    assert text.replace("wives", "wives").starts == text.starts
    assert text.replace("e", "E", 2) == str(text).replace("e", "E", 2)


@pytest.fixture(scope="module")
def tokenizer(tts: nightingale.TTS) -> Tokenizer:
    return tts._tokenizer


def words_of(tokenizer: Tokenizer, text: str, language: str, **settings: object) -> list[Traced]:
    return [
        word
        for segment in prepare(text, language, **settings)  # type: ignore[arg-type]
        if segment.text
        for word in tokenizer.encode_words(segment.text, language)[1]
    ]


def test_numbers_and_abbreviations_are_found_again(tokenizer: Tokenizer) -> None:
    text = "- Dr. Smith  paid $5.50 [pause 1s] on\n3/4/2024 for 20% of it…"
    found = {str(w): text[slice(*w.source)] for w in words_of(tokenizer, text, "en")}
    assert found["Doctor"] == "Dr."
    assert found["Smith"] == "Smith"
    assert found["fifty"] == found["dollars"] == "$5.50"
    assert found["fourth"] == "3/4/2024"
    assert found["percent"] == "20%"
    assert found["it"] == "it"


@pytest.mark.slow
@pytest.mark.parametrize("count", [800, pytest.param(5000, marks=pytest.mark.nightly)])
def test_offsets_increase_and_slice_the_source(count: int, tokenizer: Tokenizer) -> None:
    """In texts of the languages that the tests' model has a front-end for or needs none."""
    known = set(tokenizer.languages) - {"zh"}
    made = generated(count * 12 // 5, breaks=True)
    texts = [(lang, text) for lang, text in made if lang in known and len(text) < 300]
    assert len(texts) > count
    for i, (language, text) in enumerate(texts):
        words = words_of(tokenizer, text, language, **settings_of(i))
        assert all(0 <= w.source[0] < w.source[1] <= len(text) for w in words), text
        assert all(a.source[0] <= b.source[0] for a, b in pairwise(words)), text
        assert all(text[slice(*word.source)].strip() for word in words), text
        unspoken = re.sub(r"(?i)\[pause[^]]*\]", lambda mark: " " * len(mark[0]), text)
        for word in words:
            unspoken = (
                unspoken[: word.source[0]]
                + " " * (word.source[1] - word.source[0])
                + unspoken[word.source[1] :]
            )
        assert not re.search(r"[^\W\d_]", unspoken), (text, unspoken)


def test_the_words_of_speech_say_where_they_come_from(tts: nightingale.TTS) -> None:
    text = "Glue the 2 sheets.  Use 5% of it."
    audio = tts.generate(text, seed=1, max_tokens=60, steps=1)
    assert all(isinstance(word, nightingale.Word) for word in audio.words)
    places = [(word.source_start, word.source_end) for word in audio.words]
    assert places == sorted(places)
    assert {text[start:end] for start, end in places} >= {"Glue", "the", "2"}
