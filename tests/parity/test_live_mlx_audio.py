"""Conversions that mlx-audio's own converter makes, beside mlx-audio, where it is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import nightingale
from nightingale.torch_file import open_tensors
from tools.synthetic import write_checkpoint
from tools.synthetic.mlx_conversion import write_conversion

PYTHON = os.environ.get("NIGHTINGALE_MLX_AUDIO_PYTHON")
ROOT = Path(__file__).parents[2]
TEXT, SPEECH = [40, 300, 7, 90, 15], [6561, 17, 4000]
# Of max |logit|: float16 keeps 11 bits, and both sides round after every product.
ROUNDING = 0.02

pytestmark = pytest.mark.skipif(PYTHON is None, reason="set NIGHTINGALE_MLX_AUDIO_PYTHON")


def mlx_audio(*arguments: object, module: str = "mlx_audio") -> None:
    command = [str(PYTHON), "-m", f"tools.reference.{module}", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("full") / "english"
    write_checkpoint(folder, size="full", model="english", dtype="float16")
    return folder


def our_logits(folder: Path, voice: nightingale.Voice) -> np.ndarray:
    tts = nightingale.load(folder, device="cpu", kv_bits=None)
    cache = tts._engine.t3.condition(voice.speaker_emb, None, voice.emotion_adv)
    return tts._engine.t3.logits(np.array(TEXT, np.int32), np.array(SPEECH, np.int32), cache)


def relative(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(found - expected).max() / np.abs(expected).max())


@pytest.mark.full_size  # mlx-audio has the official sizes built in
@pytest.mark.parametrize("bits", [None, 8, 4])
def test_a_conversion_gives_the_logits_of_the_original_and_of_mlx_audio(
    source: Path, tmp_path: Path, bits: int | None
) -> None:
    mlx_audio("convert", source, tmp_path / "mlx", "english", *([] if bits is None else [bits]))
    voice = nightingale.Voice.load(source / "conds.pt")
    inputs = {"text_tokens": TEXT, "speech_tokens": SPEECH, "speaker_emb": voice.speaker_emb}
    np.savez(tmp_path / "in.npz", **inputs, emotion_adv=voice.emotion_adv)
    mlx_audio("logits", tmp_path / "mlx", tmp_path / "in.npz", tmp_path / "out.npz")
    found = our_logits(tmp_path / "mlx", voice)
    if bits is None:
        np.testing.assert_array_equal(found, our_logits(source, voice))
    assert relative(found, np.load(tmp_path / "out.npz")["logits"]) < ROUNDING
    if bits is None:
        assert_same_layout(source, tmp_path)


@pytest.mark.parametrize("size", ["small", pytest.param("full", marks=pytest.mark.full_size)])
def test_a_conversion_of_turbo_gives_the_logits_of_the_original_and_of_mlx_audio(
    tmp_path: Path, size: str
) -> None:
    source = tmp_path / "turbo"
    write_checkpoint(source, size=size, model="turbo", dtype="float16")
    voice = nightingale.Voice.load(source / "conds.pt")
    inputs = {"text_tokens": TEXT, "speech_tokens": SPEECH, "speaker_emb": voice.speaker_emb}
    np.savez(tmp_path / "in.npz", **inputs, prompt=voice.cond_prompt_speech_tokens)

    def logits_of(folder: Path) -> np.ndarray:
        return nightingale.load(folder, device="cpu", kv_bits=None).t3_logits(TEXT, SPEECH, voice)

    for bits in (None, 8, 4):
        folder = tmp_path / "mlx"
        given = [] if bits is None else [bits]
        mlx_audio("convert", source, folder, *given, module="mlx_audio_plus")
        files = [folder, tmp_path / "in.npz", tmp_path / "out.npz"]
        mlx_audio("logits", *files, module="mlx_audio_plus")
        found = logits_of(folder)
        error = relative(found, np.load(tmp_path / "out.npz")["logits"])
        assert error < ROUNDING, f"{bits} bits: {error:.4f}"
        if bits is None:
            np.testing.assert_array_equal(found, logits_of(source))
            (source / "tokenizer_config.json").unlink()
            assert_same_layout(source, tmp_path)
        shutil.rmtree(folder)


def assert_same_layout(source: Path, folder: Path) -> None:
    """Our synthetic conversion, which the tests without mlx-audio read, is laid out as this one."""
    write_conversion(source, folder / "ours")
    theirs, ours = (open_tensors(folder / name / "model.safetensors") for name in ("mlx", "ours"))
    unread = ("s3gen.speaker_encoder.", "ve.")
    shapes, ours_shapes = (
        {name: file.shape(name) for name in file.names() if not name.startswith(unread)}
        for file in (theirs, ours)
    )
    assert shapes == ours_shapes
