"""How long work for one client may hold up others."""

from __future__ import annotations

import time

WORK_BEFORE_REST = 0.02  # seconds
REST = 3  # times as long as the work before it


class Throttle:
    """What WebSockets cost the event loop: all those of one client, told apart by address, may
    together take a quarter of its time."""

    def __init__(self) -> None:
        self._over: dict[str, float] = {}  # when a client's last rest is over, by time.monotonic

    def rest(self, client: str, worked: float) -> float:
        """How long a connection rests after its work. Others of the client, which rest too, come
        before it."""
        now = time.monotonic()
        self._over = {each: over for each, over in self._over.items() if over > now}
        over = max(self._over.get(client, 0.0), now - worked) + (1 + REST) * worked
        self._over[client] = over
        return over - now


class ConnectionThrottle:
    """What one connection has worked since its last rest."""

    def __init__(self, shared: Throttle, client: str) -> None:
        self._shared = shared
        self._client = client
        self._worked = 0.0  # seconds

    def rest(self, worked: float) -> float:
        """How long the connection rests after more work; 0 while that was little."""
        self._worked += worked
        if self._worked < WORK_BEFORE_REST:
            return 0.0
        worked, self._worked = self._worked, 0.0
        return self._shared.rest(self._client, worked)
