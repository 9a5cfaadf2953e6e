"""GPU kernels are compiled at their first launch: in the background, where there is time for it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from . import _core
from ._core import Error
from .options import SpeechOptions

if TYPE_CHECKING:
    from .engine import Engine
    from .voice import Voice

logger = logging.getLogger(__name__)

TOKENS = 4  # of T3: from the third on, steps are replayed
TOGETHER = (2, 4, 8)  # utterances of a pass: kernels of these sizes take all numbers up to eight
REPORTED_SECONDS = 1.0  # what compiling may take before anything is said about it


class Turn:
    """A lock that is not waited for in a process that was forked: there its owner may not exist."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        _core.check_fork()
        self._lock.acquire()

    def __exit__(self, *raised: object) -> None:
        self._lock.release()


class GpuTurn(Turn):
    """Also says which kernels are compiled, once in a process and only if it takes long."""

    _reported = False

    def __init__(self) -> None:
        super().__init__()
        self._seconds = 0.0  # of turns that compiled
        self._began = 0.0
        self._compiled = 0

    def __enter__(self) -> None:
        super().__enter__()
        self._began = time.perf_counter()
        self._compiled = _core.first_kernel_launches()

    def __exit__(self, *raised: object) -> None:
        if _core.first_kernel_launches() > self._compiled:
            self._seconds += time.perf_counter() - self._began
            if self._seconds > REPORTED_SECONDS and not GpuTurn._reported:
                GpuTurn._reported = True
                names = ", ".join(_core.launched_kernels())
                logger.info("compiling GPU kernels, which the first sound waits for: %s", names)
        super().__exit__(*raised)


class WarmUp:
    """Says a few tokens in a thread of its own, from now until `end`."""

    def __init__(self, engine: Engine, voice: Voice) -> None:
        self._engine, self._voice = engine, voice
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="nightingale-warm-up", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """After the step that it is at."""
        self._ending.set()
        self.wait()

    def wait(self) -> None:
        """Until all is done."""
        self._thread.join()

    def _run(self) -> None:
        try:
            for _ in self._steps():
                if self._ending.is_set():
                    return
        except (Error, ValueError, RuntimeError) as error:  # a request will meet and raise it
            logger.debug("the warm-up ended: %s", error)

    def _steps(self) -> Iterator[None]:
        """Every stage, a turn at a time."""
        engine, voice = self._engine, self._voice
        asked = SpeechOptions(max_tokens=TOKENS, steps=1)
        options = asked.resolved(engine.speech_defaults | {"exaggeration": voice.emotion_adv})
        ids = np.arange(1, TOKENS + 1, dtype=np.int32)  # any that are text and sound
        for _ in engine.tokens(engine.speak(ids, voice, options, min_tokens=TOKENS)):
            yield
        yield from self._stages_after_t3(ids, options)
        if not engine.speaks_together:
            return
        for count in TOGETHER:
            first, *others = (
                engine.speak(ids, voice, options, min_tokens=TOKENS) for _ in range(count)
            )
            while engine.next_token(first, others) is not None:
                yield

    def _stages_after_t3(self, ids: np.ndarray, options: SpeechOptions) -> Iterator[None]:
        engine, voice = self._engine, self._voice
        mel = yield from engine.mel(ids, voice, options, finalize=True)
        state = engine.begin_sound(options.seed)
        yield
        engine.sound(state, mel, last=True)
