"""Speech tokens to sound: lengths, chunks, determinism, memory and mistakes."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

import nightingale
from nightingale import _core

from .folders import with_settings
from .parity.s3gen_runs import snr

TOKENS = (np.arange(30) * 613) % 6561
LOOKAHEAD = 20  # frames that must follow one before its samples are out
S3GEN = "s3gen.pt"


def digest(samples: np.ndarray) -> str:
    return hashlib.sha256(samples.tobytes()).hexdigest()


def with_voice(voice: nightingale.Voice, **parts: Any) -> nightingale.Voice:
    return nightingale.Voice(**{**vars(voice), **parts})


def test_a_token_makes_40_milliseconds(tts: nightingale.TTS) -> None:
    for count in (1, 2, 30):
        audio = tts.synthesize(TOKENS[:count])
        assert audio.samples.dtype == np.float32
        assert audio.samples.shape == (960 * count,)
        assert audio.sample_rate == 24000
        assert np.abs(audio.samples).max() <= 0.99
        assert not audio.samples[:480].any()  # 20 ms of silence, then the fade-in
        assert {"flow", "vocoder", "total", "rtf"} <= set(audio.timings)
        np.testing.assert_array_equal(audio.tokens, TOKENS[:count])
        assert f"{count} tokens" in repr(audio)


def test_synthesis_is_mel_and_vocoder(tts: nightingale.TTS) -> None:
    mel = tts.mel(TOKENS, seed=5)
    assert mel.shape == (80, 60)
    samples = tts.vocode(mel, seed=5)
    audio = tts.synthesize(TOKENS, seed=5)
    np.testing.assert_array_equal(audio.samples[960:], samples[960:])


def test_more_tokens_to_follow_give_fewer_frames(tts: nightingale.TTS) -> None:
    assert tts.mel(TOKENS, finalize=False).shape == (80, 54)
    for count in (1, 3):
        assert tts.mel(TOKENS[:count], finalize=False).shape == (80, 0)


def test_prompts_of_any_length(tts: nightingale.TTS) -> None:
    voice = tts._voice(None)
    for tokens, frames in ((250, 501), (20, 40), (1, 2), (0, 0), (300, 600)):
        short = with_voice(
            voice,
            prompt_token=np.resize(voice.prompt_token, tokens),
            prompt_feat=np.resize(voice.prompt_feat, (frames, 80)),
        )
        expected = 2 * (tokens + len(TOKENS)) - frames
        assert tts.mel(TOKENS, short, steps=1).shape == (80, expected)


def test_the_seed_s_noise_is_as_loud_as_the_model_asks(
    checkpoint: Path, tmp_path: Path, tts: nightingale.TTS, device: str
) -> None:
    def at(temperature: float) -> nightingale.TTS:
        folder = tmp_path / str(temperature)
        settings = {"temperature": temperature}
        return nightingale.load(with_settings(checkpoint, folder, s3gen=settings), device=device)

    def mel(of: nightingale.TTS, **settings: Any) -> np.ndarray:
        return of.mel(TOKENS[:8], steps=2, **settings)

    silent, calm = at(0), at(0.5)
    prompt = len(tts._voice(None).prompt_feat)
    frames = prompt + mel(tts).shape[1]
    still = np.zeros((80, frames), np.float32)
    np.testing.assert_array_equal(mel(silent, seed=3), mel(tts, noise=still))
    differences = [np.abs(mel(of, seed=3) - mel(silent)).mean() for of in (tts, calm)]
    assert differences[0] > 1.2 * differences[1] > 0
    given = np.random.default_rng(0).standard_normal((80, frames), dtype=np.float32)
    np.testing.assert_array_equal(mel(calm, noise=given), mel(tts, noise=given))
    assert calm.info["flow"]["temperature"] == 0.5


@pytest.mark.slow
def test_a_thousand_tokens(tts: nightingale.TTS) -> None:
    tokens = np.resize(TOKENS, 1000)
    mel = tts.mel(tokens, steps=1)
    assert mel.shape == (80, 2000)
    assert np.isfinite(mel).all()


def test_tokens_are_cut_at_start_and_stop_and_others_dropped(
    tts: nightingale.TTS, caplog: pytest.LogCaptureFixture
) -> None:
    expected = tts.mel(TOKENS[:8], steps=2)
    wrapped = [99, 6561, *TOKENS[:8], 6562, 5, 5]
    np.testing.assert_array_equal(tts.mel(wrapped, steps=2), expected)
    assert not caplog.records
    with caplog.at_level(logging.WARNING):
        mixed = [*TOKENS[:4], 7000, -3, *TOKENS[4:8]]
        np.testing.assert_array_equal(tts.mel(mixed, steps=2), expected)
    assert "2 of 10 speech tokens" in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize("chunk", [3, 10, 25, 100])
def test_chunks_of_a_mel_sound_as_the_whole(tts: nightingale.TTS, chunk: int) -> None:
    """600 frames; each chunk's samples come once its right context is known."""
    rng = np.random.default_rng(3)
    mel = np.float32(2.5) * rng.standard_normal((80, 600), dtype=np.float32) - np.float32(5)
    whole = tts.vocode(mel, seed=2)
    frames = np.ascontiguousarray(mel.T)
    state = tts._engine.vocoder.begin(seed=2)
    parts = []
    for begin in range(0, 600, chunk):
        parts.append(
            tts._engine.vocoder.feed(state, frames[begin : begin + chunk], begin + chunk >= 600)
        )
        if begin + chunk < 600:
            assert sum(map(len, parts)) >= 480 * (begin + chunk - LOOKAHEAD)
    joined = np.concatenate(parts)
    assert joined.shape == whole.shape
    assert snr(joined, whole) >= 60
    # No sample differs more at the joints than elsewhere.
    error = np.abs(joined - whole)
    joints = np.cumsum([len(part) for part in parts])[:-1]
    near = (joints[:, None] + np.arange(-8, 8)).ravel()
    near = near[(near >= 0) & (near < len(error))]
    assert error[near].max(initial=0) <= max(error.max(), 1e-6)
    assert error[near].mean() <= 3 * error.mean() + 1e-7


