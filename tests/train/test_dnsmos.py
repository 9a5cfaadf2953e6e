from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile

pytest.importorskip("torch")
pytest.importorskip("soxr")

from train import dnsmos


def write_clip(path: Path, level: float) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, np.full(2400, level, np.float32), 24000)


def test_means_by_set_beside_the_teachers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, level in enumerate((0.1, 0.3)):
        write_clip(tmp_path / f"student/en-en-00{number}.wav", level)
        write_clip(tmp_path / f"teacher-00{number}/en-en-00{number}.wav", 2 * level)
    write_clip(tmp_path / "student/long-en-000.wav", 0.5)  # the teacher has none

    def run(samples: np.ndarray, rate: int) -> dict[str, float]:
        assert (rate, len(samples)) == (16000, 1600)
        level = float(np.median(samples))
        return dict.fromkeys(("sig_mos", "bak_mos", "ovrl_mos"), level) | {"p808_mos": 4.0}

    stub = SimpleNamespace(dnsmos=SimpleNamespace(run=run))
    monkeypatch.setitem(sys.modules, "speechmos", stub)
    dnsmos.main([str(tmp_path)])
    line = "| en | 2 | 0.4 → 0.2 | 0.4 → 0.2 | 0.4 → 0.2 | 4.0 → 4.0 |\n"
    assert line in capsys.readouterr().out
    found = json.loads((tmp_path / "dnsmos.json").read_text("utf-8"))
    assert found["en"]["student"]["overall"] == 0.2
    dnsmos.main([str(tmp_path), "--limit", "1"])
    assert "| en | 1 | 0.2 → 0.1 |" in capsys.readouterr().out


def test_a_folder_without_clips_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no clips of the teacher and the model"):
        dnsmos.main([str(tmp_path)])
