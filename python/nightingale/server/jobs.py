"""Work for the one thread that owns the model, and the order in which requests have it."""

from __future__ import annotations

import asyncio
import gc
import logging
import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import anyio
import mlx.core as mx

from .. import _core
from ..tts import TTS

logger = logging.getLogger(__name__)

AHEAD = 30.0  # seconds of sound that are made before the client has taken them
MOST_LATE = 1.0  # seconds for which one that is later comes before one that is less late
# On a GPU so many jobs, due within so many seconds, take turns: steps of the flow that they need at
# the same time are computed together.
MOST_TOGETHER, TOGETHER_WITHIN = 8, 0.25
LONGEST_RETRY = 60
REMEMBERED_JOBS = 20  # that the estimate of a job's length looks back on

T = TypeVar("T")
Work = Callable[[TTS], Iterator[Any]]


class QueueFullError(Exception):
    """No more can wait."""


class EngineStoppedError(Exception):
    """The server is ending."""


class EngineFailedError(Exception):
    """The engine's thread has ended by a fault, and nothing can be spoken any more."""


class Job:
    """Steps of work: None between two results, or a Future that the next step waits for. Made in an
    event loop, run in the engine's thread.

    Results are chunks of sound or other things; only sound has seconds.
    """

    def __init__(self, client: str, work: Work) -> None:
        self.client = client
        self.work = work
        self.steps: Iterator[Any] | None = None
        self.cancelled = False
        self.begun = 0.0  # by time.monotonic
        self.busy = 0.0  # seconds of the engine's thread
        self.last_turn = 0  # the number of its last turn
        self.awaited: Future[Any] | None = None
        self.taken_told: Callable[[], None] = lambda: None
        self._made = self._taken = 0.0  # seconds of sound
        self._loop = asyncio.get_running_loop()
        self._results: asyncio.Queue[Any] = asyncio.Queue()

    @property
    def due(self) -> float:
        """When a listener who began with the job will have heard all that was made."""
        return self.begun + self._made

    @property
    def blocked(self) -> bool:
        """Whether the client has yet to take what was made, or another thread to do its part."""
        if self.awaited is not None and not self.awaited.done():
            return True
        return self._made - self._taken > AHEAD

    def give(self, result: Any) -> None:
        """Passes on a result, an exception that ended the work, or None for its end."""
        self._made += _seconds(result)
        try:
            self._loop.call_soon_threadsafe(self._results.put_nowait, result)
        except RuntimeError:  # the loop was closed: nobody waits for it any more
            self.cancelled = True

    async def next(self, timeout: float | None = None) -> Any:
        """The next result, None at the end; raises what the work raised, and TimeoutError."""
        # Before Python 3.12 asyncio.wait_for forgets a cancellation at the moment of a result.
        with anyio.fail_after(timeout):
            result = await self._results.get()
        if isinstance(result, Exception):
            raise result
        self._taken += _seconds(result)
        self.taken_told()
        return result


def _seconds(result: Any) -> float:
    samples = getattr(result, "samples", ())
    return len(samples) / result.sample_rate if len(samples) else 0.0


class FairQueue(Generic[T]):
    """A bounded queue in which clients take turns; what one client asks for keeps its order. Not
    for changes from several threads."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._waiting: dict[str, deque[T]] = {}  # the client whose turn is next comes first
        self._count = 0  # other threads may ask for the length

    def __len__(self) -> int:
        return self._count

    def put(self, client: str, item: T) -> None:
        if self._count >= self.limit:
            raise QueueFullError
        self._waiting.setdefault(client, deque()).append(item)
        self._count += 1

    def pop(self) -> T:
        """The next client's oldest item; that client comes last afterwards."""
        client = next(iter(self._waiting))
        items = self._waiting.pop(client)
        item = items.popleft()
        if items:
            self._waiting[client] = items
        self._count -= 1
        return item

    def remove(self, client: str, item: T) -> bool:
        """Takes an item out of the queue; False where it is not there."""
        items = self._waiting.get(client, deque())
        if item not in items:
            return False
        items.remove(item)
        if not items:
            del self._waiting[client]
        self._count -= 1
        return True

    def clear(self) -> list[T]:
        """Empties the queue and gives what was in it."""
        items = [item for items in self._waiting.values() for item in items]
        self._waiting.clear()
        self._count = 0
        return items


@dataclass(frozen=True)
class ModelFacts:
    """What is known of the model also while it is not loaded."""

    voices: tuple[str, ...]
    languages: dict[str, str]
    language_voices: dict[str, str]
    bakes_voices: bool
    sound_tags: list[str]
    ignored_options: list[str]
    defaults: dict[str, Any]  # of SpeechOptions, where the model has its own
    device: str
    session_bytes: int  # that a request takes at most while it is spoken


