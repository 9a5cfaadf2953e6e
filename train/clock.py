"""How far a stage of training is, by the time or the steps it was given."""

from __future__ import annotations

import math
import signal
import time


class Clock:
    """Ends a run after some minutes of wall-clock time, or after some steps, whichever comes first.

    Steps make a run repeatable; minutes make it fit where machines are lent by the hour. One that
    heeds termination also ends a run when its process is asked to end.
    """

    def __init__(self, minutes: float | None = None, steps: int | None = None) -> None:
        if minutes is None and steps is None:
            raise ValueError("a clock needs minutes, steps or both")
        self.minutes = minutes
        self.steps = steps
        self.step = 0  # the one being taken, from 1
        self.terminated = False
        self._started = time.monotonic()
        self._last: dict[str, float] = {}

    @property
    def seconds(self) -> float:
        """Since the clock was made."""
        return time.monotonic() - self._started

    @property
    def progress(self) -> float:
        """0 at the start, 1 at the end."""
        by_time = self.seconds / (60 * self.minutes) if self.minutes else 0.0
        by_steps = (self.step - 1) / self.steps if self.steps else 0.0
        return min(1.0, max(0.0, by_time, by_steps))

    def heed_termination(self) -> Clock:
        """From now on SIGTERM ends the run after the step being taken instead of the process, which
        then has to save what it has."""

        def end(signal_number: int, frame: object) -> None:
            self.terminated = True

        signal.signal(signal.SIGTERM, end)
        return self

    def tick(self) -> bool:
        """Begins a step: `while clock.tick(): ...` runs to the end, and takes one step at least."""
        self.step += 1
        return self.progress < 1.0 and (self.step == 1 or not self.terminated)

    def learning_rate(self, peak: float, warm_up: float = 0.03, last: float = 0.02) -> float:
        """Rises to `peak` over the share `warm_up` of the run, then falls along a cosine to
        `last` · peak."""
        progress = self.progress
        if progress < warm_up:
            return peak * max(progress / warm_up, last)
        fall = (progress - warm_up) / (1 - warm_up)
        return peak * (last + (1 - last) * 0.5 * (1 + math.cos(math.pi * fall)))

    def due(self, what: str, every: float) -> bool:
        """Whether `every` seconds passed since this was last true of `what`, or since the start."""
        now = self.seconds
        if now - self._last.get(what, 0.0) < every:
            return False
        self._last[what] = now
        return True
