"""Voices baked at small size against those of the reference that are kept beside this file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import nightingale

from . import voice_cases, voice_runs
from .test_golden import load

# Rounding alone moves these mels by a few 1e-6.
GOLDEN_MEL_BOUND = 1e-4
GOLDEN_COSINE_BOUND = 0.999999

NAMES = [recording.name for recording in voice_cases.KEPT]


def kept(name: str) -> dict[str, np.ndarray]:
    golden = load("voice")
    return {key.split("/")[1]: value for key, value in golden.items() if key.split("/")[0] == name}


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("recordings")
    return {recording.name: recording.write(folder) for recording in voice_cases.KEPT}


@pytest.fixture(scope="module")
def voices(tts: nightingale.TTS, recordings: dict[str, Path]) -> dict[str, nightingale.Voice]:
    return {name: tts.bake_voice(path) for name, path in recordings.items()}


@pytest.fixture(scope="module")
def agreements(voices: dict[str, nightingale.Voice]) -> dict[str, voice_runs.Agreement]:
    return {
        name: voice_runs.agreement(
            replace(voice, prompt_feat=voice_cases.kept_frames(voice.prompt_feat)), kept(name)
        )
        for name, voice in voices.items()
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_voice_equals_the_reference(
    agreements: dict[str, voice_runs.Agreement], name: str
) -> None:
    found = agreements[name]
    voice_runs.assert_same_voice(found, name)
    assert found.mel <= GOLDEN_MEL_BOUND, f"{name}: {found}"
    assert min(found.speaker, found.x_vector) >= GOLDEN_COSINE_BOUND, f"{name}: {found}"


def test_tokens_equal_the_reference(agreements: dict[str, voice_runs.Agreement]) -> None:
    voice_runs.assert_same_tokens(agreements)


def test_the_kept_voices_are_varied() -> None:
    voice_runs.assert_varied({name: kept(name) for name in NAMES})


def test_a_voice_has_ten_seconds_of_prompt_at_most(voices: dict[str, nightingale.Voice]) -> None:
    seconds = {name: len(voice.prompt_feat) / 50 for name, voice in voices.items()}
    assert seconds == {"low": 10.0, "short": 3.0, "stereo": 7.0}
    for voice in voices.values():
        assert len(voice.prompt_token) == len(voice.prompt_feat) // 2
        assert len(voice.cond_prompt_speech_tokens) == min(150, len(voice.prompt_token))
        assert voice.prompt_feat.dtype == voice.speaker_emb.dtype == np.float32
        assert voice.prompt_token.dtype == voice.cond_prompt_speech_tokens.dtype == np.int32


def test_samples_make_the_voice_that_their_file_does(
    tts: nightingale.TTS, voices: dict[str, nightingale.Voice]
) -> None:
    recording = voice_cases.KEPT[-1]
    voice = tts.bake_voice(recording.samples(), sample_rate=recording.rate)
    for name in ("speaker_emb", "prompt_token", "prompt_feat", "embedding"):
        np.testing.assert_array_equal(
            getattr(voice, name), getattr(voices[recording.name], name), err_msg=name
        )
