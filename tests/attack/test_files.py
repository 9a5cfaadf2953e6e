"""Checkpoints whose files are not what they should be: pipes, endless files, NaN."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import nightingale
from nightingale.safetensors_writer import write_safetensors
from nightingale.torch_file import open_tensors

from ..command import run

# A process that is started inherits ru_maxrss of the one that started it: VmHWM is its own.
LOAD = """
import re, signal, sys
import nightingale

signal.alarm(60)
try:
    nightingale.load(sys.argv[1], device="cpu")
except nightingale.Error as error:
    print(error)
with open("/proc/self/status") as status:
    print(int(re.search(r"VmHWM:\\s+(\\d+)", status.read())[1]) // 1024)
"""


@pytest.fixture
def folder(quick_checkpoint: Path, tmp_path: Path) -> Path:
    """A checkpoint whose files can be replaced."""
    copy = tmp_path / "model"
    shutil.copytree(quick_checkpoint, copy, copy_function=os.link)
    return copy


@pytest.fixture
def settings_file(folder: Path) -> Path:
    """Where its settings are to be."""
    path = folder / "nightingale.json"
    path.unlink()
    return path


def _load(folder: Path) -> tuple[str, int]:
    """What is said, and the megabytes it took, in a process that may hang or take all memory."""
    done = run(folder, command=[sys.executable, "-c", LOAD])
    assert done.returncode == 0, done.stderr
    said, megabytes = done.stdout.splitlines()
    return said, int(megabytes)


def test_settings_that_are_a_pipe_are_not_waited_for(settings_file: Path) -> None:
    os.mkfifo(settings_file)
    said, _ = _load(settings_file.parent)
    assert "nightingale.json" in said
    assert "regular file" in said


def test_settings_that_do_not_end_are_not_read_to_the_end(settings_file: Path) -> None:
    settings_file.symlink_to("/dev/zero")
    said, _ = _load(settings_file.parent)
    assert "regular file" in said
    endless = settings_file.with_name("endless")
    with endless.open("wb") as file:
        file.truncate(2**31)  # takes no room on the disk
    settings_file.unlink()
    settings_file.symlink_to(endless)
    said, megabytes = _load(settings_file.parent)
    assert "1048576" in said
    assert megabytes < 1000


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"t3": {"alignment_heads": [[0, 0]] * 100_000}},
            "lists 100000 heads, expected at most 64",
        ),
        ({"t3": {"alignment_heads": [[0, 0]] * 65}}, "lists 65 heads, expected at most 64"),
        ({"x": "y" * 2**20}, "1048576"),
    ],
)
def test_settings_beyond_the_limits_are_refused(
    settings: dict[str, object], message: str, settings_file: Path
) -> None:
    settings_file.write_text(json.dumps(settings))
    with pytest.raises(nightingale.Error, match=message):
        nightingale.load(settings_file.parent, device="cpu")


def spoil(folder: Path, pattern: str, name: str, value: float, *, everywhere: bool = False) -> None:
    """Puts a value at the beginning of a tensor, or everywhere in it."""
    (source,) = folder.glob(pattern)
    file = open_tensors(source)
    tensors = {each: file.read(each) for each in file.names()}
    tensors[name] = tensors[name].copy()
    tensors[name].reshape(-1)[: None if everywhere else 1] = value
    del file
    source.unlink()
    write_safetensors(source.with_suffix(".safetensors"), tensors)


@pytest.mark.parametrize(
    ("name", "stage", "value"),
    [
        ("flow.encoder_proj.bias", "flow", np.nan),
        ("flow.decoder.estimator.final_proj.weight", "flow", np.inf),
        ("mel2wav.conv_pre.bias", "vocoder", np.nan),
    ],
)
def test_weights_that_are_not_finite_are_named(
    name: str, stage: str, value: float, folder: Path
) -> None:
    spoil(folder, "s3gen*", name, value)
    tts = nightingale.load(folder, device="cpu")
    expected = f"the {stage} gave values that are not finite: .*not finite: {name};"
    with pytest.raises(nightingale.Error, match=expected):
        tts.generate("Hello there.", max_tokens=10)
    with pytest.raises(nightingale.Error, match=expected):
        list(tts.stream("Hello there.", max_tokens=10))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tfmr.layers.1.mlp.down_proj.weight", np.nan),
        ("speech_head.weight", np.inf),
        ("cond_enc.spkr_enc.weight", np.nan),
        ("speech_pos_emb.emb.weight", np.nan),
    ],
)
def test_weights_of_t3_that_are_not_finite_are_named(name: str, value: float, folder: Path) -> None:
    spoil(folder, "t3*", name, value)
    tts = nightingale.load(folder, device="cpu")
    expected = f"the T3 model gave values that are not finite: .*not finite: {name};"
    with pytest.raises(nightingale.Error, match=expected):
        tts.generate("Hello there.")
    with pytest.raises(nightingale.Error, match=expected):
        list(tts.stream("Hello there."))
    with pytest.raises(nightingale.Error, match=expected):
        tts.speech_tokens("Hello there.")


def test_token_0_of_a_sound_model_is_no_error(folder: Path) -> None:
    spoil(folder, "t3*", "speech_head.weight", 0.0, everywhere=True)  # the first of all equal ones
    tts = nightingale.load(folder, device="cpu")
    options = {"temperature": 0.0, "repetition_penalty": 1.0, "max_tokens": 6}
    spoken = tts.speech_tokens("Hello there, how are you today?", **options)
    assert len(spoken) >= 2
    assert not spoken.any()
    assert np.isfinite(tts.generate("Hello there, how are you today?", **options).samples).all()
