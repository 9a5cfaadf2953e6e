"""Memory that was used is given back, and no request takes much of it."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import uvicorn

import nightingale
from nightingale import _core
from nightingale.checkpoint import EMBEDDED
from nightingale.long_recording import BLOCK_SAMPLES, LongRecording
from nightingale.server import http_server
from nightingale.server.http_server import HttpServer, Rest

from ..process import anonymous, peak_resident, resident
from ..recordings import speech, wav_bytes
from ..serving import serving, until
from .acts import Target, conversion_request

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="Linux tells of a process")
MOST_GROWTH = 300_000_000  # bytes
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


@on_linux
@pytest.mark.slow
@pytest.mark.nightly
def test_a_conversion_of_ten_minutes_takes_little_memory(tmp_path: Path) -> None:
    data = conversion_request(wav_bytes(speech(590, 16000), 16000), response_format="pcm")
    with serving(EMBEDDED, tmp_path) as server:
        host, port = server.url.removeprefix("http://").split(":")
        pid = server.process.pid
        idle = resident(pid)
        with Target(host, int(port)).connect() as connection:
            connection.sendall(data)
            heard = 0
            while heard < 60 * 48_000:
                part = connection.recv(2**16)
                assert part
                heard += len(part)
        grown = peak_resident(pid) - idle
        print(f"{grown / 1e6:.0f} MB above {idle / 1e6:.0f} MB")
        assert grown < MOST_GROWTH
        until(server.idle)
