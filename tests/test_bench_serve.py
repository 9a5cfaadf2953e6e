"""bench.serve: what it counts of clients that it plays itself."""

from __future__ import annotations

import asyncio

import pytest

from bench.serve import Answer, Load, closed_loop, open_loop


def test_chunks_that_come_after_all_was_heard_are_late() -> None:
    answer = Answer()
    answer.take(1.0, 0.5)
    answer.take(1.4, 0.5)  # heard until 1.5
    answer.take(2.0, 0.5)  # just in time
    answer.take(2.6, 0.5)  # 0.1 s of silence before it
    assert (answer.first, answer.seconds, answer.chunks, answer.late) == (1.0, 2.0, 4, 1)


def test_waits_and_ratios_are_those_of_the_answers() -> None:
    one = Load("1 client", 10, [Answer(first=0.1, seconds=2.0, chunks=2) for _ in range(5)])
    waits = [Answer(first=n / 100, seconds=2.0, chunks=3, late=n % 2) for n in range(101)]
    many = Load("8 clients", 50.5, [*waits, Answer(failed=True)])
    assert one.audio_per_second == 1.0
    assert many.first_audio(50) == pytest.approx(0.5)
    assert many.first_audio(95) == pytest.approx(0.95)
    assert many.row(one) == [
        "8 clients", "102", "4.00", "4.00", "0.500", "0.950", "0.990", "50 of 303", "1",
    ]  # fmt: skip


def test_closed_clients_ask_again_and_open_ones_do_not_wait() -> None:
    running = most = 0

    async def ask(number: int) -> Answer:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.05)
        running -= 1
        return Answer(first=0.05, seconds=1.0, chunks=1)

    load = asyncio.run(closed_loop(ask, 3, 0.3))
    assert most == 3
    assert 6 <= len(load.answers) <= 21
    most = 0
    load = asyncio.run(open_loop(ask, 200.0, 0.3))
    assert most > 3
    assert len(load.answers) > 20
