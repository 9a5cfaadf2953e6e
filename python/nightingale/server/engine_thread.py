"""The one thread that owns the model, and the order in which requests have it."""

from __future__ import annotations

import contextlib
import gc
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mlx.core as mx

from ..tts import TTS
from .fair_queue import FairQueue
from .job import Job

LONGEST_RETRY = 60
REMEMBERED_JOBS = 20  # that the estimate of a job's length looks back on


@dataclass(frozen=True)
class ModelFacts:
    """What is known of the model also while it is not loaded."""

    voices: tuple[str, ...]
    languages: dict[str, str]
    bakes_voices: bool
    defaults: dict[str, Any]  # of SpeechOptions, where the model has its own


class EngineStoppedError(Exception):
    """The server is ending."""


class EngineThread:
    """Runs jobs in turns of one step each, the one whose listener would run dry first.

    MLX's streams belong to a thread, so that the model is loaded, used and dropped in this one.
    """

    def __init__(
        self,
        load: Callable[[], TTS],
        *,
        queue: int = 32,
        running: int = 4,
        unload_after: float | None = None,
    ) -> None:
        self._load = load
        self._tts: TTS | None = None
        self._facts: ModelFacts | None = None
        self._queue: FairQueue[Job] = FairQueue(queue)
        self._most_running = running
        self._running: list[Job] = []
        self._unload_after = unload_after
        self._wake = threading.Condition()
        self._stopping = False
        self._job_seconds = 0.0  # a running mean
        self._started = threading.Event()
        self._start_error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)

    def start(self) -> None:
        """Starts the thread and waits for the model; raises what loading raises."""
        self._thread.start()
        self._started.wait()
        if self._start_error is not None:
            self._thread.join()
            raise self._start_error

    def stop(self) -> None:
        """Cancels what runs and waits, and ends the thread."""
        with self._wake:
            self._stopping = True
            self._wake.notify()
        self._thread.join()

    @property
    def facts(self) -> ModelFacts:
        assert self._facts is not None, "the engine has not been started"
        return self._facts

    @property
    def loaded(self) -> bool:
        return self._tts is not None

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def waiting(self) -> int:
        return len(self._queue)

    @property
    def queue_limit(self) -> int:
        return self._queue.limit

    def retry_after(self) -> int:
        """Seconds after which half of what waits will have run, as far as can be told."""
        return min(max(1, math.ceil(self._job_seconds * self.waiting / 2)), LONGEST_RETRY)

    def submit(self, job: Job) -> None:
        """Puts a job in the queue, or raises QueueFullError."""
        with self._wake:
            if self._stopping:
                raise EngineStoppedError
            job.taken_told = self._notify
            self._queue.put(job.client, job)
            self._wake.notify()

    def cancel(self, job: Job) -> None:
        """Ends a job before its next step; one that has ended is left alone."""
        with self._wake:
            job.cancelled = True
            self._queue.remove(job.client, job)
            self._wake.notify()

    def _notify(self) -> None:
        with self._wake:
            self._wake.notify()

    def _run(self) -> None:
        try:
            self._ensure_loaded()
        except Exception as error:
            self._start_error = error
            return
        finally:
            self._started.set()
        while self._wait_for_work():
            for job in [job for job in self._running if job.cancelled]:
                self._end(job)
            ready = [job for job in self._running if not job.blocked]
            if ready:
                self._step(min(ready, key=lambda job: job.due))
        for job in [*self._running, *self._queue.clear()]:
            job.fail(EngineStoppedError())
            self._end(job)
        self._unload()

    def _wait_for_work(self) -> bool:
        """Admits what may run and waits until something can; False at the end."""
        with self._wake:
            while not self._stopping:
                while self._queue and len(self._running) < self._most_running:
                    self._running.append(self._queue.pop())
                if any(job.cancelled or not job.blocked for job in self._running):
                    return True
                idle = self._unload_after if self._tts and not self._running else None
                if not self._wake.wait(idle) and idle is not None:
                    self._unload()
            return False

    def _step(self, job: Job) -> None:
        began = time.monotonic()
        try:
            if job.steps is None:
                job.begun = began
                job.steps = job.work(self._reloaded())
            result = next(job.steps)
        except StopIteration:
            self._remember(job.busy)
            job.finish()
            self._end(job)
        except Exception as error:
            job.fail(error)
            self._end(job)
        else:
            job.busy += time.monotonic() - began
            if result is not None:
                job.give(result)

    def _end(self, job: Job) -> None:
        if job in self._running:
            self._running.remove(job)
        if job.steps is not None:
            with contextlib.suppress(AttributeError):  # an iterator that is no generator
                job.steps.close()

    def _remember(self, seconds: float) -> None:
        share = 1 / REMEMBERED_JOBS if self._job_seconds else 1
        self._job_seconds += share * (seconds - self._job_seconds)

    def _ensure_loaded(self) -> TTS:
        if self._tts is None:
            self._tts = self._load()
            self._facts = ModelFacts(
                tuple(self._tts.voices),
                self._tts.languages,
                self._tts.info["bakes_voices"],
                self._tts.info["defaults"],
            )
        return self._tts

    def _reloaded(self) -> TTS:
        try:
            return self._ensure_loaded()
        except Exception as error:  # no fault of the client, whatever it is
            raise RuntimeError("the model cannot be loaded again") from error

    def _unload(self) -> None:
        self._tts = None
        gc.collect()
        mx.clear_cache()