def next_turn(jobs: Sequence[Job], now: float, device: str) -> Job:
    """The job that has the turn: the one whose listener would run dry first. All that are late by
    MOST_LATE or more take turns, so that none waits longer than that and a turn of each other one;
    and on a GPU those that are due next."""
    by_due = sorted(jobs, key=lambda job: (max(job.due, now - MOST_LATE), job.last_turn))
    if device == "cpu":
        return by_due[0]
    last = max(by_due[0].due, now - MOST_LATE) + TOGETHER_WITHIN
    together = [job for job in by_due[:MOST_TOGETHER] if job.due <= last]
    return min(together, key=lambda job: job.last_turn)


def fitting(session_bytes: int) -> int:
    """How many requests half of the memory has room for that the system can give now; one at
    least."""
    return max(1, available_memory() // 2 // session_bytes)


def available_memory() -> int:
    """Bytes that this process can still get without swapping, as far as the system tells."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        found = next(line for line in lines if line.startswith("MemAvailable:"))
        return int(found.split()[1]) * 1024
    except (OSError, StopIteration):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


class EngineThread:
    """Runs jobs in turns of one step each, by their urgency.

    MLX's streams belong to a thread, so that the model is loaded, used and dropped in this one.
    """

    def __init__(
        self,
        load: Callable[[], TTS],
        *,
        queue: int = 32,
        running: int = 8,
        unload_after: float | None = None,
    ) -> None:
        self._load = load
        self._tts: TTS | None = None
        self._facts: ModelFacts | None = None
        self._queue: FairQueue[Job] = FairQueue(queue)
        self._asked_running = self._most_running = running
        self._running: list[Job] = []
        self._turns = 0
        self._unload_after = unload_after
        self._wake = threading.Condition()
        self._stopping = False
        self._failed = False
        self._job_seconds = 0.0  # a running mean
        self._started: Future[None] = Future()  # fails where the model cannot be loaded
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)

    def start(self) -> None:
        """Starts the thread and waits for the model; raises what loading raises."""
        self._thread.start()
        if (error := self._started.exception()) is not None:
            self._thread.join()
            raise error

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
        return self._thread.is_alive() and not self._failed

    @property
    def failed(self) -> bool:
        """Whether a fault, and not `stop`, has ended the thread."""
        return self._failed

    @property
    def busy(self) -> bool:
        return bool(self._running or self._queue)

    def release_memory(self) -> None:
        """Gives memory that nothing uses back to the system. What is kept for a GPU stays: it is of
        one size, and slow to come by."""
        if self._facts is not None and self._facts.device == "cpu":
            _core.release_memory()

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def running_limit(self) -> int:
        return self._most_running

    @property
    def session_bytes(self) -> int:
        """What the requests that run take of memory at most."""
        return self.running * self.facts.session_bytes

    @property
    def cache_counts(self) -> dict[str, int]:
        """Of the cache of sentences; empty while no model is loaded."""
        tts = self._tts
        return {} if tts is None else tts.info["cache"]

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
            if self._failed:
                raise EngineFailedError
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
            self._started.set_exception(error)
            return
        self._started.set_result(None)
        try:
            self._run_jobs()
        except BaseException:
            self._give_up()  # first, as without memory the log may fail too
            logger.critical("the engine has failed", exc_info=True)

    def _give_up(self) -> None:
        with self._wake:
            self._failed = True
            for job in [*self._running, *self._queue.clear()]:
                job.give(EngineFailedError())
            self._running.clear()

    def _run_jobs(self) -> None:
        while self._wait_for_work():
            for job in [job for job in self._running if job.cancelled]:
                self._end(job)
            ready = [job for job in self._running if not job.blocked]
            if ready:
                now = time.monotonic()
                self._step(next_turn(ready, now, self.facts.device))
        for job in [*self._running, *self._queue.clear()]:
            job.give(EngineStoppedError())
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
        self._turns += 1
        job.last_turn = self._turns
        try:
            if job.steps is None:
                job.begun = began
                job.steps = job.work(self._reloaded())
            result = next(job.steps)
        except StopIteration:
            self._remember(job.busy)
            job.give(None)
            self._end(job)
        except Exception as error:
            job.give(error)
            self._end(job)
        else:
            job.busy += time.monotonic() - began
            if isinstance(result, Future):
                job.awaited = result
                result.add_done_callback(lambda _: self._notify())
            elif result is not None:
                job.give(result)

    def _end(self, job: Job) -> None:
        if job in self._running:
            self._running.remove(job)
        if isinstance(job.steps, Generator):  # which may have something to clean up
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
                self._tts.info["language_voices"],
                self._tts.info["bakes_voices"],
                self._tts.info["sound_tags"],
                self._tts.info["ignored_options"],
                self._tts.info["defaults"],
                self._tts.info["device"],
                self._tts.info["session_bytes"],
            )
            self._most_running = min(self._asked_running, fitting(self._facts.session_bytes))
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
