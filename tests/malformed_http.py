"""Requests that a server must refuse whatever their body says: broken HTTP, wrong routes,
strangers and WebSockets that cannot be opened."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

from .malformed import BODY, JSON, KEY, LIVE, SPEECH, UPGRADE, VOICES, Malformed, request, speech

ROUTES = {
    "/health": ("GET",),
    "/metrics": ("GET",),
    "/openapi.json": ("GET", "HEAD"),
    "/v1/models": ("GET",),
    "/v1/models/nightingale": ("GET",),
    SPEECH: ("POST",),
    VOICES: ("GET", "POST"),
    f"{VOICES}/x": ("DELETE",),
}


def lengths() -> Iterator[Malformed]:
    body = json.dumps(BODY).encode()
    for length in ("-1", "+5", "0x10", "1_0", "1.5", "1e1", "five", "\xb2", "5 5", "5,6", "9" * 30):
        head = request("POST", SPEECH, body, JSON | {"Content-Length": length})
        yield Malformed(f"a length of {length!r}", head)
    for length in (0, 1, 10, len(body) - 1):
        head = request("POST", SPEECH, body, JSON | {"Content-Length": str(length)})
        yield Malformed(f"{length} bytes stated of {len(body)}", head)
    twice = JSON | {"Content-Length": "5\r\nContent-Length: 6"}
    yield Malformed("two lengths", request("POST", SPEECH, body, twice))
    for coding in (
        "foo",
        "chunked, foo",
        "foo, chunked",
        "chunked, chunked",
        "xchunked",
        "identity",
    ):
        head = request("POST", SPEECH, body, JSON | {"Transfer-Encoding": coding}, stated=False)
        yield Malformed(f"coding {coding!r}", head)


def chunks() -> Iterator[Malformed]:
    head = request("POST", SPEECH, b"", JSON | {"Transfer-Encoding": "chunked"}, stated=False)
    for body in (
        b"zz\r\n", b"-1\r\n", b"0x5\r\nhello\r\n", b"5\r\nhelloworld\r\n",
        b" 5\r\nhello\r\n0\r\n\r\n", b"\r\n\r\n", b"f" * 21 + b"\r\n", b"1\r\n{\r\n0\r\n\r\n",
        b"2\r\n{}\r\n0\r\n\r\n", b"1\r\n{\n0\n\n", b"0\r\n\r\n", b"0\r\nbad trailer\r\n\r\n",
        b"+2\r\n{}\r\n0\r\n\r\n", b"2_0\r\n{}", b"\xff\r\n",
    ):  # fmt: skip
        yield Malformed(f"the chunks {body!r}", head + body)
    both = request("POST", SPEECH, b"0\r\n\r\n", JSON | {"Transfer-Encoding": "chunked"})
    yield Malformed("a length and chunks", both)


def broken_http() -> Iterator[Malformed]:
    for line in (
        "", "GET", "GET /health", "/health HTTP/1.1", "GET  /health HTTP/1.1", "GET /health HTTP/1",
        "GET /health HTTP/11", "GET /health http/1.1", "GET /health HTTPS/1.1",
        "GET /he alth HTTP/1.1", "G\0T /health HTTP/1.1", "GET\t/health\tHTTP/1.1",
        "GET /health HTTP/1.1 x", "(GET) / HTTP/1.1", "\xffGET /health HTTP/1.1",
        "GET /h\xffalth HTTP/1.1", "GET /health\0 HTTP/1.1", "{}", "EHLO x",
    ):  # fmt: skip
        yield Malformed(
            f"the line {line!r}", f"{line}\r\nHost: localhost\r\n\r\n".encode("latin-1")
        )
    for header in (
        "no colon", ": no name", "a b: c", "X : y", "X\0: y", "X: y\0z", "X: y\rz", "(X): y",
        "X\xff: y", "Host: localhost", "\x01: y", "X@: y", "Content-Length",
    ):  # fmt: skip
        data = f"GET /health HTTP/1.1\r\nHost: localhost\r\n{header}\r\n\r\n".encode("latin-1")
        yield Malformed(f"the header {header!r}", data)
    yield Malformed("the first header folded", b"GET /health HTTP/1.1\r\n Host: localhost\r\n\r\n")
    yield Malformed("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    yield Malformed("TLS", bytes.fromhex("16030100c8010000c40303") + b"\r\n\r\n")
    draw = random.Random(11)
    for size in range(1, 61):
        noise = draw.randbytes(size)
        yield Malformed(f"{size} random bytes", noise + b"\r\n\r\n")
        yield Malformed(
            f"{size} random bytes as a header", b"GET / HTTP/1.1\r\n" + noise + b"\r\n\r\n"
        )


def wrong_routes() -> Iterator[Malformed]:
    for target, allowed in ROUTES.items():
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"):
            if method not in allowed:
                yield Malformed(f"{method} {target}", request(method, target), (405,))
    for target in (
        "*", "x", "//", "/.", "/..", "/%00", "/%ff", "/%", "/%zz", "/v1", "/v2/models",
        "/v1//models", "/V1/models", "/v1/models/whisper-1", "/v1/models/%2e%2e", "/v1/audio",
        "/v1/audio/speech/x", "/v1/audio/transcriptions", "/v1/../v1/models", "/docs/x", "/redoc",
        "/.git/config", "/.env", "/page/", "/page/x", "/page/%00", "/page/../app.py",
        "/page/..%2fapp.py", "/page/%2e%2e/app.py", "/page/..%5capp.py", "/page//etc/passwd",
        "/page/%2fetc%2fpasswd", "/page/" + "a" * 5000, "/page/%c0%ae%c0%ae/app.py", "/index.php",
        "/a%0d%0aX-Injected:%20yes", "http://evil/health", LIVE,
    ):  # fmt: skip
        yield Malformed(f"GET {target[:60]}", request("GET", target), (404,))


def strangers() -> Iterator[Malformed]:
    """Names that the server does not have, other sites' pages, and wrong keys."""
    for host in (
        "", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "0.0.0.0",
        "127.0.0.2", "localhost@evil.example", "evil.example:80", "[::2]", "[", "]", "::1",
        "localhost.", "local host", "localhost,evil.example", "http://localhost", "LOCALHOSTS",
        "127.1", "2130706433", "\xff", ":80",
    ):  # fmt: skip
        yield Malformed(
            f"the host {host!r}", request("GET", "/health", headers={"Host": host}), (400, 421)
        )
    for origin in (
        "null", "http://evil.example", "http://localhost:1", "http://localhost.evil.example",
        "http://[", "http://127.0.0.1", "http://localhost@evil.example", "http://localhost/",
        "localhost", "file://", "http://", "://", "\xff", "http://localhost http://evil.example",
        "http://LOCALHOST", "data:x", "moz-extension://a", "http://evil.example/://localhost",
    ):  # fmt: skip
        for method, target in (("GET", "/health"), ("POST", SPEECH)):
            data = request(method, target, headers={"Origin": origin})
            yield Malformed(f"{method} from {origin!r}", data, (403,))
        data = request("GET", LIVE, headers=UPGRADE | {"Origin": origin})
        yield Malformed(f"a WebSocket from {origin!r}", data, (403,))
    for key in (
        "", "Bearer", "Bearer ", "Bearer x", f"Bearer {KEY[:-1]}", f"Bearer {KEY}x",
        f"Bearer x{KEY}", f"Bearer {KEY.upper()}", f"Basic {KEY}", f"Bearer{KEY}", KEY,
        f"Bearer {KEY} x", "Bearer \xff", "Bearer " + "a" * 9999, f"Bearer: {KEY}", "Bearer null",
        f"Token {KEY}", "Bearer %00",
    ):  # fmt: skip
        for target, methods in ROUTES.items():
            if target not in ("/health", "/openapi.json"):
                data = request(methods[0], target, headers={"Authorization": key})
                yield Malformed(f"{target} with the key {key[:30]!r}", data, (401,))
        data = request("GET", LIVE, headers=UPGRADE | {"Authorization": key})
        yield Malformed(f"a WebSocket with the key {key[:30]!r}", data, (400, 401))