@pytest.mark.slow
def test_ten_runs_on_one_and_two_threads_give_the_same_bytes(
    tts: nightingale.TTS, device: str, keep_threads: None
) -> None:
    digests = set()
    for run in range(10):
        if device == "cpu":
            _core.set_threads(1 + run % 2)
        digests.add(digest(tts.synthesize(TOKENS, seed=9, steps=3).samples))
    assert len(digests) == 1
    assert digest(tts.synthesize(TOKENS, seed=10, steps=3).samples) not in digests


def test_another_process_gives_the_same_bytes(
    tts: nightingale.TTS, checkpoint: Path, device: str
) -> None:
    script = textwrap.dedent(f"""
        import hashlib, numpy, nightingale
        tts = nightingale.load({str(checkpoint)!r}, device={device!r})
        audio = tts.synthesize((numpy.arange(30) * 613) % 6561, seed=9, steps=3)
        print(hashlib.sha256(audio.samples.tobytes()).hexdigest())
    """)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == digest(tts.synthesize(TOKENS, seed=9, steps=3).samples)


def printed_by(script: str, environment: dict[str, str]) -> str:
    """What a process of its own prints that has this in its environment."""
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_hundred_calls_leave_memory_flat(quick_checkpoint: Path, device: str) -> None:
    script = textwrap.dedent(f"""
        import numpy, nightingale
        tts = nightingale.load({str(quick_checkpoint)!r}, device={device!r})

        def resident():
            return int(open("/proc/self/statm").read().split()[1])

        memory = {{}}
        for call in range(101):
            tokens = numpy.arange(1 + 3 * (call * 7 % 20))  # the first 20 calls have all lengths
            tts.synthesize(tokens, steps=1)
            memory[call] = resident()
        # What malloc keeps depends on the last call's length, which is the same in these two.
        print(memory[100] / memory[20])
    """)
    # On CUDA MLX keeps up to 400 graphs, whose number still grows after 200 calls: 23 MB.
    assert float(printed_by(script, {"MLX_CUDA_GRAPH_CACHE_SIZE": "20"})) <= 1.02


def test_more_lengths_than_a_gpus_caches_hold(quick_checkpoint: Path, device: str) -> None:
    # MLX's CUDA backend throws for good once its caches have missed twice what they hold.
    sizes = ("GRAPH", "SDPA", "CONV", "FFT")
    small = {f"MLX_CUDA_{name}_CACHE_SIZE": "2" for name in sizes}
    script = textwrap.dedent(f"""
        import numpy, nightingale
        tts = nightingale.load({str(quick_checkpoint)!r}, device={device!r})
        for count in range(1, 13):
            print(len(tts.synthesize(numpy.arange(count), steps=1).samples))
    """)
    assert len(set(printed_by(script, small).split())) == 12


@pytest.mark.parametrize(
    ("tokens", "phrase"),
    [
        ([], "there is no sound among the speech tokens"),
        ([6561, 6562], "there is no sound among the speech tokens"),
        ([7000, -1], "there is no sound among the speech tokens"),
        ([[1, 2]], "tokens must be a list of whole numbers"),
        ([1.5], "tokens must be a list of whole numbers"),
        ("hello", "tokens must be a list of whole numbers"),
        ([2**40], "which are no token ids"),
    ],
)
def test_tokens_that_cannot_be_spoken(tts: nightingale.TTS, tokens: Any, phrase: str) -> None:
    for call in (tts.mel, tts.synthesize):
        with pytest.raises(ValueError, match=phrase):
            call(tokens)


