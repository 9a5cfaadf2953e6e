"""Malformed requests are refused, and harm nothing."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import socket
import struct
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="pip install 'nightingale-tts[server]'")
from websockets.sync.client import ClientConnection, connect

import nightingale

from .malformed import BODY, KEY, LIVE, MOST_CHARACTERS, UPGRADE, Malformed, all_bodies, request
from .malformed import speech as speech_request
from .malformed_http import below_bodies, broken_off
from .process import descriptors
from .recordings import speech as recording
from .serving import PATIENCE, Running, serving, until

# What the libraries below the application say in their own words.
PLAIN = (b"Invalid HTTP request received.", b"Failed to open a WebSocket connection: ")


@dataclass(frozen=True)
class Guarded:
    """A server with a key, and the folder that holds its voice folder and a voice beside it."""

    running: Running
    root: Path

    def connect(self) -> socket.socket:
        host, port = self.running.url.removeprefix("http://").split(":")
        return socket.create_connection((host, int(port)), PATIENCE)

    def live(self) -> ClientConnection:
        url = self.running.url.replace("http", "ws") + LIVE
        headers = {"Authorization": f"Bearer {KEY}"}
        return connect(url, additional_headers=headers, open_timeout=PATIENCE)

    def files(self) -> dict[str, str]:
        """Every file that a voice's name could reach, and a digest of what is in it."""
        files = (path for path in sorted(self.root.rglob("*")) if path.is_file())
        return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}

    def speaks(self) -> bool:
        with self.connect() as connection:
            connection.sendall(speech_request(json.dumps(BODY).encode()))
            answer = http.client.HTTPResponse(connection)
            answer.begin()
            return answer.status == 200 and len(answer.read()) > 24000


@pytest.fixture(scope="module")
def server(
    quick_checkpoint: Path, quick_tts: nightingale.TTS, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Guarded]:
    root = tmp_path_factory.mktemp("root")
    voices = root / "voices"
    voices.mkdir()
    quick_tts.bake_voice(recording(6, 24000), 24000).save(root / "secret.safetensors")
    (voices / "link.safetensors").symlink_to(root / "secret.safetensors")
    (root / "key").write_text(KEY)
    options = ["--key-file", root / "key", "--max-characters", str(MOST_CHARACTERS)]
    options += ["--strict-model"]
    with serving(quick_checkpoint, voices, *options) as running:
        yield Guarded(running, root)


@pytest.fixture(scope="module")
def live(server: Guarded) -> Iterator[ClientConnection]:
    with server.live() as live:
        yield live


def fault(server: Guarded, case: Malformed) -> str | None:
    """What is wrong with the answer to a request; None where nothing is."""
    with server.connect() as connection:
        try:
            connection.sendall(case.data)
            answer = http.client.HTTPResponse(connection)
            answer.begin()
            body = answer.read()
        except (OSError, http.client.HTTPException) as error:
            return f"{case.name}: {error!r}"
    inside = (b"Traceback", b'.py"', os.fsencode(server.root))
    leaks = [word for word in inside if word in body and word not in case.data]
    wrong = answer.status not in case.statuses or answer.getheader("X-Injected") or leaks
    if wrong or not is_told_well(answer.getheader("Content-Type"), body):
        return f"{case.name}: {answer.status} {body[:200]!r}"
    return None


def is_told_well(content_type: str | None, body: bytes) -> bool:
    if content_type == "application/json":
        return has_openais_shape(json.loads(body))
    return not body or body.startswith(PLAIN)


def has_openais_shape(body: dict) -> bool:
    error = body.get("error", {})
    return (
        set(error) == {"message", "type", "param", "code"}
        and all(isinstance(error[name], str) and error[name] for name in ("message", "type"))
        and all(error[name] is None or isinstance(error[name], str) for name in ("param", "code"))
    )


@pytest.mark.slow
@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.nightly)])
def test_malformed_requests_are_refused(step: int, server: Guarded) -> None:
    cases = [*all_bodies(str(server.root / "secret")), *below_bodies()]
    assert len(cases) >= 1000
    cases = cases[::step]
    files, lines = server.files(), len(server.running.log)
    with ThreadPoolExecutor(8) as pool:
        faults = [found for found in pool.map(lambda case: fault(server, case), cases) if found]
    assert not faults, "\n".join(faults)
    assert server.files() == files
    until(server.running.idle)
    assert "Traceback" not in "".join(server.running.log[lines:])
    assert server.speaks()


@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells a process's descriptors")
def test_requests_that_break_off_leave_nothing_behind(server: Guarded) -> None:
    pid, lines = server.running.process.pid, len(server.running.log)
    open_before = descriptors(pid)
    for data in broken_off():
        with server.connect() as connection:
            connection.sendall(data)
    until(lambda: descriptors(pid) <= open_before)
    until(server.running.idle)
    assert "Traceback" not in "".join(server.running.log[lines:])
    assert server.speaks()