def handshakes() -> Iterator[Malformed]:
    for name in UPGRADE:
        yield Malformed(
            f"a handshake without {name}", request("GET", LIVE, headers=UPGRADE | {name: ""})
        )
    for name, value in (
        ("Sec-WebSocket-Version", "12"), ("Sec-WebSocket-Version", "x"),
        ("Sec-WebSocket-Version", "-1"), ("Sec-WebSocket-Key", "short"),
        ("Sec-WebSocket-Key", "!" * 24), ("Sec-WebSocket-Key", "a" * 9999), ("Upgrade", "h2c"),
        ("Upgrade", "websocket, h2c"), ("Connection", "close"), ("Connection", "x"),
        ("Sec-WebSocket-Extensions", "permessage-deflate; x=\0"), ("Host", "evil.example"),
    ):  # fmt: skip
        data = request("GET", LIVE, headers=UPGRADE | {name: value})
        yield Malformed(f"a handshake with {name} {value[:20]!r}", data)
    for target in (SPEECH, "/", "/health", "/v1/audio/speech/live/x", "/x", f"{LIVE}%00"):
        yield Malformed(f"a handshake at {target}", request("GET", target, headers=UPGRADE))
    for body in (b"", b"{}"):
        posted = request("POST", LIVE, body, headers=UPGRADE)
        yield Malformed(f"a handshake by POST with {body!r}", posted, (400, 405))


def below_bodies() -> Iterator[Malformed]:
    families = (lengths, chunks, broken_http, wrong_routes, strangers, handshakes)
    for family in families:
        yield from family()


def broken_off() -> Iterator[bytes]:
    """Requests whose client goes away before they are whole."""
    body = json.dumps(BODY).encode()
    longer = speech(body, **{"Content-Length": "500"})
    for end in range(0, len(longer), 7):
        yield longer[:end]
    head = request("POST", SPEECH, b"", JSON | {"Transfer-Encoding": "chunked"}, stated=False)
    for part in (
        b"5",
        b"5\r\n",
        b"5\r\nhel",
        b"5\r\nhello\r\n",
        b"ffffff\r\n{",
        b"0\r\n",
        b"0\r\nX: y\r\n",
    ):
        yield head + part
    start = b'--xx\r\nContent-Disposition: form-data; name="name"\r\n\r\nEve\r\n--xx\r\n'
    kind = {"Content-Type": "multipart/form-data; boundary=xx", "Content-Length": "5000"}
    for end in range(0, len(start), 9):
        yield request("POST", VOICES, start[:end], kind)
