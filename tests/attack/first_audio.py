"""How late a client's first audio is, alone and while another client misbehaves."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from statistics import median

import httpx

from ..command import PATIENCE
from ..serving import Running

TRIES = 5
SLACK = 1.0  # seconds, for the noise of a busy machine


def first_audio(server: Running) -> float:
    """Seconds to the first byte of sound, of several tries the one in the middle."""
    body = {"model": "nightingale", "input": "Hi.", "response_format": "pcm"}
    found = []
    for _ in range(TRIES):
        began = time.monotonic()
        with httpx.stream(
            "POST", f"{server.url}/v1/audio/speech", json=body, timeout=PATIENCE, verify=False
        ) as answer:
            assert answer.status_code == 200
            next(answer.iter_raw())
            found.append(time.monotonic() - began)
    return median(found)


def assert_hardly_later(server: Running, misbehave: Callable[[], None], clients: int = 1) -> None:
    """While clients do something again and again, another's first audio is hardly later."""
    first_audio(server)
    alone = first_audio(server)
    over = threading.Event()
    done = 0

    def attack() -> None:
        nonlocal done
        while not over.is_set():
            misbehave()
            done += 1

    attackers = [threading.Thread(target=attack) for _ in range(clients)]
    for attacker in attackers:
        attacker.start()
    try:
        time.sleep(1)
        attacked = first_audio(server)
    finally:
        over.set()
        for attacker in attackers:
            attacker.join(PATIENCE)
    print(f"first audio: {alone:.3f} s alone, {attacked:.3f} s under {done} attacks")
    assert attacked <= 2 * alone + SLACK, f"{alone:.3f} s alone, {attacked:.3f} s under attack"
