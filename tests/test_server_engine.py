"""Whose turn it is: the queue and the engine's thread, with a stand-in for the model."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from nightingale import Error
from nightingale.server import jobs
from nightingale.server.jobs import (
    AHEAD,
    MOST_LATE,
    EngineStoppedError,
    EngineThread,
    FairQueue,
    Job,
    QueueFullError,
    next_turn,
)

RATE = 24000


def test_clients_take_turns_and_each_keeps_its_order() -> None:
    queue: FairQueue[str] = FairQueue(10)
    for item in ("a1", "a2", "a3", "b1", "c1", "b2"):
        queue.put(item[0], item)
    assert [queue.pop() for _ in range(6)] == ["a1", "b1", "c1", "a2", "b2", "a3"]
    assert len(queue) == 0


def test_a_full_queue_refuses_and_loses_nothing() -> None:
    queue: FairQueue[str] = FairQueue(2)
    queue.put("a", "a1")
    queue.put("b", "b1")
    with pytest.raises(QueueFullError):
        queue.put("c", "c1")
    assert queue.remove("a", "a1")
    assert not queue.remove("a", "a1")
    queue.put("c", "c1")
    assert queue.clear() == ["b1", "c1"]
    assert len(queue) == 0


def sound(seconds: float) -> SimpleNamespace:
    return SimpleNamespace(samples=np.zeros(round(seconds * RATE)), sample_rate=RATE)


class Model:
    """What the engine needs of a TTS."""

    voices = ("default",)
    languages = {"en": "English"}  # noqa: RUF012
    info: ClassVar = {
        "bakes_voices": True,
        "language_voices": {},
        "sound_tags": [],
        "ignored_options": [],
        "defaults": {},
        "device": "cpu",
        "session_bytes": 1 << 20,
        "cache": {},
    }


@contextmanager
def started(load: Callable[[], Any] = Model, **settings: Any) -> Iterator[EngineThread]:
    engine = EngineThread(load, **settings)
    engine.start()
    try:
        yield engine
    finally:
        engine.stop()


async def results(job: Job) -> list[Any]:
    found = []
    while (result := await job.next()) is not None:
        found.append(result)
    return found


def test_the_job_whose_listener_runs_dry_first_has_the_turn() -> None:
    order: list[str] = []

    def work(name: str, seconds: float, count: int) -> Any:
        def steps(model: Model) -> Iterator[Any]:
            for _ in range(count):
                order.append(name)
                yield sound(seconds)

        return steps

    async def run() -> None:
        gate = threading.Event()

        def hold(model: Model) -> Iterator[None]:
            gate.wait()
            yield None

        with started(running=3) as engine:
            blocker = Job("z", hold)
            engine.submit(blocker)
            jobs = [Job("a", work("long", 4.0, 4)), Job("b", work("short", 1.0, 8))]
            for job in jobs:
                engine.submit(job)
            gate.set()
            await asyncio.gather(*map(results, jobs))

    asyncio.run(run())
    # Four seconds of the one are worth four turns of the other, which began a moment later.
    assert order[:6] == ["long", "short", "short", "short", "short", "long"]
    assert (order.count("long"), order.count("short")) == (4, 8)


def job_due(seconds: float, last_turn: int) -> Any:
    return SimpleNamespace(due=100 + seconds, last_turn=last_turn)


def first_of(*jobs: Any, device: str = "cpu") -> int:
    return jobs.index(next_turn(jobs, 100, device))


def test_new_jobs_come_before_those_ahead_of_their_listeners() -> None:
    ahead, new, late = job_due(5, 1), job_due(0, 7), job_due(-0.5, 8)
    assert first_of(ahead, new) == 1
    assert first_of(ahead, new, late) == 2
    assert first_of(job_due(5, 9), job_due(4, 10)) == 1


def test_jobs_that_are_late_take_turns_however_late_they_are() -> None:
    very_late, late, less = job_due(-500, 12), job_due(-1, 11), job_due(-0.9, 1)
    assert first_of(very_late, late, less) == 1
    assert first_of(very_late, job_due(-2, 13)) == 0


def test_on_a_gpu_jobs_that_are_due_together_take_turns() -> None:
    new = [job_due(-0.02 * number, 20 - number) for number in range(10)]  # the last came first
    assert first_of(*new) == 9
    assert first_of(*new, device="gpu") == 9  # its turn is the longest ago, too
    for _ in range(3):
        turns = []
        for _ in range(8):
            job = next_turn(new, 100, "gpu")
            turns.append(new.index(job))
            job.last_turn = max(each.last_turn for each in new) + 1
        assert turns == [9, 8, 7, 6, 5, 4, 3, 2]  # not the two that came last
    assert first_of(job_due(0, 9), job_due(0.2, 1), device="gpu") == 1
    assert first_of(job_due(0, 9), job_due(0.3, 1), device="gpu") == 0
    assert first_of(job_due(-9, 9), job_due(-0.8, 8), job_due(-0.7, 1), device="gpu") == 1


def test_a_job_that_never_keeps_up_holds_up_no_other() -> None:
    def slow(model: Model) -> Iterator[Any]:
        for _ in range(400):
            time.sleep(0.01)
            yield sound(0.0001)

    async def run() -> None:
        with started() as engine:
            first, second = Job("a", slow), Job("b", lambda model: iter([None] * 20 + [sound(1)]))
            engine.submit(first)
            await asyncio.sleep(MOST_LATE + 0.2)  # it is late by more than that
            engine.submit(second)
            await asyncio.wait_for(second.next(), 2)  # not the 4 s of the first
            assert engine.running == 2
            engine.cancel(first)
            engine.cancel(second)

    asyncio.run(run())


def test_as_many_run_as_half_of_the_memory_has_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "available_memory", lambda: 7 << 20)
    with started() as engine:
        assert engine.running_limit == 3
    with started(running=2) as engine:
        assert engine.running_limit == 2
    monkeypatch.setattr(jobs, "available_memory", lambda: 1)
    with started() as engine:
        assert engine.running_limit == 1


def test_a_job_is_not_made_far_ahead_of_its_client() -> None:
    made: list[int] = []

    def steps(model: Model) -> Iterator[Any]:
        for number in range(20):
            made.append(number)
            yield sound(10)

    async def run() -> None:
        with started() as engine:
            job, other = Job("a", steps), Job("b", lambda model: iter([sound(1)]))
            engine.submit(job)
            while len(made) < 4:
                await asyncio.sleep(0.005)
            engine.submit(other)
            assert len(await results(other)) == 1  # it is not held up
            assert len(made) == AHEAD / 10 + 1
            await job.next()
            while len(made) < 5:
                await asyncio.sleep(0.005)
            engine.cancel(job)

    asyncio.run(run())


def test_cancelling_ends_a_job_before_its_next_step() -> None:
    closed = threading.Event()
    taken: list[int] = []

    def steps(model: Model) -> Iterator[Any]:
        try:
            while True:
                taken.append(1)
                yield sound(0.001) if len(taken) == 1 else None
        finally:
            closed.set()

    async def run() -> None:
        with started() as engine:
            job = Job("a", steps)
            engine.submit(job)
            await job.next()
            engine.cancel(job)
            assert await asyncio.to_thread(closed.wait, 10)
            count = len(taken)
            await asyncio.sleep(0.02)
            assert (len(taken), engine.running, engine.waiting) == (count, 0, 0)

    asyncio.run(run())


@pytest.mark.parametrize("turns", range(5))
def test_waiting_for_a_result_is_cancelled_although_one_has_just_come(turns: int) -> None:
    """turns: of the event loop between the result and the cancellation."""

    async def cancelled() -> bool:
        job = Job("a", lambda model: iter(()))
        waiting = asyncio.create_task(job.next(60))
        await asyncio.sleep(0.01)
        job.give(sound(1))
        for _ in range(turns):
            await asyncio.sleep(0)
        if not waiting.cancel():
            return True  # it ended before
        await asyncio.wait({waiting})
        return waiting.cancelled()

    assert asyncio.run(cancelled())


def test_what_waits_can_be_cancelled_and_more_than_the_queue_is_refused() -> None:
    async def run() -> None:
        gate = threading.Event()

        def hold(model: Model) -> Iterator[Any]:
            gate.wait()
            yield sound(1)

        with started(queue=2, running=1) as engine:
            first = Job("a", hold)
            engine.submit(first)
            while not engine.running:
                await asyncio.sleep(0.001)
            waiting = [Job("a", hold) for _ in range(2)]
            for job in waiting:
                engine.submit(job)
            with pytest.raises(QueueFullError):
                engine.submit(Job("b", hold))
            assert engine.retry_after() == 1
            engine.cancel(waiting[0])
            assert engine.waiting == 1
            gate.set()
            assert len(await results(first)) == 1
            assert len(await results(waiting[1])) == 1

    asyncio.run(run())


def test_an_error_reaches_its_own_client_only() -> None:
    def broken(model: Model) -> Iterator[Any]:
        yield sound(1)
        raise ValueError("no such thing")

    async def run() -> None:
        with started() as engine:
            jobs = [Job("a", broken), Job("a", lambda model: iter([sound(1)] * 3))]
            for job in jobs:
                engine.submit(job)
            await jobs[0].next()
            with pytest.raises(ValueError, match="no such thing"):
                await jobs[0].next()
            assert len(await results(jobs[1])) == 3

    asyncio.run(run())


def test_an_idle_model_leaves_memory_and_comes_back() -> None:
    loads: list[Model] = []

    def load() -> Model:
        loads.append(Model())
        return loads[-1]

    async def run() -> None:
        with started(load, unload_after=0.05) as engine:
            assert engine.loaded
            while engine.loaded:
                await asyncio.sleep(0.01)
            assert engine.facts.voices == ("default",)
            job = Job("a", lambda model: iter([model]))
            engine.submit(job)
            assert await results(job) == [loads[1]]
            assert len(loads) == 2

    asyncio.run(run())


def test_a_model_that_does_not_load_is_told_at_the_start() -> None:
    def load() -> Model:
        raise Error("there is no folder")

    engine = EngineThread(load)
    with pytest.raises(Error, match="there is no folder"):
        engine.start()
    assert not engine.alive


def test_stopping_ends_what_runs_and_waits() -> None:
    def endless(model: Model) -> Iterator[None]:
        while True:
            yield None

    async def run() -> None:
        with started(running=1) as engine:
            jobs = [Job("a", endless), Job("a", endless)]
            for job in jobs:
                engine.submit(job)
            await asyncio.to_thread(engine.stop)
            for job in jobs:
                with pytest.raises(EngineStoppedError):
                    await job.next()
            with pytest.raises(EngineStoppedError):
                engine.submit(Job("a", endless))

    asyncio.run(run())
