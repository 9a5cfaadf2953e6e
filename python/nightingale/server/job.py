"""Work for the engine's thread, and the way of its results to an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

from ..tts import TTS

AHEAD = 30.0  # seconds of sound that are made before the client has taken them

Work = Callable[[TTS], Iterator[Any]]


class Job:
    """Steps of work: None between two results. Made in an event loop, run in the engine's thread.

    Results are chunks of sound or other things; only sound has seconds.
    """

    def __init__(self, client: str, work: Work) -> None:
        self.client = client
        self.work = work
        self.steps: Iterator[Any] | None = None
        self.cancelled = False
        self.begun = 0.0  # by time.monotonic
        self.busy = 0.0  # seconds of the engine's thread
        self.taken_told: Callable[[], None] = lambda: None
        self._made = self._taken = 0.0  # seconds of sound
        self._loop = asyncio.get_running_loop()
        self._results: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()

    @property
    def due(self) -> float:
        """When a listener who began with the job will have heard all that was made."""
        return self.begun + self._made

    @property
    def blocked(self) -> bool:
        """Whether the client has yet to take what was made."""
        return self._made - self._taken > AHEAD

    def give(self, result: Any) -> None:
        self._made += _seconds(result)
        self._send("result", result)

    def finish(self) -> None:
        self._send("end", None)

    def fail(self, error: Exception) -> None:
        self._send("error", error)

    async def next(self) -> Any:
        """The next result, None at the end; raises what the work raised."""
        kind, value = await self._results.get()
        if kind == "error":
            raise value
        self._taken += _seconds(value)
        self.taken_told()
        return value

    def _send(self, kind: str, value: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(self._results.put_nowait, (kind, value))
        except RuntimeError:  # the loop was closed: nobody waits for it any more
            self.cancelled = True


def _seconds(result: Any) -> float:
    samples = getattr(result, "samples", ())
    return len(samples) / result.sample_rate if len(samples) else 0.0
