"""What the attacker's clients do, one act at a time; each ends by itself within seconds."""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection, connect

from ..malformed import (
    JSON,
    LIVE,
    SPEECH,
    VOICES,
    Malformed,
    binary,
    broken_json,
    multipart,
    request,
    upload,
)
from ..malformed_http import below_bodies, broken_off
from ..recordings import speech as recording
from ..recordings import wav_bytes

PATIENCE = 60.0  # seconds for an answer
FORM = {"Content-Type": "multipart/form-data; boundary=xx"}
LONG = "This is one sentence of many that are to be said. " * 100
FORMATS = ("pcm", "mp3", "opus", "wav", "flac", "aac")
PAUSES = "Hi." + "[pause 30s]" * 100
CONVERSIONS = "/v1/audio/conversions"
PATHS = ("/", "/health", "/metrics", "/v1/models", VOICES, "/openapi.json", "/page/page.js")


@dataclass(frozen=True)
class Target:
    """Where the server listens."""

    host: str
    port: int

    def connect(self, small: bool = False) -> socket.socket:
        """small: the system takes few bytes for it, so that not to read is soon felt."""
        connection = socket.socket()
        connection.settimeout(PATIENCE)
        if small:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        try:
            connection.connect((self.host, self.port))
        except OSError:
            connection.close()
            raise
        return connection

    def exchange(self, data: bytes) -> int:
        """The status that a request is answered with; 0 for none."""
        with self.connect() as connection:
            try:
                connection.sendall(data)
                answer = connection.recv(65536)
                while connection.recv(65536):
                    pass
            except TimeoutError:
                raise
            except OSError:  # it was cut off while it sent or read
                return 0
        return status_of(answer)

    def open_socket(self) -> ClientConnection:
        url = f"ws://{self.host}:{self.port}{LIVE}"
        times = {"open_timeout": PATIENCE, "close_timeout": 1}
        try:
            return connect(url, max_size=None, proxy=None, logger=_unheard(), **times)
        except AssertionError as error:  # the library's, where the server hangs up meanwhile
            raise ConnectionError(f"no connection to {url}") from error


@functools.cache
def _unheard() -> logging.Logger:
    """The library logs a traceback wherever a connection breaks."""
    logger = logging.getLogger("tests.attack.unheard")
    logger.disabled = True
    return logger


def status_of(answer: bytes) -> int:
    words = answer[:20].split(b" ")
    return int(words[1]) if len(words) > 1 and words[1].isdigit() else 0


def speech_request(text: str, **settings: object) -> bytes:
    body = {"model": "nightingale", "input": text, "response_format": "pcm", **settings}
    return request("POST", SPEECH, json.dumps(body).encode(), JSON)


Act = Callable[[Target, Random], int]  # gives the status of an answer, or 0


def trickle(target: Target, draw: Random) -> int:
    """The start of a request, then a byte now and then until the client loses patience."""
    start = draw.choice(
        [
            b"GET /health HTTP/1.1\r\nX-Slow: ",
            request("POST", SPEECH, b"{", JSON | {"Content-Length": "90000"}),
            request("POST", VOICES, b"--xx\r\n", FORM | {"Content-Length": "2000000"}),
            b"",
        ]
    )
    end = time.monotonic() + draw.uniform(0.5, 6)
    with target.connect() as connection:
        connection.settimeout(draw.uniform(0.05, 0.5))
        try:
            connection.sendall(start)
            while time.monotonic() < end:
                connection.sendall(b"a")
                try:
                    if not connection.recv(4096):
                        break
                except TimeoutError:
                    continue
        except OSError:
            pass  # it was cut off, as it should be
    return 0


@functools.cache
def _malformed() -> list[Malformed]:
    return [*broken_json(), *binary(), *below_bodies()]


@functools.cache
def _broken_off() -> list[bytes]:
    return list(broken_off())


def broken(target: Target, draw: Random) -> int:
    """A malformed request, or a good one with some bytes changed."""
    if draw.random() < 0.6:
        return target.exchange(draw.choice(_malformed()).data)
    data = bytearray(speech_request("Hi."))
    for _ in range(draw.randint(1, 8)):
        data[draw.randrange(len(data))] = draw.randrange(256)
    with target.connect() as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)  # where the length has grown, no more comes
            return status_of(connection.recv(65536))
        except ConnectionError:
            return 0


def breaks_off(target: Target, draw: Random) -> int:
    with target.connect() as connection:
        connection.sendall(draw.choice(_broken_off()))
        if draw.random() < 0.5:
            _reset(connection)
    return 0


def huge(target: Target, draw: Random) -> int:
    """More than is allowed: text, body, head, form, or a body without an end."""
    size = draw.choice((70_000, 2_000_000, 10_000_000))
    chunked = request("POST", SPEECH, b"", JSON | {"Transfer-Encoding": "chunked"}, stated=False)
    return target.exchange(
        draw.choice(
            [
                speech_request("a" * draw.choice((10_001, 900_000))),
                request("POST", SPEECH, b"{" + b" " * size, JSON),
                request("GET", "/health", headers={"X-Large": "a" * size}),
                request("GET", "/" + "a" * size),
                upload(b"Eve", bytes(size)),
                chunked + b"fffff\r\n" * 20 + bytes(size),
                request("POST", SPEECH, b"[" * min(size, 900_000), JSON),
            ]
        )
    )


