"""Voices baked from recordings: what comes out, what it is good for, and mistakes."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import numpy as np
import pytest
import soundfile

import nightingale

from .recordings import speech

RATE = 16000


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recordings") / "speaker.wav"
    soundfile.write(path, speech(7.0, RATE), RATE)
    return path


@pytest.fixture(scope="module")
def voice(tts: nightingale.TTS, recording: Path) -> nightingale.Voice:
    return tts.bake_voice(recording)


def test_a_voice_has_all_that_t3_and_the_flow_ask_for(voice: nightingale.Voice) -> None:
    assert voice.speaker_emb.shape == (256,)
    assert np.linalg.norm(voice.speaker_emb) == pytest.approx(1, abs=1e-5)
    assert voice.cond_prompt_speech_tokens.shape == (150,)  # of the first 6 s
    assert voice.prompt_token.shape == (175,)
    assert voice.prompt_feat.shape == (350, 80)
    assert voice.embedding.shape == (192,)
    assert voice.emotion_adv == 0.5
    for tokens in (voice.cond_prompt_speech_tokens, voice.prompt_token):
        assert tokens.dtype == np.int32
        assert tokens.min() >= 0
        assert tokens.max() < 6561


@pytest.mark.slow
def test_it_speaks(tts: nightingale.TTS, voice: nightingale.Voice) -> None:
    audio = tts.generate("Hello there, my friend.", voice=voice, max_tokens=20)
    other = tts.generate("Hello there, my friend.", max_tokens=20)
    assert audio.duration > 0.5
    assert not np.array_equal(audio.tokens, other.tokens)


def test_baking_is_deterministic_and_samples_do_as_well_as_a_file(
    tts: nightingale.TTS, recording: Path, voice: nightingale.Voice
) -> None:
    samples, rate = soundfile.read(recording, dtype="float32")
    again = tts.bake_voice(samples, rate)
    for name in ("speaker_emb", "cond_prompt_speech_tokens", "prompt_token", "prompt_feat"):
        np.testing.assert_array_equal(getattr(again, name), getattr(voice, name))
    np.testing.assert_array_equal(again.embedding, voice.embedding)


@pytest.mark.slow
def test_a_baked_voice_is_the_same_after_saving(
    tts: nightingale.TTS, voice: nightingale.Voice, tmp_path: Path
) -> None:
    voice.save(tmp_path / "me.safetensors")
    loaded = nightingale.Voice.load(tmp_path / "me.safetensors")
    settings = {"max_tokens": 12, "seed": 3}
    a = tts.generate("The same.", voice=voice, **settings)
    b = tts.generate("The same.", voice=loaded, **settings)
    c = tts.generate("The same.", voice=tmp_path / "me.safetensors", **settings)
    np.testing.assert_array_equal(a.samples, b.samples)
    np.testing.assert_array_equal(a.samples, c.samples)


def test_only_ten_seconds_are_the_flow_s_prompt(tts: nightingale.TTS) -> None:
    samples = speech(13.0, RATE)
    long = tts.bake_voice(samples, RATE)
    assert len(long.prompt_token) == 250
    assert long.prompt_feat.shape == (500, 80)
    short = tts.bake_voice(samples[: 11 * RATE], RATE)
    np.testing.assert_array_equal(long.prompt_token[:200], short.prompt_token[:200])
    # The voice encoder hears all of it.
    assert not np.array_equal(long.speaker_emb, short.speaker_emb)


def test_exaggeration_is_changed_without_baking(
    tts: nightingale.TTS, voice: nightingale.Voice
) -> None:
    livelier = voice.with_exaggeration(0.9)
    assert livelier.emotion_adv == 0.9
    assert livelier.speaker_emb is voice.speaker_emb

    def said(voice: nightingale.Voice, **settings: float) -> np.ndarray:
        return tts.speech_tokens("Hello there, my friend.", voice=voice, max_tokens=20, **settings)

    np.testing.assert_array_equal(said(livelier), said(voice, exaggeration=0.9))
    np.testing.assert_array_equal(said(livelier, exaggeration=0.5), said(voice))
    assert not np.array_equal(said(livelier), said(voice))


def test_a_bad_exaggeration_is_refused(tts: nightingale.TTS, recording: Path) -> None:
    with pytest.raises(ValueError, match="exaggeration must be 0 or more, not -1"):
        tts.bake_voice(recording, exaggeration=-1)


def test_bad_recordings_are_refused(tts: nightingale.TTS, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="silen"):
        tts.bake_voice(np.zeros(3 * RATE, np.float32), RATE)
    with pytest.raises(ValueError, match=r"0\.50 s long"):
        tts.bake_voice(speech(0.5, RATE), RATE)
    (tmp_path / "notes.txt").write_text("not a recording")
    with pytest.raises(nightingale.Error, match=r"notes\.txt"):
        tts.bake_voice(tmp_path / "notes.txt")


def without(checkpoint: Path, folder: Path, name: str) -> Path:
    shutil.copytree(checkpoint, folder)
    (folder / name).unlink()
    return folder


def test_a_model_without_its_voice_encoder_says_so(
    checkpoint: Path, tmp_path: Path, recording: Path
) -> None:
    tts = nightingale.load(without(checkpoint, tmp_path / "model", "ve.pt"))
    with pytest.raises(nightingale.Error, match=r"no voice encoder.*ve\.safetensors, ve\.pt"):
        tts.bake_voice(recording)


def test_no_tensor_is_unknown(
    checkpoint: Path, recording: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        nightingale.load(checkpoint).bake_voice(recording)
    assert "unknown tensor" not in caplog.text
