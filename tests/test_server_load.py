"""Many clients, clients that leave and clients that do nothing."""

from __future__ import annotations

import asyncio
import json
import random
import re
import signal
import socket
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

pytest.importorskip("fastapi", reason="pip install 'nightingale-tts[server]'")
from websockets.sync.client import ClientConnection, connect

import nightingale
from bench import serve

from .malformed import LIVE, SPEECH, UPGRADE, request
from .malformed import speech as speech_request
from .process import descriptors, resident, threads
from .recordings import speech as recording
from .recordings import wav_bytes
from .serving import PATIENCE, Running, pcm, serving, until

ASKED = [(text, seed) for text in ("Hi.", "No!", "Oh?") for seed in (1, 2)]
LONG = "This is one sentence of many that are to be said. " * 40
QUEUE = 32
POOLED = 50  # threads that the pools of the server may have and keep for a while
Expected = dict[tuple[str, int], bytes]

pytestmark = [pytest.mark.alone, pytest.mark.slow]
linux = pytest.mark.skipif(sys.platform != "linux", reason="Linux tells of a process")


@pytest.fixture(scope="module")
def expected(quick_tts: nightingale.TTS) -> Expected:
    """What the engine says directly."""
    return {
        (text, seed): pcm(
            np.concatenate([chunk.samples for chunk in quick_tts.stream(text, seed=seed)])
        )
        for text, seed in ASKED
    }


