"""Where in the text speech tokens are that the model is given, and did not draw."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nightingale

TEXT = "Seven grey ships came back without their sails."


def test_tokens_that_were_drawn_are_where_they_were_drawn(tts: nightingale.TTS) -> None:
    engine, voice = tts._engine, tts._voice(None)
    text = tts.tokenize(TEXT)
    options = tts._resolved(nightingale.SpeechOptions(seed=3, max_tokens=120), voice)
    speech = engine.speak(text, voice, options)
    drawn = [(token, speech.text_position) for token in engine.tokens(speech)]
    tokens = np.array([token for token, _ in drawn], np.int32)
    positions = [position for _, position in drawn]
    assert len(set(positions)) > 5
    assert engine.text_positions(text, tokens, voice) == positions


def test_no_tokens_are_nowhere(tts: nightingale.TTS) -> None:
    none = np.zeros(0, np.int32)
    assert tts._engine.text_positions(tts.tokenize(TEXT), none, tts._voice(None)) == []


def test_tokens_out_of_range_are_refused(tts: nightingale.TTS) -> None:
    tokens = np.array([5, 8194, 7], np.int32)
    with pytest.raises(ValueError, match="8194"):
        tts._engine.text_positions(tts.tokenize(TEXT), tokens, tts._voice(None))


def test_a_model_without_alignment_heads_says_so(checkpoints: Path, device: str) -> None:
    english = nightingale.load(checkpoints / "english", device=device)
    tokens = np.arange(5, dtype=np.int32)
    with pytest.raises(nightingale.Error, match="has no alignment heads"):
        english._engine.text_positions(english.tokenize(TEXT), tokens, english._voice(None))
