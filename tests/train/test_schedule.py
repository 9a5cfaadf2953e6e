from __future__ import annotations

import os
import signal
import time

import pytest

from train.schedule import Schedule


def test_steps_end_a_run() -> None:
    schedule = Schedule(steps=5)
    taken = []
    while schedule.next_step():
        taken.append(schedule.progress)
    assert taken == [0.0, 0.2, 0.4, 0.6, 0.8]


def test_minutes_end_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    schedule = Schedule(minutes=2)
    assert schedule.next_step()
    now += 90
    assert schedule.next_step()
    assert schedule.progress == pytest.approx(0.75)
    now += 31
    assert not schedule.next_step()
    assert schedule.progress == 1.0


def test_sigterm_ends_a_run_after_its_step() -> None:
    schedule = Schedule(steps=1000).stop_on_sigterm()
    while schedule.next_step():
        if schedule.step == 3:
            os.kill(os.getpid(), signal.SIGTERM)
    assert schedule.terminated
    assert schedule.step == 4
    assert schedule.progress == pytest.approx(0.003)


def test_a_run_that_gets_sigterm_before_its_start_takes_one_step() -> None:
    schedule = Schedule(steps=1000).stop_on_sigterm()
    os.kill(os.getpid(), signal.SIGTERM)
    assert [schedule.next_step(), schedule.next_step()] == [True, False]


def test_a_schedule_needs_a_limit() -> None:
    with pytest.raises(ValueError, match="minutes, steps or both"):
        Schedule()


def test_the_learning_rate_rises_and_falls() -> None:
    schedule = Schedule(steps=1000)
    rates = []
    while schedule.next_step():
        rates.append(schedule.learning_rate(1e-3, warm_up=0.1, last=0.05))
    assert rates[0] == pytest.approx(5e-5)
    assert max(rates) == rates[100] == pytest.approx(1e-3)
    assert rates[:101] == sorted(rates[:101])
    assert rates[100:] == sorted(rates[100:], reverse=True)
    assert rates[-1] == pytest.approx(5e-5, rel=1e-3)


def test_things_are_due_again_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    schedule = Schedule(minutes=10)
    due = []
    for _ in range(7):
        now += 10
        due.append(schedule.due("report", 30))
    assert due == [False, False, True, False, False, True, False]
    assert schedule.due("save", 60)