@pytest.fixture(scope="module")
def server(quick_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    voices = tmp_path_factory.mktemp("voices")
    # Who is in the queue stays there, on a slow machine as well.
    limits = ["--max-queue", str(QUEUE), "--first-audio-timeout", "600"]
    with serving(quick_checkpoint, voices, *limits) as running:
        yield running


class Crowd:
    """Clients who ask again and again until the time is over, and what they got."""

    def __init__(self, server: Running, expected: Expected) -> None:
        self.answers: Counter[int] = Counter()
        self.bytes = 0
        self.faults: list[str] = []
        self._server = server
        self._expected = expected
        self._lock = threading.Lock()

    def ask(self, clients: int, seconds: float) -> None:
        end = time.monotonic() + seconds
        limits = httpx.Limits(max_connections=None, keepalive_expiry=1)
        with (
            httpx.Client(base_url=self._server.url, timeout=600, limits=limits) as http,
            ThreadPoolExecutor(clients) as pool,
        ):
            for asking in [pool.submit(self._client, http, seed, end) for seed in range(clients)]:
                asking.result()

    def _client(self, http: httpx.Client, seed: int, end: float) -> None:
        draw = random.Random(seed)
        while time.monotonic() < end:
            text, seed = asked = draw.choice(ASKED)
            answer = http.post(SPEECH, json=speech(text, seed=seed))
            self._check(answer, self._expected[asked])
            if answer.status_code == 429:
                time.sleep(0.5)

    def _check(self, answer: httpx.Response, expected: bytes) -> None:
        with self._lock:
            self.answers[answer.status_code] += 1
            self.bytes += len(answer.content)
            if answer.status_code == 200:
                good = answer.content == expected
            else:
                waits = 1 <= int(answer.headers.get("Retry-After", 0)) <= 60
                good = answer.status_code == 429 and waits
            if not good:
                self.faults.append(f"{answer.status_code}, {len(answer.content)} bytes")


def speech(text: str, **settings: Any) -> dict[str, Any]:
    return {"model": "nightingale", "input": text, "response_format": "pcm", **settings}


def long_request(**settings: Any) -> bytes:
    return speech_request(json.dumps(speech(LONG, **settings)).encode())


def address(server: Running) -> tuple[str, int]:
    host, port = server.url.removeprefix("http://").split(":")
    return host, int(port)


def live(server: Running) -> ClientConnection:
    return connect(server.url.replace("http", "ws") + LIVE, open_timeout=PATIENCE)


@linux
def test_the_benchmark_of_many_clients_measures_a_server(server: Running) -> None:
    loads = asyncio.run(serve.measure(server.url, [1, 2], [4.0], 0.2, ["Hi."]))
    assert [load.name for load in loads] == ["1 client", "2 clients", "4 requests/s"]
    for load in loads:
        assert load.answers
        assert len(load.good) == len(load.answers)
        for answer in load.good:
            assert answer.seconds > 0
            assert 0 < answer.first <= answer.end
    head, _, *rows = serve.table(loads).splitlines()
    assert {row.count("|") for row in (head, *rows)} == {len(serve.HEAD) + 1}
    assert rows[0].split("|")[4].strip() == "1.00"


def test_64_clients_get_the_right_sound_or_429(
    server: Running, expected: Expected, pytestconfig: pytest.Config
) -> None:
    Crowd(server, expected).ask(8, 3)
    pid = server.process.pid
    memory = resident(pid)
    crowd = Crowd(server, expected)
    crowd.ask(64, 60 if pytestconfig.getoption("--full") else 5)
    until(server.idle)
    grown = resident(pid) - memory
    assert not crowd.faults
    assert crowd.answers[200] >= QUEUE
    assert crowd.answers[429] > 0
    assert grown < 25_000_000, f"{memory} bytes before, {memory + grown} after"
    assert "Traceback" not in "".join(server.log)


def leaves_mid_stream(server: Running) -> None:
    with socket.create_connection(address(server), PATIENCE) as connection:
        connection.sendall(long_request())
        assert connection.recv(12) == b"HTTP/1.1 200"


def leaves_before_the_sound(server: Running) -> None:
    with socket.create_connection(address(server), PATIENCE) as connection:
        connection.sendall(long_request())
        time.sleep(0.05)


def leaves_a_socket_mid_stream(server: Running) -> None:
    with live(server) as client:
        client.send(json.dumps({"type": "text", "text": LONG}))
        while not isinstance(client.recv(PATIENCE), bytes):
            pass
        client.socket.shutdown(socket.SHUT_RDWR)


def leaves_a_socket_before_the_sound(server: Running) -> None:
    with live(server) as client:
        client.send(json.dumps({"type": "text", "text": LONG}))


@linux
@pytest.mark.parametrize("clients", [40, pytest.param(200, marks=pytest.mark.nightly)])
def test_clients_that_hang_up_leave_nothing_running(
    clients: int, server: Running, expected: Expected
) -> None:
    ways = [leaves_mid_stream, leaves_before_the_sound, leaves_a_socket_mid_stream]
    ways.append(leaves_a_socket_before_the_sound)
    cancelled = "nightingale_cancelled_total"
    for way in ways:  # what opens with the first client and stays is there now
        way(server)
    until(server.idle)
    pid, before = server.process.pid, metric(server, cancelled)
    opened, running = descriptors(pid), threads(pid)
    with ThreadPoolExecutor(20) as pool:
        list(pool.map(lambda way: way(server), clients // len(ways) * ways))
    until(server.idle)
    until(lambda: descriptors(pid) <= opened)
    assert threads(pid) <= running + POOLED
    # Of those who leave early some are gone before their request is read.
    assert clients // 2 <= metric(server, cancelled) - before <= clients
    assert "Traceback" not in "".join(server.log)
    (text, seed), sound = next(iter(expected.items()))
    assert server.speech(text, seed=seed).content == sound


def test_of_clients_who_want_one_name_one_gets_it(server: Running) -> None:
    url = f"{server.url}/v1/audio/voices"
    sample = wav_bytes(recording(5, 24000), 24000)

    def create(number: int) -> int:
        files = {"audio_sample": ("a.wav", sample)}
        return httpx.post(url, data={"name": "Eve"}, files=files, timeout=PATIENCE).status_code

    def delete(number: int) -> int:
        return httpx.delete(f"{url}/Eve", timeout=PATIENCE).status_code

    with ThreadPoolExecutor(6) as pool:
        assert sorted(pool.map(create, range(6))) == [201, *5 * [409]]
        assert sorted(pool.map(delete, range(6))) == [200, *5 * [404]]


@pytest.fixture(scope="module")
def impatient(
    quick_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    voices = tmp_path_factory.mktemp("voices")
    with serving(quick_checkpoint, voices, "--stall-timeout", "2") as running:
        yield running


def small_connection(server: Running) -> socket.socket:
    """One that the system takes few bytes for, so that a client who does not read is soon seen."""
    connection = socket.socket()
    connection.settimeout(PATIENCE)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
    connection.connect(address(server))
    return connection


@linux
@pytest.mark.parametrize("settings", [{}, {"stream_format": "sse"}])
def test_a_client_that_reads_nothing_is_cut_off_and_holds_nobody_up(
    impatient: Running, expected: Expected, settings: dict[str, str]
) -> None:
    opened = descriptors(impatient.process.pid)
    with small_connection(impatient) as connection:
        connection.sendall(long_request(**settings))
        until(lambda: impatient.health()["running"] == 1)
        (text, seed), sound = next(iter(expected.items()))
        assert impatient.speech(text, seed=seed).content == sound
        until(impatient.idle)
        until(lambda: descriptors(impatient.process.pid) <= opened)
        received = 0
        while more := connection.recv(65536):
            received += len(more)
    assert received < 400_000  # of 200 s, which are 9.6 MB


@linux
def test_a_socket_that_reads_nothing_is_cut_off(impatient: Running) -> None:
    opened = descriptors(impatient.process.pid)
    with small_connection(impatient) as connection:
        connection.sendall(request("GET", LIVE, headers=UPGRADE))
        assert connection.recv(12) == b"HTTP/1.1 101"
        text = json.dumps({"type": "text", "text": LONG}).encode()
        # A frame of text with a length of 16 bits, under the mask of zeros.
        connection.sendall(b"\x81\xfe" + struct.pack(">H", len(text)) + bytes(4) + text)
        until(lambda: impatient.health()["running"] == 1)
        until(impatient.idle)
        until(lambda: descriptors(impatient.process.pid) <= opened)


@linux
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"GET /health HTTP/1.1\r\nHost: loc",
        b"POST /v1/audio/speech HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{",
    ],
)
def test_a_client_that_does_not_go_on_is_cut_off(impatient: Running, data: bytes) -> None:
    with socket.create_connection(address(impatient), PATIENCE) as connection:
        connection.sendall(data)
        assert connection.recv(1) == b""
    assert impatient.idle()


def test_ending_under_load_finishes_or_cuts_off_what_runs(
    quick_checkpoint: Path, tmp_path: Path, expected: Expected
) -> None:
    (text, seed), sound = next(iter(expected.items()))

    def ask(number: int) -> tuple[int, bytes]:
        """Status and sound; no status where the answer broke off."""
        try:
            answer = server.speech(LONG if number % 2 else text, seed=seed)
        except httpx.TransportError:
            return 0, b""
        return answer.status_code, answer.content if answer.status_code == 200 else b""

    with serving(quick_checkpoint, tmp_path, "--shutdown-timeout", "3") as server:
        with ThreadPoolExecutor(16) as pool:
            answers = pool.map(ask, range(16))
            until(lambda: server.health()["waiting"] >= 8)
            server.process.send_signal(signal.SIGTERM)
            answers = list(answers)
        assert server.process.wait(PATIENCE) == 143
    assert set(answers[::2]) <= {(200, sound), (503, b""), (0, b"")}  # the short ones
    assert set(answers[1::2]) <= {(503, b""), (0, b"")}
    assert "Traceback" not in "".join(server.log)


def metric(server: Running, name: str) -> int:
    text = httpx.get(f"{server.url}/metrics", timeout=PATIENCE).text
    return round(float(re.search(rf"^{name} (\S+)$", text, re.MULTILINE)[1]))
