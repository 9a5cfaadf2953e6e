from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nightingale
from nightingale import _core, warm_up
from nightingale.warm_up import GpuTurn, WarmUp


@pytest.fixture(scope="module")
def tts(quick_checkpoint: Path, device: str) -> nightingale.TTS:
    return nightingale.load(quick_checkpoint, device=device)


def test_warm_up_runs_every_stage_and_changes_nothing(
    tts: nightingale.TTS, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tts.generate("Ready.", max_tokens=6)
    engine = tts._engine
    done: list[str] = []

    def noted(stage: str, run: Callable[..., Any]) -> Callable[..., Any]:
        def note_and_run(*arguments: Any, **named: Any) -> Any:
            done.append(stage)
            return run(*arguments, **named)

        return note_and_run

    for stage in ("speak", "mel", "sound"):
        monkeypatch.setattr(engine, stage, noted(stage, getattr(engine, stage)))
    WarmUp(engine, tts._voice(None)).wait()
    assert done[:3] == ["speak", "mel", "sound"]
    assert done[3:] == ["speak"] * (2 + 4 + 8)  # utterances that share passes
    monkeypatch.undo()
    after = tts.generate("Ready.", max_tokens=6)
    assert np.array_equal(before.samples, after.samples)


def test_a_request_ends_the_warm_up(
    tts: nightingale.TTS, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = tts._engine
    tokens: list[int | None] = []
    began, go_on = threading.Event(), threading.Event()
    next_token = engine.next_token

    def slow_token(*arguments: Any) -> int | None:
        tokens.append(next_token(*arguments))
        began.set()
        assert go_on.wait(timeout=60)  # a request comes during the first step
        return tokens[-1]

    monkeypatch.setattr(engine, "next_token", slow_token)
    monkeypatch.setattr(tts, "_warm_up", WarmUp(engine, tts._voice(None)))
    assert began.wait(timeout=60)
    assert tts.info["device"] == device  # does not wait
    threading.Timer(0.1, go_on.set).start()
    assert tts._engine is engine
    assert go_on.is_set()
    assert len(tokens) == 1
    assert tts._warm_up is None


def test_an_error_in_the_warm_up_is_left_to_the_request(
    tts: nightingale.TTS, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    engine = tts._engine

    def fail(*_: object, **__: object) -> None:
        raise nightingale.Error("this GPU cannot run the kernel gemv")

    monkeypatch.setattr(engine, "speak", fail)
    with caplog.at_level(logging.INFO):
        WarmUp(engine, tts._voice(None)).wait()
    assert not caplog.records


def test_kernels_that_take_long_to_compile_are_named_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    count = itertools.count()
    monkeypatch.setattr(GpuTurn, "_reported", False)
    monkeypatch.setattr(_core, "first_kernel_launches", lambda: next(count))
    monkeypatch.setattr(_core, "launched_kernels", lambda: ["gemv", "sample"])
    with caplog.at_level(logging.INFO, logger="nightingale.warm_up"):
        with GpuTurn():  # a moment
            pass
        assert not caplog.messages
        monkeypatch.setattr(warm_up, "REPORTED_SECONDS", 0.0)
        for _ in range(3):
            with GpuTurn():
                pass
    assert caplog.messages == [
        "compiling GPU kernels, which the first sound waits for: gemv, sample"
    ]
