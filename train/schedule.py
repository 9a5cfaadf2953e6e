"""The progress of a training run through its time or step limit."""

from __future__ import annotations

import math
import signal
import time


class Schedule:
    """Ends a run after some minutes of wall-clock time or some steps, whichever comes first.

    Steps make a run repeatable; minutes make it fit a machine that is rented by the hour. With
    `stop_on_sigterm` SIGTERM ends the run as well.
    """

    def __init__(self, minutes: float | None = None, steps: int | None = None) -> None:
        if minutes is None and steps is None:
            raise ValueError("a schedule needs minutes, steps or both")
        self.minutes = minutes
        self.steps = steps
        self.step = 0  # the current one, from 1
        self.terminated = False
        self._started = time.monotonic()
        self._last: dict[str, float] = {}

    @property
    def seconds(self) -> float:
        """Since the schedule was created."""
        return time.monotonic() - self._started

    @property
    def progress(self) -> float:
        """0 at the start, 1 at the end."""
        by_time = self.seconds / (60 * self.minutes) if self.minutes else 0.0
        by_steps = (self.step - 1) / self.steps if self.steps else 0.0
        return min(1.0, max(0.0, by_time, by_steps))

    def stop_on_sigterm(self) -> Schedule:
        """From now on SIGTERM ends the run after the current step instead of killing the process,
        which then has to save its weights."""

        def end(signal_number: int, frame: object) -> None:
            self.terminated = True

        signal.signal(signal.SIGTERM, end)
        return self

    def next_step(self) -> bool:
        """Starts a step: `while schedule.next_step(): ...` takes at least one."""
        self.step += 1
        return self.progress < 1.0 and (self.step == 1 or not self.terminated)

    def learning_rate(self, peak: float, warm_up: float = 0.03, last: float = 0.02) -> float:
        """Rises linearly to `peak` over the share `warm_up` of the run, then follows a cosine down
        to `last` · peak."""
        progress = self.progress
        if progress < warm_up:
            return peak * max(progress / warm_up, last)
        decay = (progress - warm_up) / (1 - warm_up)
        return peak * (last + (1 - last) * 0.5 * (1 + math.cos(math.pi * decay)))

    def due(self, what: str, every: float) -> bool:
        """Whether `every` seconds passed since this was last true of `what`, or since the start."""
        now = self.seconds
        if now - self._last.get(what, 0.0) < every:
            return False
        self._last[what] = now
        return True