@pytest.mark.parametrize(
    ("settings", "phrase"),
    [
        ({"steps": 0}, "steps must be between 1 and 1000, not 0"),
        ({"steps": 2.5}, "steps must be a whole number"),
        ({"seed": -1}, "seed must be between 0"),
        ({"noise": np.zeros((80, 10))}, "noise has 10 frames of 80; expected 110"),
        ({"noise": np.zeros((10, 560))}, "noise has shape"),
        ({"noise": np.full((80, 560), np.nan)}, "noise holds values that are not finite"),
        ({"noise": "loud"}, "noise must be numbers"),
        ({"voice": 5}, "voice must be"),
    ],
)
def test_settings_of_a_mel(tts: nightingale.TTS, settings: dict[str, Any], phrase: str) -> None:
    with pytest.raises(ValueError, match=phrase):
        tts.mel(TOKENS, **settings)


@pytest.mark.parametrize(
    ("parts", "phrase"),
    [
        ({"embedding": None}, "the voice has no embedding"),
        ({"prompt_feat": None}, "the voice has no prompt_feat"),
        ({"prompt_feat": np.zeros((40, 79), np.float32)}, "prompt_feat has shape"),
        ({"prompt_feat": np.full((50, 80), np.inf, np.float32)}, "not finite"),
        ({"prompt_token": np.array([6561] * 25)}, "speech token 6561 is not a sound"),
        ({"prompt_feat": np.zeros((700, 80), np.float32)}, "700 frames, more than its 25 tokens"),
        ({"embedding": np.zeros(100, np.float32)}, "embedding has 100 values"),
    ],
)
def test_voices_that_do_not_fit(tts: nightingale.TTS, parts: dict[str, Any], phrase: str) -> None:
    with pytest.raises(ValueError, match=phrase):
        tts.mel(TOKENS, with_voice(tts._voice(None), **parts))


@pytest.mark.parametrize(
    ("mel", "settings", "phrase"),
    [
        (np.zeros((80, 0)), {}, "mel has no frames"),
        (np.zeros((40, 10)), {}, "mel has shape"),
        (np.zeros(80), {}, "mel has shape"),
        (np.full((80, 3), np.nan), {}, "mel holds values that are not finite"),
        (np.zeros((80, 3)), {"phase": np.zeros(8)}, "phase has shape"),
        (np.zeros((80, 3)), {"phase": np.full(9, np.inf)}, "phase holds values"),
        (np.zeros((80, 3)), {"noise": np.zeros((9, 3))}, "noise has shape"),
    ],
)
def test_mels_that_cannot_be_heard(
    tts: nightingale.TTS, mel: np.ndarray, settings: dict[str, Any], phrase: str
) -> None:
    with pytest.raises(ValueError, match=phrase):
        tts.vocode(mel, **settings)


def test_a_checkpoint_without_s3gen_has_tokens_but_no_sound(
    checkpoint: Path, tmp_path: Path, device: str
) -> None:
    for file in checkpoint.iterdir():
        if not file.name.startswith("s3gen"):
            (tmp_path / file.name).symlink_to(file)
    tts = nightingale.load(tmp_path, device=device)
    assert len(tts.speech_tokens("Hello.", max_tokens=3)) == 3
    with pytest.raises(nightingale.Error, match="has no S3Gen checkpoint"):
        tts.mel(TOKENS)


def test_a_truncated_s3gen_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    shutil.copytree(checkpoint, folder)
    whole = (folder / S3GEN).read_bytes()
    for part in (0, 100, len(whole) // 2, len(whole) - 1):
        (folder / S3GEN).write_bytes(whole[:part])
        with pytest.raises(nightingale.Error, match=S3GEN):
            nightingale.load(folder, device="cpu")


@pytest.mark.parametrize("name", ["a.wav", "a.flac", "a.ogg", "A.WAV"])
def test_audio_is_saved(tts: nightingale.TTS, tmp_path: Path, name: str) -> None:
    audio = tts.synthesize(TOKENS, steps=1)
    audio.save(tmp_path / name)
    samples, rate = soundfile.read(tmp_path / name, dtype="float32")
    assert rate == 24000
    assert samples.shape == audio.samples.shape
    if not name.endswith("ogg"):
        np.testing.assert_allclose(samples, audio.samples, atol=1e-4)
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_audio_that_cannot_be_saved_leaves_nothing(tts: nightingale.TTS, tmp_path: Path) -> None:
    audio = tts.synthesize(TOKENS, steps=1)
    with pytest.raises(ValueError, match=r"must end in one of \.wav"):
        audio.save(tmp_path / "a.txt")
    with pytest.raises(nightingale.Error, match="cannot write"):
        audio.save(tmp_path / "missing" / "a.wav")
    assert not list(tmp_path.iterdir())
