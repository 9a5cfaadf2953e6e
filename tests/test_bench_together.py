"""bench.together: what it compares, and that it tells an utterance that differs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench import together

pytestmark = pytest.mark.slow


def run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    words = ["--folder", str(folder), "--utterances", "1", "3", "--tokens", "10", "--steps", "1"]
    monkeypatch.setattr(sys, "argv", ["bench.together", *words])
    return together.main()


def test_utterances_at_once_are_compared_with_each_alone(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(checkpoint, monkeypatch) == 0
    title, header, one, three = capsys.readouterr().out.splitlines()
    assert title == "float32, cpu, utterances of up to 10 tokens"
    assert header.split()[:2] == ["at", "once"]
    assert [one.split()[0], one.split()[-1]] == ["1", "0"]
    assert [three.split()[0], three.split()[-1]] == ["3", "0"]
    assert float(three.split()[3]) > 0  # the ratio


def test_an_utterance_that_differs_is_counted(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = together.said
    calls = 0

    def one_other_token(chunks: list[Any]) -> together.Said:
        nonlocal calls
        calls += 1
        tokens, samples = said(chunks)
        return (np.append(tokens, 1), samples) if calls == 2 else (tokens, samples)

    monkeypatch.setattr(together, "said", one_other_token)
    assert run(checkpoint, monkeypatch) == 1
    assert [line.split()[-1] for line in capsys.readouterr().out.splitlines()[2:]] == ["0", "1"]
