"""How much of the event loop's time the WebSockets of one client may take."""

from __future__ import annotations

import pytest

from nightingale.server import throttle
from nightingale.server.throttle import ConnectionThrottle, Throttle


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(throttle, "time", clock)
    return clock


def work(clock: Clock, throttle: ConnectionThrottle, seconds: float) -> float:
    clock.now += seconds
    return throttle.rest(seconds)


def test_a_connection_rests_three_times_as_long_as_it_worked(clock: Clock) -> None:
    throttle = ConnectionThrottle(Throttle(), "a")
    assert work(clock, throttle, 0.015) == 0
    assert work(clock, throttle, 0.015) == pytest.approx(0.09)
    clock.now += 0.09
    assert work(clock, throttle, 0.015) == 0
    assert work(clock, throttle, 0.1) == pytest.approx(0.345)


@pytest.mark.parametrize("count", [1, 2, 10])
def test_the_connections_of_a_client_share_a_quarter_of_the_time(clock: Clock, count: int) -> None:
    shared = Throttle()
    throttles = [ConnectionThrottle(shared, "a") for _ in range(count)]
    wakes, worked, began = [0.0] * count, 0.0, clock.now
    while clock.now < began + 100:
        next_one = wakes.index(min(wakes))
        clock.now = max(clock.now, wakes[next_one])
        rest = work(clock, throttles[next_one], 0.05)
        wakes[next_one] = clock.now + rest
        worked += 0.05
    assert worked / (clock.now - began) == pytest.approx(0.25, abs=0.01)


def test_clients_do_not_rest_for_each_other(clock: Clock) -> None:
    shared = Throttle()
    assert work(clock, ConnectionThrottle(shared, "a"), 10) == pytest.approx(30)
    assert work(clock, ConnectionThrottle(shared, "b"), 0.1) == pytest.approx(0.3)
    assert work(clock, ConnectionThrottle(shared, "a"), 0.1) == pytest.approx(29.8 + 0.4)
