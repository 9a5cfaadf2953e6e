"""Which recordings and voices the models take: those of Turbo and Nano, and those of the others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import nightingale
from nightingale import Voice
from nightingale.loudness import integrated_loudness
from nightingale.recording import read_recording
from nightingale.voice_prompt import STANDARD, TURBO

from .recordings import speech

RATE = 24_000


@pytest.fixture(scope="module")
def voice(checkpoint: Path) -> Voice:
    return Voice.load(checkpoint / "conds.pt")


def test_turbo_s_recordings_are_brought_to_its_loudness() -> None:
    recording = read_recording(speech(7.0, RATE), RATE)
    prepared = TURBO.prepared(recording)
    assert integrated_loudness(prepared.at_24k, RATE) == pytest.approx(-27.0, abs=1e-3)
    assert integrated_loudness(prepared.at_16k, 16_000) == pytest.approx(-27.0, abs=0.05)
    assert prepared.at_24k.dtype == prepared.at_16k.dtype == np.float32
    assert STANDARD.prepared(recording) is recording


@pytest.mark.parametrize(("seconds", "long_enough"), [(1.5, False), (5.0, False), (5.01, True)])
def test_turbo_needs_more_than_five_seconds(seconds: float, long_enough: bool) -> None:
    recording = read_recording(speech(seconds, RATE), RATE)
    STANDARD.prepared(recording)
    if long_enough:
        TURBO.prepared(recording)
    else:
        with pytest.raises(ValueError, match="a voice for Turbo and Nano needs more than 5 s"):
            TURBO.prepared(recording)


def test_the_length_of_t3_s_prompt_is_the_model_s(tts: nightingale.TTS) -> None:
    recording = read_recording(speech(16.0, RATE), RATE)
    baker = tts._engine._voice_baker
    standard, turbo = (
        baker.bake(recording.at_24k, recording.at_16k, kind.tokens) for kind in (STANDARD, TURBO)
    )
    assert len(standard["cond_prompt_speech_tokens"]) == 150
    assert len(turbo["cond_prompt_speech_tokens"]) == 375
    assert len(turbo["prompt_token"]) == 250
    for name in ("speaker_emb", "prompt_token", "prompt_feat", "embedding"):
        np.testing.assert_array_equal(turbo[name], standard[name])


def test_a_baked_voice_says_which_prompt_it_holds(tts: nightingale.TTS, tmp_path: Path) -> None:
    baked = tts.bake_voice(speech(2.0, RATE), RATE)
    assert baked.prompt == "standard"
    assert "prompt='standard'" in repr(baked)
    baked.save(tmp_path / "me.safetensors")
    assert Voice.load(tmp_path / "me.safetensors").prompt == "standard"


def test_a_file_that_does_not_say_keeps_working(
    tts: nightingale.TTS, voice: Voice, tmp_path: Path
) -> None:
    assert voice.prompt is None
    voice.save(tmp_path / "me.safetensors")
    loaded = Voice.load(tmp_path / "me.safetensors")
    assert loaded.prompt is None
    for prompt in (STANDARD, TURBO):
        prompt.check(loaded)
    assert len(tts.speech_tokens("Hi.", voice=loaded, max_tokens=2))


@pytest.mark.parametrize("name", ["generate", "stream", "speech_tokens"])
def test_a_voice_of_turbo_is_refused_with_what_to_do(
    name: str, tts: nightingale.TTS, voice: Voice
) -> None:
    other = replace(voice, prompt="turbo")
    with pytest.raises(ValueError, match="that of Turbo and Nano") as refused:
        getattr(tts, name)("Hi.", voice=other, max_tokens=2)
    assert "this model takes that of the English and multilingual models" in str(refused.value)
    assert "bake its recording again with this model" in str(refused.value)
    with pytest.raises(ValueError, match="that of the English and multilingual models, and this"):
        TURBO.check(replace(voice, prompt="standard"))


def test_a_prompt_that_is_not_known_is_named(voice: Voice) -> None:
    with pytest.raises(ValueError, match="prompt is of the kind 'opera'"):
        STANDARD.check(replace(voice, prompt="opera"))
