"""Clients that trickle, that hold connections or uploads, and a system without files."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from nightingale.server import Settings
from nightingale.server.accepting import Acceptor, ConnectionLimits

from ..command import PATIENCE
from ..malformed import SPEECH, VOICES, request
from ..process import descriptors
from ..serving import Running, serving, until

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="Linux tells of a process"),
]

TRICKLE = 0.1  # seconds between two bytes
HEAD_TIMEOUT = 2.0
OPTIONS = ("--head-timeout", str(HEAD_TIMEOUT), "--max-connections-per-address", "24")
BODY = json.dumps({"model": "nightingale", "input": "Hi.", "response_format": "pcm"}).encode()
JSON = {"Content-Type": "application/json"}
FORM = {"Content-Type": "multipart/form-data; boundary=xx"}
FORM_START = (
    b'--xx\r\nContent-Disposition: form-data; name="name"\r\n\r\nEve\r\n'
    b'--xx\r\nContent-Disposition: form-data; name="audio_sample"; filename="a.wav"\r\n\r\n'
)


@pytest.fixture(scope="module")
def server(quick_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(quick_checkpoint, tmp_path_factory.mktemp("voices"), *OPTIONS) as running:
        yield running


def address(server: Running) -> tuple[str, int]:
    host, port = server.url.removeprefix("http://").split(":")
    return host, int(port)


def connect(server: Running) -> socket.socket:
    return socket.create_connection(address(server), PATIENCE)


def held_for(connection: socket.socket, limit: float) -> float:
    """Seconds until the server ends a connection to which a byte is sent again and again."""
    began = time.monotonic()
    connection.settimeout(TRICKLE)
    while time.monotonic() - began < limit:
        try:
            connection.sendall(b"a")
            if connection.recv(1) == b"":
                break
        except TimeoutError:
            continue
        except OSError:
            break
    return time.monotonic() - began


@pytest.mark.parametrize(
    "start",
    [
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
        request("POST", SPEECH, b"{", JSON | {"Content-Length": "900000"}),
        request("POST", VOICES, FORM_START, FORM | {"Content-Length": "15000000"}),
        request("POST", SPEECH, b"", JSON | {"Transfer-Encoding": "chunked"}, stated=False)
        + b"fffff\r\n",
    ],
    ids=["head", "body", "upload", "chunked"],
)
def test_a_client_that_trickles_is_cut_off(server: Running, start: bytes) -> None:
    with connect(server) as connection:
        connection.sendall(start)
        assert held_for(connection, 60) < 30  # a byte every 3 s held it for ever
    until(server.idle)


def test_a_second_head_on_a_connection_has_its_deadline_too(server: Running) -> None:
    with connect(server) as connection:
        connection.sendall(request("GET", "/health"))
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        connection.sendall(b"GET /health HTTP/1.1\r\nX-Slow: ")
        assert held_for(connection, 60) < 30


@pytest.mark.nightly
def test_a_body_that_comes_at_the_required_rate_is_taken(server: Running) -> None:
    """For three times as long as a head may take."""
    body = BODY[:-1] + b" " * 79_999 + b"}"  # 80 kB, 13 kB/s
    with connect(server) as connection:
        connection.sendall(request("POST", SPEECH, b"", JSON | {"Content-Length": str(len(body))}))
        for start in range(0, len(body), 4000):
            connection.sendall(body[start : start + 4000])
            time.sleep(3 * HEAD_TIMEOUT / (len(body) / 4000))
        assert connection.recv(12) == b"HTTP/1.1 200"


def test_connections_of_one_address_are_limited_and_others_are_not(server: Running) -> None:
    opened = descriptors(server.process.pid)
    with ExitStack() as stack:
        held = [stack.enter_context(connect(server)) for _ in range(60)]
        answers = []
        for connection in held[24:]:
            connection.settimeout(20)
            answers.append(connection.recv(65536))
        assert {answer[:12] for answer in answers} == {b"HTTP/1.1 503"}
        assert b"too_many_connections" in answers[0]
        until(lambda: descriptors(server.process.pid) <= opened + 24, 20)
        # Another address of this machine.
        with socket.socket() as other:
            other.bind(("127.0.0.9", 0))
            other.connect(address(server))
            other.settimeout(PATIENCE)
            other.sendall(request("GET", "/health"))
            assert other.recv(12) == b"HTTP/1.1 200"
    until(lambda: descriptors(server.process.pid) <= opened)
    assert server.health()["status"] == "ok"


def spooled(pid: int) -> int:
    """Bytes of files without a name that a process has open, such as uploads."""
    found = 0
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            if os.readlink(entry).endswith("(deleted)"):
                found += entry.stat().st_size
        except OSError:
            continue
    return found


@pytest.mark.nightly
def test_unfinished_uploads_are_held_within_bounds(quick_checkpoint: Path, tmp_path: Path) -> None:
    size = 5_000_000
    start = request("POST", VOICES, FORM_START, FORM | {"Content-Length": str(size + 100_000)})
    options = ("--max-upload", str(size), "--stall-timeout", "600", "--head-timeout", "600")
    with serving(quick_checkpoint, tmp_path, *options) as server, ExitStack() as stack:
        held = [stack.enter_context(connect(server)) for _ in range(20)]

        def send(connection: socket.socket) -> None:
            connection.settimeout(1)
            with suppress(TimeoutError):  # it is not received: there is no slot
                connection.sendall(start + bytes(size))

        with ThreadPoolExecutor(20) as pool:
            list(pool.map(send, held))
        assert size <= spooled(server.process.pid) <= 2 * 1.1 * size  # 20 times as much before
        # Another address gets a slot; what it sends is no recording.
        form = FORM_START + b"RIFF\r\n--xx--\r\n"
        with socket.socket() as other:
            other.bind(("127.0.0.9", 0))
            other.connect(address(server))
            other.settimeout(PATIENCE)
            other.sendall(request("POST", VOICES, form, FORM))
            assert other.recv(12) == b"HTTP/1.1 400"


@pytest.mark.nightly
def test_an_upload_that_waits_for_a_slot_is_not_slow(server: Running) -> None:
    """Two others of its address hold their slots for three times as long as a head may take."""
    long = request("POST", VOICES, FORM_START, FORM | {"Content-Length": "9000000"})
    form = FORM_START + bytes(2_000_000) + b"\r\n--xx--\r\n"
    with connect(server) as first, connect(server) as second, connect(server) as third:
        first.sendall(long)
        second.sendall(long)
        time.sleep(0.5)
        sending = threading.Thread(
            target=third.sendall, args=(request("POST", VOICES, form, FORM),)
        )
        sending.start()
        for _ in range(30):
            for holder in (first, second):
                holder.sendall(bytes(20_000))
            time.sleep(3 * HEAD_TIMEOUT / 30)
        third.settimeout(0.1)
        with pytest.raises(TimeoutError):
            third.recv(1)
        first.close()
        third.settimeout(PATIENCE)
        assert third.recv(12) == b"HTTP/1.1 400"  # it is no recording
        sending.join(PATIENCE)


FEW_FILES = """
import resource, sys
from nightingale import cli
soft = int(sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, soft))
if __name__ == "__main__":
    sys.exit(cli.main(sys.argv[1:]))
