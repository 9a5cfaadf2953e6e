"""Turbo and Nano from text to sound: one small model each, and copies with fewer bits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nightingale
from nightingale.model_rules import SILENCE
from tools.synthetic import write_checkpoint

from .folders import SHORT_PROMPT

pytestmark = pytest.mark.slow

TEXT = "Oh, [laugh] the boat went home."
SPEECH = {"max_tokens": 30, "seed": 3}
TOKEN_SAMPLES = 960
CLOSING = (SILENCE,) * 3


@pytest.fixture(scope="module", params=["turbo", "nano"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("checkpoints") / request.param
    write_checkpoint(path, model=request.param, s3gen_prompt_tokens=SHORT_PROMPT)
    return path


@pytest.fixture(scope="module")
def tts(folder: Path, device: str) -> nightingale.TTS:
    return nightingale.load(folder, device=device)


@pytest.fixture(scope="module")
def said(tts: nightingale.TTS) -> nightingale.Audio:
    return tts.generate(TEXT, **SPEECH)


def streamed(tts: nightingale.TTS) -> nightingale.Audio:
    chunks = list(tts.stream(TEXT, **SPEECH, first_chunk=6, chunk=10))
    assert len(chunks) > 2
    samples, tokens = (
        np.concatenate([getattr(chunk, name) for chunk in chunks]) for name in ("samples", "tokens")
    )
    return nightingale.Audio(samples, tokens, {})


def test_it_says_the_same_again_and_other_things_with_another_seed(
    tts: nightingale.TTS, said: nightingale.Audio
) -> None:
    again, other = tts.generate(TEXT, **SPEECH), tts.generate(TEXT, **SPEECH | {"seed": 4})
    np.testing.assert_array_equal(again.tokens, said.tokens)
    np.testing.assert_array_equal(again.samples, said.samples)
    assert other.tokens.tolist() != said.tokens.tolist()
    # Of the three tokens of silence at the end the last one's sound is cut off, as everywhere.
    assert len(said.samples) == TOKEN_SAMPLES * (len(said.tokens) + len(CLOSING) - 1)


def test_a_stream_has_the_tokens_of_the_whole(
    tts: nightingale.TTS, said: nightingale.Audio
) -> None:
    stream = streamed(tts)
    np.testing.assert_array_equal(stream.tokens, said.tokens)
    assert len(stream.samples) == len(said.samples)


def test_words_have_times_in_their_order(said: nightingale.Audio) -> None:
    words = [TEXT[word.source_start : word.source_end] for word in said.words]
    assert words == ["Oh", "[laugh]", "the", "boat", "went", "home"]
    times = [time for word in said.words for time in (word.start, word.end)]
    assert times == sorted(times)
    assert 0 <= times[0] < times[-1] <= len(said.samples) / said.sample_rate


@pytest.mark.parametrize("bits", [8, 4])
def test_with_fewer_bits_it_says_the_same_again_and_streams_it(
    folder: Path, device: str, bits: int
) -> None:
    tts = nightingale.load(folder, device=device, bits=bits, kv_bits=bits)
    assert (tts.info["t3"]["bits"], tts.info["t3"]["kv_bits"]) == (bits, bits)
    audio = tts.generate(TEXT, **SPEECH)
    again, stream = tts.generate(TEXT, **SPEECH), streamed(tts)
    np.testing.assert_array_equal(again.samples, audio.samples)
    np.testing.assert_array_equal(stream.tokens, audio.tokens)