def cancels(target: Target, draw: Random) -> int:
    """A long text, of which some is heard."""
    text = draw.choice((LONG, PAUSES, "a" * 9999, "\u65e5\u672c\u8a9e" * 3000))
    settings = {"response_format": draw.choice(FORMATS)}
    settings |= {"stream_format": draw.choice(("audio", "sse"))}
    with target.connect(small=draw.random() < 0.3) as connection:
        connection.sendall(speech_request(text, **settings))
        connection.settimeout(draw.uniform(0.05, 3))
        status = 0
        try:
            status = status_of(connection.recv(4096))
            for _ in range(draw.randint(0, 20)):
                connection.recv(4096)
        except OSError:
            pass
        if draw.random() < 0.5:
            _reset(connection)
    return status


def reads_nothing(target: Target, draw: Random) -> int:
    with target.connect(small=True) as connection:
        connection.sendall(speech_request(LONG))
        time.sleep(draw.uniform(0.5, 5))
    return 0


def live(target: Target, draw: Random) -> int:
    """A WebSocket with messages in any order, some of them nonsense, left in any way."""
    try:
        with target.open_socket() as client:
            for _ in range(draw.randint(1, 25)):
                client.send(draw.choice(_messages(draw)))
                if draw.random() < 0.3:
                    _hear(client, draw.uniform(0.01, 0.5))
            if draw.random() < 0.5:
                client.socket.shutdown(socket.SHUT_RDWR)
    except (WebSocketException, OSError):
        pass  # it was closed, or there were too many connections
    return 0


def _messages(draw: Random) -> list[str | bytes]:
    text = draw.choice(
        ("Hi. ", "a", LONG, "\u3053\u3093\u306b\u3061\u306f\u3002", "[pause 9s]", "")
    )
    known = [{"type": "text", "text": text}, {"type": "cancel"}, {"type": "end"}]
    known += [{"type": "flush"}, {"type": "begin"}, {"type": "begin", "language": "fr"}]
    known += [{"type": "begin", "response_format": draw.choice(("mp3", "x"))}, {"type": "no"}]
    return [*map(json.dumps, known), "{", "", draw.randbytes(40), "a" * 200_000]


def _hear(client: ClientConnection, seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        client.recv(seconds)


def pings(target: Target, draw: Random) -> int:
    """Many pings, whose answers are not read."""
    with target.connect(small=True) as connection:
        upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
        key = {"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
        connection.sendall(request("GET", LIVE, headers=upgrade | key))
        connection.settimeout(2)
        try:
            if connection.recv(12) == b"HTTP/1.1 101":
                for _ in range(draw.randint(1, 200)):
                    connection.sendall((b"\x89\xfd" + bytes(4) + bytes(125)) * 100)
        except OSError:
            pass  # it is not read any more, or cut off
    return 0


def uploads(target: Target, draw: Random) -> int:
    """A recording, or what is none, under one of a few names, and perhaps its deletion."""
    name = draw.choice(("Ada", "Bea", "Cleo", "ada"))
    sound = draw.choice((_sample(), _sample()[: draw.randint(0, 60_000)], draw.randbytes(9000)))
    status = target.exchange(upload(name.encode(), sound))
    if draw.random() < 0.7:
        return target.exchange(request("DELETE", f"{VOICES}/{name}"))
    return status


def converts(target: Target, draw: Random) -> int:
    """A recording, or what is none, in another format or voice, heard to the end or not."""
    sound = draw.choice((_sample(), _sample(), _sample()[: draw.randint(0, 60_000)]))
    data = conversion_request(
        sound,
        response_format=draw.choice(("pcm", "mp3", "opus")),
        voice=draw.choice(("default", "default", "Ada")),
    )
    if draw.random() < 0.5:
        return target.exchange(data)
    with target.connect(small=True) as connection:
        connection.sendall(data)
        time.sleep(draw.uniform(0.05, 3))
    return 0


def conversion_request(sound: bytes, **fields: str) -> bytes:
    parts = [(name, value.encode()) for name, value in fields.items()]
    return multipart([*parts, ('file"; filename="a.wav', sound)], CONVERSIONS)


@functools.cache
def _sample() -> bytes:
    return wav_bytes(recording(2, 24000), 24000)


def uses_a_voice(target: Target, draw: Random) -> int:
    """One that others save and delete at the same time."""
    return target.exchange(speech_request("Hi.", voice=draw.choice(("Ada", "Bea", "Cleo"))))


def looks_around(target: Target, draw: Random) -> int:
    return target.exchange(request("GET", draw.choice(PATHS)))


def idles(target: Target, draw: Random) -> int:
    """Several connections on which nothing comes."""
    held = [target.connect() for _ in range(draw.randint(1, 30))]
    time.sleep(draw.uniform(0.1, 3))
    for connection in held:
        connection.close()
    return 0


def _reset(connection: socket.socket) -> None:
    """Closing then sends a reset in place of the end."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def succeed(target: Target, draw: Random) -> int:
    """What the acts ask for in many ways, once as it should be, so that whatever is loaded when it
    is first needed has been."""
    target.exchange(upload(b"Zoe", _sample()))
    target.exchange(speech_request("Hi.", voice="Zoe"))
    for kind in FORMATS:
        target.exchange(speech_request("Hi.", response_format=kind))
    target.exchange(conversion_request(_sample(), voice="Zoe"))
    return target.exchange(request("DELETE", f"{VOICES}/Zoe"))


ACTS: tuple[Act, ...] = (
    trickle, broken, broken, breaks_off, huge, cancels, cancels, reads_nothing, live, live, pings,
    uploads, uses_a_voice, converts, looks_around, idles,
)  # fmt: skip
