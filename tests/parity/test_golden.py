"""T3 at small size against outputs of the reference that are kept beside this file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nightingale

from . import cases, t3_runs

GOLDEN = Path(__file__).with_name("golden")


def load(name: str) -> dict[str, np.ndarray]:
    with np.load(GOLDEN / f"{name}.npz") as file:
        return dict(file)


@pytest.mark.parametrize(
    ("name", "prompt", "emotion"),
    [("prompt", True, 0.5), ("no_prompt", False, 0.5), ("emotion", True, 1.5)],
)
def test_conditioning_equals_the_reference(
    tts: nightingale.TTS, name: str, prompt: bool, emotion: float
) -> None:
    voice = tts._voice(None)
    tokens = voice.cond_prompt_speech_tokens if prompt else None
    found = tts._engine.t3.conditioning(voice.speaker_emb, tokens, emotion)[0]
    expected = load("conditioning")[f"{name}/embeds"]
    assert found.shape == expected.shape
    assert t3_runs.relative_error(found, expected) < 1e-5


@pytest.mark.parametrize("chunk", [0, 1, 7])
@pytest.mark.parametrize("index", range(len(cases.LOGITS_CORNERS)))
def test_logits_equal_the_reference(tts: nightingale.TTS, index: int, chunk: int) -> None:
    golden = load("logits")
    found = t3_runs.logits(tts, cases.logits_case(index), chunk)
    for key, value in cases.logits_digest(found).items():
        assert t3_runs.relative_error(value, golden[f"{index}/{key}"]) < t3_runs.LOGITS_BOUND
    if f"{index}/last" in golden:
        assert t3_runs.relative_error(found[:, -1], golden[f"{index}/last"]) < 1e-5


@pytest.mark.parametrize("index", [0, 1])
def test_greedy_tokens_equal_the_reference(tts: nightingale.TTS, index: int) -> None:
    golden = load("decode")
    assert golden[f"{index}/gaps"].min() > 1e-5  # no toss-up among them
    found = t3_runs.greedy(tts, cases.decode_case(index))
    np.testing.assert_array_equal(found, golden[f"{index}/tokens"])


def test_the_analyser_ends_a_run_where_the_reference_does(tts: nightingale.TTS) -> None:
    expected = load("decode")["analysed/tokens"]
    assert expected[-1] == cases.STOP_SPEECH
    found = t3_runs.greedy(tts, cases.analysed_decode_case())
    np.testing.assert_array_equal(found, expected[:-1])


def test_token_ids_equal_the_reference(checkpoints: Path) -> None:
    golden = load("tokenizer")
    for model in ("multilingual", "english"):
        tts = nightingale.load(checkpoints / model, device="cpu")
        rows = np.split(golden[f"{model}/ids"], np.cumsum(golden[f"{model}/lengths"])[:-1])
        texts = [
            (language, text)
            for language, text in cases.TOKENIZER_TEXTS
            if model == "multilingual" or language == "en"
        ]
        for (language, text), expected in zip(texts, rows, strict=True):
            if text:  # the reference speaks a sentence of its own there; we refuse
                np.testing.assert_array_equal(tts.tokenize(text, language), expected, err_msg=text)
