"""`validate` beside the reference, where it is installed (see parity/reference_env.sh)."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from nightingale import cli

from .parity import live

COMMAND = ["validate", "--quick", "--runs", "2", "--text", "Hello there.", "--max-tokens", "20"]
COMMAND += ["--steps", "2"]


def parity_of(output: str) -> dict[str, dict]:
    checks = json.loads(output)["checks"]
    return {check["name"]: check for check in checks if check["name"].startswith("parity")}


@pytest.mark.skipif(live.find_reference() is None, reason="the reference is not installed")
@pytest.mark.parametrize("model", ["multilingual", "english"])
def test_logits_mel_and_vocoder_are_the_reference_s(
    model: str, checkpoints: Path, device: str, capsys: pytest.CaptureFixture[str]
) -> None:
    place = ["--model", str(checkpoints / model), "--device", device]
    assert cli.main([*COMMAND, *place, "--reference", live.find_reference(), "--json"]) == 0
    found = parity_of(capsys.readouterr().out)
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
    assert cli.main([*COMMAND, *place, "--reference", str(broken), "--json"]) == 1
    (check,) = parity_of(capsys.readouterr().out).values()
    assert check["verdict"] == "fail"
    assert check["figure"] == "the reference did not run: ImportError: no chatterbox here"
