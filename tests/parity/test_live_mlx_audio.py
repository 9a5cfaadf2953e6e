"""Conversions that mlx-audio's own converter makes, beside mlx-audio, where it is installed."""

from __future__ import annotations

import os
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

pytestmark = [
    pytest.mark.full_size,  # mlx-audio has the official sizes built in
    pytest.mark.skipif(PYTHON is None, reason="set NIGHTINGALE_MLX_AUDIO_PYTHON"),
]


def mlx_audio(*arguments: object) -> None:
    command = [str(PYTHON), "-m", "tools.reference.mlx_audio", *map(str, arguments)]
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


def assert_same_layout(source: Path, folder: Path) -> None:
    """Our synthetic conversion, which the tests without mlx-audio read, is laid out as this one."""
    write_conversion(source, folder / "ours")
    theirs, ours = (open_tensors(folder / name / "model.safetensors") for name in ("mlx", "ours"))
    read = [n for n in theirs.names() if not n.startswith(("s3gen.speaker_encoder.", "ve."))]
    assert {name: theirs.shape(name) for name in read} == {
        name: ours.shape(name)
        for name in ours.names()
        if not name.startswith(("s3gen.speaker_encoder.", "ve."))
    }