def test_an_endless_header_is_refused(server: Guarded) -> None:
    with server.connect() as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: ")
        sent = sent_until_refused(connection)
    assert 65536 <= sent < 20_000_000  # much of it is on its way when the server says no
    assert server.speaks()


def sent_until_refused(connection: socket.socket) -> int:
    sent = 0
    while sent < 100_000_000:
        try:
            sent += connection.send(b"a" * 65536)
        except (BrokenPipeError, ConnectionResetError):
            break
    return sent


@pytest.mark.parametrize(
    "message",
    [
        "", "x", "{}", "[]", "null", "5", '"text"', '{"type"', '{"type": 5}', '{"type": null}',
        '{"type": "begun"}', '{"type": "TEXT", "text": "a"}', '{"type": ["text"], "text": "a"}',
        '{"type": "text"}', '{"type": "text", "text": 5}', '{"type": "text", "text": null}',
        '{"type": "text", "text": ["a"]}', '{"type": "text", "text": "\\ud800"}', "[" * 100_000,
        '{"type": "text", "text": "%s"}' % ("a" * (MOST_CHARACTERS + 1)),
        '{"type": "begin", "speed": 9}', '{"type": "begin", "speed": NaN}',
        '{"type": "begin", "speed": 1%s}' % ("0" * 5000), '{"type": "begin", "voice": 5}',
        '{"type": "begin", "voice": {}}', '{"type": "begin", "response_format": "midi"}',
        '{"type": "begin", "seed": -1}', '{"type": "begin", "language": 5}', b"", b"\0\xff",
        b'{"type": "end"}',
    ],
)  # fmt: skip
def test_a_malformed_message_is_told_and_the_socket_lives(
    server: Guarded, live: ClientConnection, message: str | bytes
) -> None:
    live.send(message)
    told = json.loads(live.recv(PATIENCE))
    assert told.pop("type") == "error"
    assert has_openais_shape(told)
    live.send('{"type": "end"}')
    assert json.loads(live.recv(PATIENCE)) == {"type": "done", "seconds": 0}


@pytest.mark.parametrize(
    "settings",
    [
        {"voice": "../secret"}, {"voice": {"id": "link"}}, {"voice": "\0"}, {"language": "xx"},
        {"language": "../en"},
    ],
)  # fmt: skip
def test_what_cannot_be_said_is_told_and_the_socket_lives(
    server: Guarded, live: ClientConnection, settings: dict
) -> None:
    for message in (
        {"type": "begin", **settings},
        {"type": "text", "text": "Hi."},
        {"type": "end"},
    ):
        live.send(json.dumps(message))
    kinds = []
    while not kinds or kinds[-1] != "error":
        told = json.loads(live.recv(PATIENCE))
        kinds.append(told.pop("type"))
    assert has_openais_shape(told)
    assert os.fspath(server.root) not in told["error"]["message"]
    live.send('{"type": "begin"}')
    live.send('{"type": "end"}')
    assert json.loads(live.recv(PATIENCE))["type"] == "begin"
    assert json.loads(live.recv(PATIENCE)) == {"type": "done", "seconds": 0}


def frame(first: int, payload: bytes, masked: bool = True) -> bytes:
    """A WebSocket's frame of up to 125 bytes under the mask of zeros; `first`: flags and kind."""
    return bytes([first, len(payload) | (0x80 if masked else 0)]) + bytes(4 * masked) + payload


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (frame(0x81, b"{}", masked=False), 1002),
        (frame(0xC1, b"{}"), 1002),
        (frame(0x83, b"{}"), 1002),
        (frame(0x8F, b""), 1002),
        (frame(0x80, b"{}"), 1002),
        (frame(0x01, b"{") + frame(0x81, b"}"), 1002),
        (frame(0x09, b"x"), 1002),
        (frame(0x88, b"x"), 1002),
        (frame(0x88, struct.pack(">H", 1005)), 1002),
        (frame(0x81, b"\xff\xfe"), 1007),
        (b"\x81\xff" + struct.pack(">Q", 2_000_000) + bytes(4), 1009),
        (b"\x81\xff" + struct.pack(">Q", 2**63) + bytes(4), 1009),
    ],
)
def test_a_broken_frame_closes_the_socket(server: Guarded, data: bytes, code: int) -> None:
    with server.connect() as connection:
        connection.sendall(request("GET", LIVE, headers=UPGRADE))
        received = connection.recv(65536)
        assert received.startswith(b"HTTP/1.1 101 ")
        connection.sendall(data)
        while more := connection.recv(65536):
            received += more
    close = received.partition(b"\r\n\r\n")[2]
    assert close[0] == 0x88
    assert struct.unpack(">H", close[2:4]) == (code,)
    until(server.running.idle)


def test_after_all_that_it_still_speaks(server: Guarded) -> None:
    assert server.speaks()
    assert server.running.process.poll() is None
