"""Runs of Nightingale's T3 with the arguments of the parity cases."""

from __future__ import annotations

from typing import Any

import numpy as np

import nightingale
from nightingale import _core

# Of max |logit|: the bound within which our float32 logits must be the reference's.
LOGITS_BOUND = 2e-4


def condition(tts: nightingale.TTS, prompt: bool, emotion: float) -> _core.KvCache:
    voice = tts._voice(None)
    tokens = voice.cond_prompt_speech_tokens if prompt else None
    return tts._engine.t3.condition(voice.speaker_emb, tokens, emotion)


def logits(tts: nightingale.TTS, case: dict[str, Any], chunk: int = 0) -> np.ndarray:
    """Teacher-forced logits; `chunk` feeds the speech tokens that many at a time."""
    return tts._engine.t3.logits(
        case["text_tokens"].astype(np.int32),
        case["speech_tokens"].astype(np.int32),
        condition(tts, case["prompt"], case["emotion"]),
        chunk,
    )


def greedy(tts: nightingale.TTS, case: dict[str, Any]) -> np.ndarray:
    """Tokens at temperature 0.0001 with the reference's other defaults."""
    options = nightingale.SpeechOptions(
        temperature=0.0001, repetition_penalty=2.0, max_tokens=case["steps"]
    )
    stream = tts._engine.t3.speak(
        case["text_tokens"].astype(np.int32),
        condition(tts, True, 0.5),
        options.resolved({}),
        analyser=case.get("analyser", False),
        min_tokens=case["steps"] if case.get("mask_stop", True) else 0,
    )
    return np.fromiter(iter(stream.next, None), np.int32)


def relative_error(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(found - expected).max() / np.abs(expected).max())
