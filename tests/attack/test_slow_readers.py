"""Clients that read slowly, and clients that do not read."""

from __future__ import annotations

import json
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..command import PATIENCE
from ..malformed import LIVE, UPGRADE, request
from ..process import resident
from ..serving import Running, serving, until
from ..test_server_load import LONG, long_request, small_connection
from .first_audio import assert_hardly_later

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(sys.platform != "linux", reason="Linux tells of a process"),
]

STALL_TIMEOUT = 2  # seconds
FLOOD = 40_000_000  # bytes


@pytest.fixture(scope="module")
def server(quick_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    voices = tmp_path_factory.mktemp("voices")
    with serving(quick_checkpoint, voices, "--stall-timeout", str(STALL_TIMEOUT)) as running:
        yield running


def frame(opcode: int, content: bytes) -> bytes:
    """A client's frame, under the mask of zeros."""
    size = bytes([0x80 | len(content)]) if len(content) < 126 else b"\xfe"
    length = b"" if len(content) < 126 else struct.pack(">H", len(content))
    return bytes([0x80 | opcode]) + size + length + bytes(4) + content


def upgraded(server: Running) -> socket.socket:
    connection = small_connection(server)
    connection.sendall(request("GET", LIVE, headers=UPGRADE))
    assert connection.recv(12) == b"HTTP/1.1 101"
    return connection


def read_slowly(connection: socket.socket, seconds: float) -> int:
    """Reads a kilobyte every tenth of a second, and never all there is."""
    received, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        more = connection.recv(1000)
        assert more, f"cut off after {received} bytes"
        received += len(more)
        time.sleep(0.1)
    return received


@pytest.mark.parametrize("way", ["http", "socket"])
def test_a_client_that_reads_slowly_is_not_cut_off(server: Running, way: str) -> None:
    if way == "http":
        connection = small_connection(server)
        connection.sendall(long_request(stream_format="sse"))
    else:
        connection = upgraded(server)
        connection.sendall(frame(1, json.dumps({"type": "text", "text": LONG}).encode()))
    with connection:
        read_slowly(connection, 1)
        assert read_slowly(connection, 5 * STALL_TIMEOUT) > 10_000
        assert server.health()["running"] == 1
    until(server.idle)


def test_a_flood_of_pings_is_not_taken_in(quick_checkpoint: Path, tmp_path: Path) -> None:
    with serving(quick_checkpoint, tmp_path) as patient:
        flood(patient)
        assert "Traceback" not in "".join(patient.log)


def flood(server: Running) -> None:
    pid = server.process.pid
    before = resident(pid)
    pings = 500 * frame(9, bytes(125))
    with upgraded(server) as connection:
        connection.settimeout(4)
        sent = 0
        try:
            while sent < FLOOD:
                sent += connection.send(pings)
        except TimeoutError:  # the server reads no more
            pass
        grown = resident(pid) - before
        print(f"{sent / 1e6:.1f} MB of pings, {grown / 1e6:.1f} MB more")
        assert grown < 20_000_000
        assert sent < FLOOD


def test_a_flood_of_pings_holds_nobody_up(server: Running) -> None:
    pings = 2_000 * frame(9, b"")
    with upgraded(server) as connection:

        def send_and_read() -> None:
            sender = threading.Thread(target=connection.sendall, args=(pings,))
            sender.start()
            answers = 0
            while answers < 2_000 * 2:  # bytes
                answers += len(connection.recv(2**16))
            sender.join(PATIENCE)

        assert_hardly_later(server, send_and_read)


def test_pings_are_answered_in_order_to_those_who_read(server: Running) -> None:
    with upgraded(server) as connection:
        received = b""
        while not received.endswith(b"\r\n\r\n"):
            received += connection.recv(1)
        for number in range(20):
            content = struct.pack(">I", number) * 30
            connection.sendall(frame(9, content))
            expected = bytes([0x8A, 120]) + content
            pong = b""
            while len(pong) < len(expected):
                pong += connection.recv(len(expected) - len(pong))
            assert pong == expected
