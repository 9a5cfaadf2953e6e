"""Memory that was used is given back."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
import uvicorn

import nightingale
from nightingale import _core
from nightingale.long_recording import BLOCK_SAMPLES, LongRecording
from nightingale.server import http_server
from nightingale.server.http_server import HttpServer, Rest

from ..process import anonymous

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="Linux tells of a process")
REST = 0.05  # seconds


@pytest.fixture(autouse=True)
def short_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "REST_SECONDS", REST)


def test_what_ops_keep_is_released(quick_tts: nightingale.TTS) -> None:
    quick_tts.speech_tokens("Hi.", max_tokens=5)
    assert _core.idle_bytes() > 0
    _core.release_memory()
    assert _core.idle_bytes() == 0


@on_linux
def test_what_the_c_library_keeps_is_released() -> None:
    pid = os.getpid()
    parts = [b"a" * 100_000 for _ in range(600)]
    del parts[::2]  # holes, so that no free place is at the end
    kept = anonymous(pid)
    _core.release_memory()
    assert kept - anonymous(pid) > 20_000_000
    assert len(parts) == 300


def test_rest_begins_once_after_the_last_work() -> None:
    rest = Rest()
    assert not rest.begins(busy=True, work=1)
    assert not rest.begins(busy=False, work=1)
    time.sleep(1.5 * REST)
    assert not rest.begins(busy=False, work=2)  # a request that came and went meanwhile
    time.sleep(1.5 * REST)
    assert not rest.begins(busy=True, work=2)
    assert not rest.begins(busy=False, work=2)
    time.sleep(1.5 * REST)
    assert [rest.begins(busy=False, work=2) for _ in range(3)] == [True, False, False]


def test_a_server_at_rest_releases_memory() -> None:
    released: list[float] = []
    engine = SimpleNamespace(failed=False, busy=True, release_memory=lambda: released.append(1))
    threads = SimpleNamespace(submit=lambda work: work())
    server = HttpServer(uvicorn.Config(lambda: None))
    state = SimpleNamespace(server=SimpleNamespace(engine=engine, text_threads=threads))
    server.config.loaded_app = SimpleNamespace(state=state)

    def ticks() -> int:
        asyncio.run(server.on_tick(1))
        time.sleep(1.5 * REST)
        asyncio.run(server.on_tick(2))
        return len(released)

    assert ticks() == 0
    engine.busy = False
    assert ticks() == 1
    assert ticks() == 1
    server.server_state.total_requests += 1
    assert ticks() == 2


def test_samples_to_convert_come_in_blocks_that_are_no_copies() -> None:
    samples = np.arange(2 * BLOCK_SAMPLES + 5, dtype=np.float32)
    recording = LongRecording.of_samples(samples)
    for _ in range(2):
        blocks = list(recording.blocks())
        assert [len(block) for block in blocks] == [BLOCK_SAMPLES, BLOCK_SAMPLES, 5]
        assert all(np.shares_memory(block, samples) for block in blocks)
        np.testing.assert_array_equal(np.concatenate(blocks), samples)
