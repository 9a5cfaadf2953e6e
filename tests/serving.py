"""The server as a process of its own, and what the model says directly, to compare with."""

from __future__ import annotations

import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from .command import COMMAND, PATIENCE, start


@dataclass
class Running:
    """A server that answers."""

    url: str
    process: subprocess.Popen[str]
    log: list[str] = field(default_factory=list)  # lines of its standard error so far

    def health(self) -> dict[str, Any]:
        # Without TLS, whose certificates cost more to read than the answer.
        answer = httpx.get(f"{self.url}/health", verify=False, timeout=PATIENCE)
        return answer.raise_for_status().json()

    def speech(self, text: str, **settings: Any) -> httpx.Response:
        body = {"model": "nightingale", "input": text, "response_format": "pcm", **settings}
        return httpx.post(f"{self.url}/v1/audio/speech", json=body, timeout=PATIENCE, verify=False)

    def idle(self) -> bool:
        health = self.health()
        return not health["running"] and not health["waiting"]


@contextmanager
def serving(
    model: Path, voices: Path, *options: str | Path, command: list[str] = COMMAND
) -> Iterator[Running]:
    """`nightingale serve` at a free port, ended with SIGTERM where it still runs."""
    words = ("serve", "--model", model, "--voices", voices, "--port", "0", *options)
    process = start(*words, command=command)
    log: list[str] = []
    listening = threading.Event()
    reader = threading.Thread(target=_read, args=(process, log, listening), daemon=True)
    reader.start()
    try:
        assert listening.wait(PATIENCE), log
        address = re.search(r"listening on (http://\S+)", "".join(log))
        assert address, log
        running = Running(address[1], process, log)
        until(lambda: _answers(running))
        yield running
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE)
        reader.join(PATIENCE)
        for pipe in (process.stdout, process.stderr):
            pipe.close()


def until(condition: Callable[[], bool], patience: float = PATIENCE) -> None:
    """Waits for something that must come true."""
    end = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.02)


def pcm(samples: np.ndarray) -> bytes:
    """Samples as the format pcm has them."""
    return np.rint(np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes()


def _answers(running: Running) -> bool:
    assert running.process.poll() is None, running.log
    try:
        return running.health()["status"] == "ok"
    except httpx.TransportError:
        return False


def _read(process: subprocess.Popen[str], log: list[str], listening: threading.Event) -> None:
    for line in process.stderr:
        log.append(line)
        if "listening on" in line:
            listening.set()
    listening.set()  # it ended, perhaps before it listened
