"""`python -m tools.validate_reference`; with the reference where it is installed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from tools import validate_reference
from tools.validate_reference import main

from .parity.live import needs_reference
from .test_validate_checks import GOOD

COMMAND = ["--text", "Hello there.", "--max-tokens", "20", "--json"]


def checks_of(output: str) -> dict[str, dict]:
    return {check["name"]: check for check in json.loads(output)["checks"]}


@needs_reference
@pytest.mark.parametrize("model", ["multilingual", "english"])
def test_logits_mel_and_vocoder_are_the_reference_s(
    model: str, checkpoints: Path, device: str, capsys: pytest.CaptureFixture[str]
) -> None:
    place = ["--model", str(checkpoints / model), "--device", device]
    assert main([*COMMAND, *place]) == 0
    found = checks_of(capsys.readouterr().out)
    assert found["parity: logits"]["values"]["error"] < 2e-4
    assert found["parity: mel"]["values"]["error"] < 1e-3
    assert found["parity: vocoder"]["values"]["snr_db"] > 60


def test_a_reference_that_does_not_run_fails_with_its_reason(
    checkpoint: Path, device: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "python"
    broken.write_text(f"#!{sys.executable}\nraise ImportError('no chatterbox here')\n")
    broken.chmod(0o755)
    place = ["--model", str(checkpoint), "--device", device]
    assert main([*COMMAND, *place, "--reference", str(broken)]) == 1
    (check,) = checks_of(capsys.readouterr().out).values()
    assert check["verdict"] == "fail"
    assert check["figure"] == "the reference did not run: ImportError: no chatterbox here"


def test_without_a_reference_the_comparison_is_skipped(
    checkpoint: Path,
    device: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(validate_reference, "find_reference", lambda: None)
    assert main([*COMMAND, "--model", str(checkpoint), "--device", device]) == 0
    (check,) = checks_of(capsys.readouterr().out).values()
    assert check["verdict"] == "skipped"
    assert "--reference PYTHON" in check["figure"]


def test_parity_bounds_are_strict_in_float32_and_correlations_otherwise() -> None:
    theirs = np.sin(np.arange(4000.0)).astype(np.float32).reshape(2, 20, 100)
    near, far = theirs + np.float32(1e-4), theirs + np.float32(1e-2)
    assert validate_reference.same_logits(near, theirs, "float32").passed
    assert validate_reference.same_logits(far, theirs, "float32").passed is False
    assert validate_reference.same_logits(far, theirs, "bfloat16").passed
    assert validate_reference.same_logits(-theirs, theirs, "bfloat16").passed is False
    assert validate_reference.same_mel(near[0], theirs[0], "float32").passed
    assert validate_reference.same_mel(far[0], theirs[0], "float32").passed is False
    assert validate_reference.same_samples(GOOD * np.float32(1.0005), GOOD).passed
    assert validate_reference.same_samples(GOOD * np.float32(1.01), GOOD).passed is False
    assert validate_reference.same_samples(GOOD[:-1], GOOD).passed is False