"""


@pytest.mark.nightly
def test_a_server_without_files_goes_on_and_logs_little(
    quick_checkpoint: Path, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", FEW_FILES, "40"]
    with serving(quick_checkpoint, tmp_path, command=command) as server:
        expected = server.speech("Hi.").content
        opened = descriptors(server.process.pid)
        with ExitStack() as stack:
            for _ in range(60):
                stack.enter_context(connect(server))
            time.sleep(5)  # in which there were thousands of tracebacks
        log = "".join(server.log)
        assert len(log) < 2000
        assert "Traceback" not in log
        until(lambda: descriptors(server.process.pid) <= opened)
        assert server.health()["status"] == "ok"
        assert server.speech("Hi.").content == expected


class Exhausted(socket.socket):
    """A socket whose connections the system has no files for."""

    tries = 0

    def accept(self) -> tuple[socket.socket, object]:
        self.tries += 1
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def test_where_the_system_has_no_files_it_waits_and_logs_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with Exhausted() as listener, socket.socket() as client:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        client.connect(listener.getsockname())

        async def wait() -> None:
            limits = ConnectionLimits(Settings(), set())
            acceptor = Acceptor(listener, asyncio.Protocol, limits)
            await asyncio.sleep(2.5)
            acceptor.close()

        asyncio.run(wait())
        assert 2 <= listener.tries <= 4
    (record,) = caplog.records
    assert record.message == "no connection can be taken for now: Too many open files"


def first_audio(server: Running) -> float:
    """Seconds to the first byte of speech for a client at another address."""
    began = time.monotonic()
    with socket.socket() as client:
        client.bind(("127.0.0.9", 0))
        client.connect(address(server))
        client.settimeout(PATIENCE)
        client.sendall(request("POST", SPEECH, BODY, JSON))
        assert client.recv(12) == b"HTTP/1.1 200"
    return time.monotonic() - began


@contextmanager
def trickling(server: Running, clients: int) -> Iterator[None]:
    """Clients that open connections and uploads and send a byte now and then, again and again."""
    end = threading.Event()
    starts = [
        b"GET /health HTTP/1.1\r\nX-Slow: ",
        request("POST", SPEECH, b"{", JSON | {"Content-Length": "900000"}),
        request(
            "POST", VOICES, FORM_START + bytes(2_000_000), FORM | {"Content-Length": "9000000"}
        ),
    ]

    def trickle(number: int) -> None:
        while not end.is_set():
            try:
                with connect(server) as connection:
                    connection.settimeout(1)
                    connection.sendall(starts[number % 3])
                    while not end.wait(0.2):
                        connection.sendall(b"a")
            except OSError:
                end.wait(0.1)

    with ThreadPoolExecutor(clients) as pool:
        for number in range(clients):
            pool.submit(trickle, number)
        try:
            yield
        finally:
            end.set()


@pytest.mark.nightly
def test_trickling_clients_do_not_delay_the_first_audio_of_others(server: Running) -> None:
    first_audio(server)
    before = sorted(first_audio(server) for _ in range(5))[2]
    with trickling(server, 40):
        time.sleep(1)
        during = sorted(first_audio(server) for _ in range(5))[2]
    print(f"first audio: {before:.3f} s alone, {during:.3f} s beside 40 trickling clients")
    assert during <= 2 * before + 1
    until(server.idle)
    assert "Traceback" not in "".join(server.log)


def test_a_body_that_stops_being_http_is_answered_once(server: Running) -> None:
    chunked = {"Transfer-Encoding": "chunked"}
    for target in (SPEECH, VOICES, "/nothing"):
        head = request("POST", target, headers=chunked, stated=False)
        with connect(server) as connection:
            connection.sendall(head + b"2\r\n{}\r\nno chunk\r\n")
            answer = read_all(connection)
        assert answer.startswith(b"HTTP/1.1 400 "), target
        assert answer.count(b"HTTP/1.1 ") == 1
    with connect(server) as connection:  # after the answer
        connection.sendall(request("POST", "/nothing", headers=chunked, stated=False))
        answer = connection.recv(65536)
        connection.sendall(b"no chunk\r\n")
        answer += read_all(connection)
    assert answer.startswith(b"HTTP/1.1 404 ")
    assert answer.count(b"HTTP/1.1 ") == 1
    until(server.idle)
    assert "Traceback" not in "".join(server.log)


def read_all(connection: socket.socket) -> bytes:
    answer = b""
    with suppress(ConnectionError):
        while part := connection.recv(65536):
            answer += part
    return answer
