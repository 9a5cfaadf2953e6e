"""bench.together: what it compares, and that it tells an utterance that differs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench import together

pytestmark = pytest.mark.slow


def run(folder: Path, monkeypatch: pytest.MonkeyPatch, *more: str) -> int:
    words = ["--folder", str(folder), "--utterances", "1", "3", "--tokens", "10", "--steps", "1"]
    words += more
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


def test_streams_at_once_have_their_first_audio_and_late_chunks_counted(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(checkpoint, monkeypatch, "--streams", "--tokens", "40") == 0
    title, _, one, three = (line.split() for line in capsys.readouterr().out.splitlines())
    assert " ".join(title) == "float32, cpu, streams of up to 40 tokens"
    assert (one[0], three[0]) == ("1", "3")
    median, p95 = float(three[3].rstrip(",")), float(three[4])
    assert 0 < median <= p95 <= float(three[1])
    late, chunks = int(three[5]), int(three[7])
    assert 0 <= late <= chunks - 3
    assert chunks >= 6


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
