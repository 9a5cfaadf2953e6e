"""Word times of models whose files name no alignment heads: heads are found by measurement."""

from __future__ import annotations

import numpy as np
import pytest

import nightingale
from nightingale import _core
from nightingale.alignment import best_heads, followed_share, monotonic_path, text_weights
from nightingale.checkpoint import embedded_model
from nightingale.word_times import TOKENS_PER_SECOND, Word, spoken_words

from .folders import with_settings

MEDIAN_BOUND = 0.080  # seconds
TEXTS = (
    "It was a bright cold day in April, and the clocks were striking.",
    "The birch canoe slid on the smooth planks.",
    "When the sunlight strikes raindrops in the air, they act like a prism.",
    "He read the letter twice, then folded it and put it away.",
)
SETTINGS = {"steps": 1, "seed": 4}

embedded = pytest.mark.skipif(embedded_model() is None, reason="built without the embedded model")


@pytest.fixture(scope="module")
def own() -> nightingale.TTS:
    return nightingale.load()


@pytest.fixture(scope="module")
def hidden(tmp_path_factory: pytest.TempPathFactory) -> nightingale.TTS:
    """The embedded model, whose files do not say which heads follow the text."""
    folder = tmp_path_factory.mktemp("hidden")
    model = embedded_model()
    assert model is not None
    t3 = {"analyser": False, "alignment_heads": [], "repetition_penalty": 1.2}
    return nightingale.load(with_settings(model, folder, t3=t3))


def edges(words: list[Word]) -> np.ndarray:
    return np.array([(word.start, word.end) for word in words])


def times(tts: nightingale.TTS, text: str, positions: list[int]) -> list[Word]:
    encoded = tts._tokenizer.encode_words(text, "en")
    words = _core.WordTimes(len(encoded.words), encoded.word_of)
    words.set_positions(positions)
    return spoken_words(encoded.words, words.take_rest(len(positions) / TOKENS_PER_SECOND))


@embedded
def test_times_by_found_heads_are_those_by_the_model_s_own(
    own: nightingale.TTS, hidden: nightingale.TTS
) -> None:
    voice = own._voice(None)
    hidden._find_heads(voice)
    options = hidden._resolved(nightingale.SpeechOptions(), voice)
    errors = []
    for text in TEXTS:
        ids, tokens = own.tokenize(text), own.speech_tokens(text, seed=4)
        expected = times(own, text, own._engine.text_positions(ids, tokens, voice))
        heads = hidden._engine.found_heads
        weights = text_weights(hidden._engine, ids, tokens, voice, options, heads)
        found = times(hidden, text, (monotonic_path(weights.mean(axis=0)) + 1).tolist())
        assert [word.text for word in found] == [word.text for word in expected]
        errors.append(np.abs(edges(found) - edges(expected)).ravel())
    errors = np.concatenate(errors)
    assert len(errors) > 60
    assert np.median(errors) <= MEDIAN_BOUND
    assert np.quantile(errors, 0.9) <= 2 * MEDIAN_BOUND


@embedded
def test_a_stream_gives_each_word_once_and_in_order(
    own: nightingale.TTS, hidden: nightingale.TTS
) -> None:
    text = TEXTS[1]
    expected, chunks = own.generate(text, **SETTINGS), list(hidden.stream(text, **SETTINGS))
    words = [word for chunk in chunks for word in chunk.words]
    assert [(word.text, *word[3:]) for word in words] == [
        (word.text, *word[3:]) for word in expected.words
    ]
    assert len([chunk for chunk in chunks if chunk.words]) > 1
    found = edges(words).ravel()
    assert (np.diff(found) >= 0).all()
    assert np.median(np.abs(found - edges(expected.words).ravel())) <= MEDIAN_BOUND


def following(queries: int, text: int, rng: np.random.Generator) -> np.ndarray:
    """[queries, text] of a head that goes through the text at a steady rate, with noise."""
    places = np.arange(queries) * text // queries
    weights = rng.random((queries, text)) * 0.02
    weights[np.arange(queries), places] += 0.6
    return weights


def test_a_path_follows_attention_and_never_goes_back() -> None:
    rng = np.random.default_rng(0)
    weights = following(80, 20, rng)
    weights[40, 3] = 0.9  # it looks back for a moment
    path = monotonic_path(weights)
    assert (np.diff(path) >= 0).all()
    np.testing.assert_array_equal(path, np.arange(80) * 20 // 80)


def test_a_path_of_a_part_ends_where_the_part_does() -> None:
    weights = following(80, 20, np.random.default_rng(0))
    assert monotonic_path(weights[:41], to_end=False)[-1] == 10
    assert monotonic_path(weights)[-1] == 19


def test_text_that_is_passed_over_is_skipped() -> None:
    places = np.repeat([0, 1, 2, 6, 7], 4)
    weights = np.full((20, 8), 0.01)
    weights[np.arange(20), places] = 0.8
    np.testing.assert_array_equal(monotonic_path(weights), places)


def test_heads_that_follow_the_text_are_found_among_others() -> None:
    rng = np.random.default_rng(0)
    texts = []
    for queries, text in ((60, 30), (90, 25)):
        weights = rng.dirichlet(np.ones(text), (12, queries))
        weights[2] = np.eye(1, text)  # always the first token
        weights[5] = np.eye(1, text, text - 1)  # always the last
        weights[7] = following(queries, text, rng)
        weights[9] = following(queries, text, rng)[::-1]  # backwards
        weights[10] = 0.5 * following(queries, text, rng)
        texts.append(weights)
    assert best_heads(texts, 2) == [7, 10]
    assert followed_share(texts[0][7]) > 0.5 > 0.2 > followed_share(texts[0][2])


def test_one_speech_token_or_one_text_token_has_a_path() -> None:
    assert monotonic_path(np.array([[0.2, 0.7]])).tolist() == [1]
    assert monotonic_path(np.full((3, 1), 0.5)).tolist() == [0, 0, 0]
