from __future__ import annotations

import os
import signal
import time

import pytest

from train.clock import Clock


def test_steps_end_a_run() -> None:
    clock = Clock(steps=5)
    taken = []
    while clock.tick():
        taken.append(clock.progress)
    assert taken == [0.0, 0.2, 0.4, 0.6, 0.8]


def test_minutes_end_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    clock = Clock(minutes=2)
    assert clock.tick()
    now += 90
    assert clock.tick()
    assert clock.progress == pytest.approx(0.75)
    now += 31
    assert not clock.tick()
    assert clock.progress == 1.0


def test_a_run_that_is_asked_to_end_finishes_its_step() -> None:
    clock = Clock(steps=1000).heed_termination()
    while clock.tick():
        if clock.step == 3:
            os.kill(os.getpid(), signal.SIGTERM)
    assert clock.terminated
    assert clock.step == 4
    assert clock.progress == pytest.approx(0.003)


def test_a_run_that_is_asked_to_end_before_it_began_takes_a_step() -> None:
    clock = Clock(steps=1000).heed_termination()
    os.kill(os.getpid(), signal.SIGTERM)
    assert [clock.tick(), clock.tick()] == [True, False]


def test_a_clock_needs_an_end() -> None:
    with pytest.raises(ValueError, match="minutes, steps or both"):
        Clock()


def test_the_learning_rate_rises_and_falls() -> None:
    clock = Clock(steps=1000)
    rates = []
    while clock.tick():
        rates.append(clock.learning_rate(1e-3, warm_up=0.1, last=0.05))
    assert rates[0] == pytest.approx(5e-5)
    assert max(rates) == rates[100] == pytest.approx(1e-3)
    assert rates[:101] == sorted(rates[:101])
    assert rates[100:] == sorted(rates[100:], reverse=True)
    assert rates[-1] == pytest.approx(5e-5, rel=1e-3)


def test_things_are_due_again_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    clock = Clock(minutes=10)
    due = []
    for _ in range(7):
        now += 10
        due.append(clock.due("report", 30))
    assert due == [False, False, True, False, False, True, False]
    assert clock.due("save", 60)
