"""Quantized KV caches and those with a budget, end to end on a small checkpoint."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import nightingale
from nightingale import _core, cli
from nightingale.batch_requests import Requests
from nightingale.checkpoint import find_checkpoint
from nightingale.loading import on_device
from nightingale.manifest import Line
from nightingale.networks import cache_bits
from nightingale.options import LoadOptions, SpeechOptions

TEXT = "The quick brown fox jumps over the lazy dog."


def test_quantized_weights_have_a_quantized_cache() -> None:
    assert cache_bits(None, None) == 0
    assert cache_bits(None, 4) == 8
    assert cache_bits(4, 8) == 4
    assert isinstance(LoadOptions(kv_bits=8, kv_budget=1).kv_budget, float)


def test_a_budget_on_a_gpu_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_core, "gpu_available", lambda: True)
    with pytest.raises(nightingale.Error, match="kv_budget works on the CPU only"):
        on_device(LoadOptions(kv_budget=0.5))


def test_a_draft_beside_a_budget_is_an_error(checkpoint: Path) -> None:
    with pytest.raises(nightingale.Error, match="draft needs a whole KV cache"):
        nightingale.load(checkpoint, kv_budget=0.5, draft="ngram", device="cpu")


@pytest.mark.parametrize("kv_bits", [8, 4])
def test_a_quantized_cache_speaks_the_same_tokens_again(
    checkpoint: Path, device: str, kv_bits: int
) -> None:
    tts = nightingale.load(checkpoint, kv_bits=kv_bits, device=device)
    assert tts.info["t3"]["kv_bits"] == kv_bits
    assert tts.info["t3"]["kv_budget"] is None
    tokens = tts.speech_tokens(TEXT, seed=3, max_tokens=60)
    assert len(tokens) > 0
    assert np.array_equal(tts.speech_tokens(TEXT, seed=3, max_tokens=60), tokens)


def test_logits_over_a_quantized_cache_are_near_those_over_floats(
    checkpoint: Path, tts: nightingale.TTS, device: str
) -> None:
    assert tts.info["t3"]["kv_bits"] is None
    text = tts.tokenize(TEXT)
    speech = np.array([6561, *range(0, 6000, 150)], np.int32)
    floats = tts.t3_logits(text, speech)
    errors = []
    for kv_bits in (8, 4):
        quantized = nightingale.load(checkpoint, kv_bits=kv_bits, device=device)
        difference = np.abs(quantized.t3_logits(text, speech) - floats).max()
        errors.append(difference / np.abs(floats).max())
    assert 0 < errors[0] < 0.02
    assert errors[0] < errors[1] < 0.3


@pytest.mark.slow
def test_a_budget_holds_less_and_speaks_on(checkpoint: Path) -> None:
    held = {}
    for kv_budget in (None, 0.5, 0.1):
        tts = nightingale.load(checkpoint, kv_budget=kv_budget, device="cpu")
        told = tts.info["t3"]["kv_budget"]
        assert told is None if kv_budget is None else told == pytest.approx(kv_budget)
        engine, voice = tts._engine, tts._voice(None)
        options = tts._resolved(SpeechOptions(max_tokens=200, exaggeration=0.5), voice)
        speech = engine.speak(tts.tokenize(TEXT), voice, options, min_tokens=200)
        assert len(list(engine.tokens(speech))) == 200
        held[kv_budget] = speech.cache_bytes
        again = tts.speech_tokens(TEXT, max_tokens=60)
        assert np.array_equal(tts.speech_tokens(TEXT, max_tokens=60), again)
    speech_part = held[None] - held[0.5]  # half of what was said
    assert held[0.1] == pytest.approx(held[None] - 1.8 * speech_part, rel=0.05)


def test_a_whole_budget_changes_nothing(checkpoint: Path) -> None:
    whole = nightingale.load(checkpoint, kv_budget=1.0, device="cpu")
    plain = nightingale.load(checkpoint, device="cpu")
    tokens = plain.speech_tokens(TEXT, seed=5, max_tokens=80)
    assert np.array_equal(whole.speech_tokens(TEXT, seed=5, max_tokens=80), tokens)


def test_the_command_line_keeps_the_cache_as_load_does(
    checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["tokens", TEXT, "--json", "--max-tokens", "40", "--model", str(checkpoint)]
    cli.main([*words, "--device", "cpu", "--kv-bits", "4", "--kv-budget", "0.5"])
    tts = nightingale.load(checkpoint, kv_bits=4, kv_budget=0.5, device="cpu")
    tokens = tts.speech_tokens(TEXT, max_tokens=40)
    assert json.loads(capsys.readouterr().out) == tokens.tolist()


def test_a_batch_says_again_what_was_said_with_another_cache(checkpoint: Path) -> None:
    line = Line(1, TEXT, "one.wav", {})
    digests = {
        Requests(find_checkpoint(checkpoint), LoadOptions(**kv), {}).request(line).digest
        for kv in ({}, {"kv_bits": 8}, {"kv_bits": 4}, {"kv_bits": 8, "kv_budget": 0.5})
    }
    assert len(digests) == 4
