"""Requests that a server must refuse, by family. The same ones every time."""

from __future__ import annotations

import io
import json
import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

import numpy as np
import soundfile

from .recordings import speech as recording
from .recordings import wav_bytes

KEY = "a-key-for-tests"
SPEECH, VOICES, LIVE = "/v1/audio/speech", "/v1/audio/voices", "/v1/audio/speech/live"
MOST_CHARACTERS = 100
MOST_JSON = 1_000_000  # bytes
BODY = {"model": "nightingale", "input": "Hi.", "response_format": "pcm"}
JSON = {"Content-Type": "application/json"}
REFUSED = tuple(range(400, 500))
# What an upgrade to a WebSocket takes.
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


@dataclass(frozen=True)
class Malformed:
    """The bytes of a request, and the statuses that refuse it."""

    name: str
    data: bytes
    statuses: tuple[int, ...] = REFUSED


def request(
    method: str,
    target: str,
    body: bytes = b"",
    headers: dict[str, str] | None = None,
    stated: bool = True,
) -> bytes:
    """A request with the key. Headers given replace what is there by itself, as "" leaves it out;
    `stated`: its length."""
    own = {"Host": "localhost", "Connection": "close", "Authorization": f"Bearer {KEY}"}
    if stated:
        own["Content-Length"] = str(len(body))
    lines = [f"{name}: {value}" for name, value in (own | (headers or {})).items() if value]
    head = "\r\n".join([f"{method} {target} HTTP/1.1", *lines, "", ""])
    return head.encode("latin-1") + body


def speech(body: bytes, **headers: str) -> bytes:
    return request("POST", SPEECH, body, JSON | headers)


def upload(name: bytes, sample: bytes) -> bytes:
    parts = [("name", name), ('audio_sample"; filename="a.wav', sample)]
    return multipart(parts)


def multipart(parts: list[tuple[str, bytes]], path: str = VOICES) -> bytes:
    """A form; what follows a field's name can close its quotes and go on."""
    body = b"".join(
        b'--xx\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % (name.encode(), value)
        for name, value in parts
    )
    return form(body + b"--xx--\r\n", path=path)


def form(
    body: bytes, content_type: str = "multipart/form-data; boundary=xx", path: str = VOICES
) -> bytes:
    return request("POST", path, body, {"Content-Type": content_type})


def broken_json() -> Iterator[Malformed]:
    whole = json.dumps(BODY | {"voice": {"id": "default"}, "speed": 1.5, "seed": 7}).encode()
    for end in range(len(whole)):
        yield Malformed(f"JSON cut after {end} bytes", speech(whole[:end]))
    for place, byte in enumerate(whole):
        if byte in b'{}":,':
            changed = whole[:place] + b"~" + whole[place + 1 :]
            yield Malformed(f"JSON with ~ at {place}", speech(changed))
    for text in (
        "null", "true", "5", '"text"', "[]", "{}", "[{}]", "{'model': 'nightingale'}", "\ufeff",
        "\ufeff\ufeff{}", "undefined", "{,}", '{"a": 1,}', '{"a": 01}', '{"a": +1}', '{"a": .5}',
        '{"a": 0x10}', '{"a": "\\x41"}', '{"a": "\\ud8"}', '{"a": "\n"}', "// {}", "{}{}", "{} x",
    ):  # fmt: skip
        yield Malformed(f"as JSON {text!r}", speech(text.encode()))
    for depth in (100, 10_000, 100_000):
        for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
            yield Malformed(f"{depth} deep, open", speech(opening * depth))
            deep = opening * depth + b"1" + closing * depth
            yield Malformed(f"{depth} deep", speech(deep))
            yield Malformed(f"{depth} deep input", speech(b'{"model":"tts-1","input":%s}' % deep))
    for bad in (b"\xff", b"\xc3(", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\x80"):
        yield Malformed(f"{bad!r} in a text", speech(json.dumps(BODY).encode().replace(b"Hi", bad)))
        yield Malformed(f"{bad!r} before JSON", speech(bad + json.dumps(BODY).encode()))


def binary() -> Iterator[Malformed]:
    draw = random.Random(9)
    for size in range(1, 61):
        yield Malformed(f"{size} random bytes as JSON", speech(draw.randbytes(size)))
        yield Malformed(f"{size} random bytes as a form", form(draw.randbytes(size)))


def content_types() -> Iterator[Malformed]:
    body = json.dumps(BODY).encode()
    # What programs send by themselves, and JSON is taken as.
    usual = ("", "text/plain", "application/octet-stream", "application/x-www-form-urlencoded")
    for kind in (
        *usual, "text/json", "application/xml", "audio/wav", "multipart/form-data",
        "multipart/form-data; boundary", "json", "/", "a/b/c", "application/json-patch+xml",
        "text/html; charset=utf-8", "image/*",
    ):  # fmt: skip
        if kind not in usual:
            yield Malformed(
                f"speech as {kind!r}", request("POST", SPEECH, body, {"Content-Type": kind})
            )
        yield Malformed(f"upload as {kind!r}", form(body, kind))
    yield Malformed("gzip", speech(b"\x1f\x8b\x08\0" + body, **{"Content-Encoding": "gzip"}))


def wrong_values() -> Iterator[Malformed]:
    no_text = ["5", "-1.5", "true", "[]", "{}", '["a"]', '{"a": 1}', '"\\ud800"', '"a\\udfff"']
    no_number = ["true", '""', '"fast"', '"1 2"', '"0x1"', "[]", "{}", "[1]", '{"a": 1}', '"NaN"']
    no_number += [
        '"Infinity"',
        "NaN",
        "Infinity",
        "-Infinity",
        "1e999",
        "-1e999",
        "-1",
        "-1e308",
        "1e308",
    ]
    no_number += ["1" + "0" * 400, "1" + "0" * 5000, "-1" + "0" * 5000, "1e", "--1"]
    long = json.dumps("a" * 201)
    wrong = {
        "model": [*no_text, '""', '"gpt-9"', '"nightingale "', '"../nightingale"', long],
        "input": [*no_text, "null", '""', '" "', '"\\n\\t"', json.dumps("a" * 101)],
        "instructions": no_text[:-2],
        "voice": [*no_text, '""', '{"id": 5}', '{"id": null}', '{"id": []}', '{"name": "a"}', long],
        "response_format": [*no_text, '""', '"oga"', '"MP3"', '"wav "', '"pcm\\u0000"'],
        "stream_format": [*no_text, '""', '"SSE"', '"wav"', '"audio\\u0000"'],
        "language": [*no_text, '""', '"xx"', '"e n"', '"en\\u0000"', '"../en"', long],
        "speed": [*no_number, "0", "0.24", "4.01"],
        "seed": [*no_number, "1.5", "1e-3", str(2**64)],
        "temperature": [*no_number, "5.01"],
        "cfg_weight": [*no_number, "10.01"],
        "exaggeration": [*no_number, "10.01"],
    }
    for field, values in wrong.items():
        for value in values:
            # Of a name that comes twice the last is taken.
            body = f'{{"model": "nightingale", "input": "Hi.", "{field}": {value}}}'
            yield Malformed(f"{field} {value[:20]}", speech(body.encode()))


def too_large() -> Iterator[Malformed]:
    for characters in (MOST_CHARACTERS + 1, 10_000, 900_000):
        body = json.dumps(BODY | {"input": "a" * characters}).encode()
        yield Malformed(f"{characters} characters", speech(body), (400,))
    for length in (MOST_JSON + 1, 2**31, 2**63):
        head = request("POST", SPEECH, b"", JSON | {"Content-Length": str(length)})
        yield Malformed(f"a length of {length}", head, (413,))
    chunked = request("POST", SPEECH, b"", JSON | {"Transfer-Encoding": "chunked"}, stated=False)
    # It is refused with its last byte: more could not be sent.
    chunk = b"%x\r\n%s" % (MOST_JSON + 1, b" " * (MOST_JSON + 1))
    yield Malformed("a chunk beyond the limit", chunked + chunk, (413,))
    yield Malformed("chunks beyond the limit", chunked + b"1\r\n \r\n" + chunk, (413,))


def recordings() -> Iterator[Malformed]:
    """Samples of which no voice can be made."""
    draw = random.Random(10)
    good = wav_bytes(recording(2, 24000), 24000)
    samples = {f"a WAV cut after {end} bytes": good[:end] for end in range(0, 60, 4)}
    for magic in (b"", b"RIFF", b"fLaC", b"OggS", b"ID3", b"\x1aE\xdf\xa3", b"PK\x03\x04"):
        for size in (4, 400, 4000):
            samples[f"{magic!r} and {size} random bytes"] = magic + draw.randbytes(size)
    samples["text"] = b"This is no recording. " * 100
    samples["too short"] = wav_bytes(recording(0.5, 24000), 24000)
    samples["silence"] = wav_bytes(np.zeros((48000, 1)), 24000)
    for value in (np.nan, np.inf, -np.inf, 1e30):
        filled = np.full((48000, 1), value, np.float32)
        samples[f"samples of {value}"] = wav_bytes(filled, 24000, subtype="FLOAT")
    buffer = io.BytesIO()
    soundfile.write(buffer, np.zeros((48000 * 60, 2), np.int16), 48000, format="FLAC")
    samples["a minute in few bytes"] = buffer.getvalue()
    for rate, channels, bits in (
        (0, 1, 16), (2**32 - 1, 1, 16), (24000, 0, 16), (24000, 65535, 16), (24000, 1, 0),
        (24000, 1, 7), (3999, 1, 16), (384001, 1, 16),
    ):  # fmt: skip
        most = 2**32 - 1
        header = struct.pack("<4sI8sI", b"RIFF", most, b"WAVEfmt ", 16)
        header += struct.pack("<HHIIHH4sI", 1, channels, rate, 0, 0, bits, b"data", most)
        samples[f"a WAV of {rate} Hz, {channels} channels, {bits} bits"] = header + b"\1" * 9999
    for number, (name, sample) in enumerate(samples.items()):
        yield Malformed(name, upload(b"Eve %d" % number, sample), (400,))


def forms() -> Iterator[Malformed]:
    good = wav_bytes(recording(2, 24000), 24000)
    file = 'audio_sample"; filename="a.wav'
    for name, parts in {
        "nothing": [],
        "no sample": [("name", b"Eve")],
        "no name": [(file, good)],
        "an empty name": [("name", b""), (file, good)],
        "a sample that is no file": [("name", b"Eve"), ("audio_sample", good)],
        "a name that is a file": [('name"; filename="a', b"Eve"), (file, good)],
        "two samples": [("name", b"Eve"), (file, b"one"), (file, b"two")],
        "another name for the sample": [("name", b"Eve"), ('file"; filename="a.wav', good)],
        "names in another case": [("Name", b"Eve"), ('AUDIO_SAMPLE"; filename="a', good)],
        "a name beyond Unicode": [("name", b"\xff/\xfe"), (file, good)],
        "two names": [("name", b"Eve"), ("name", b"../Eve"), (file, good)],
        "2,000 fields": [(f"field {number}", b"x") for number in range(2000)],
        "2,000 files": [(f'{number}"; filename="a', b"x") for number in range(2000)],
        "a field of 2 MB": [("name", b"a" * 2_000_000), (file, good)],
    }.items():
        yield Malformed(f"a form with {name}", multipart(parts))
    whole = b'--xx\r\nContent-Disposition: form-data; name="name"\r\n\r\nEve\r\n--xx--\r\n'
    for body in (
        b"", b"--xx", b"--xx--", b"--xx--\r\n", whole[:30], whole[:60], whole[:-8], b"\r\n" * 100,
        whole.replace(b"xx", b"yy"), whole.replace(b"\r\n", b"\n"),
        whole.replace(b": form", b" form"), whole.replace(b"Content-Disposition", b"X"),
        whole.replace(b"name", b"\0\0\0\0"), whole.replace(b'"name"', b'"name'),
        whole.replace(b"Content-", b"C\xffntent-"),
        whole.replace(b"\r\n\r\n", b"\r\n" + b"X-Y: z\r\n" * 10_000 + b"\r\n"), whole * 3,
    ):  # fmt: skip
        yield Malformed(f"the form {body[:60]!r}", form(body))
    for kind in (
        "boundary=",
        "boundary=" + "x" * 5000,
        'boundary="',
        "charset=utf-16",
        "boundary=\xff",
    ):
        yield Malformed(f"a form with {kind[:20]}", form(whole, f"multipart/form-data; {kind}"))


def names_of_no_voice(outside: str) -> list[str]:
    """Names that no voice may have. `outside`: a voice file beside the voice folder, without its
    suffix; as a path from there and from the root."""
    from_folder = f"../{outside.rpartition('/')[2]}"
    return [
        from_folder, outside, f"{from_folder}.safetensors", f"{outside}.safetensors",
        f"./{from_folder}", f"x/../{from_folder}", from_folder.replace("/", "\\"),
        from_folder.replace("/", "%2f"), from_folder.replace("/", "%252f"),
        from_folder.replace("..", "%2e%2e"), from_folder.replace("../", "....//"),
        from_folder.replace("/", "\uff0f"), from_folder.replace("/", "\u2215"),
        from_folder.replace("/", "\u29f8"), from_folder.replace("..", "\u2025"),
        from_folder.replace("..", "\u2024\u2024"), f"{from_folder}\0", f"\0{from_folder}",
        f"file://{outside}", "/" * 50 + outside, "link", ".", "..", "...", "/", "\\", "/etc/passwd",
        "/dev/null", "/proc/self/mem", "C:\\boot.ini", "C:x", "\\\\server\\share", "~", "~root",
        "$HOME", "`id`", "$(id)", "a;b", "a|b", "a<b", "a>b", "a*b", "a?b", 'a"b', "a:b", "a\0b",
        "a\nb", "a\r\nX-Injected: yes", "a\tb", "a\x7fb", "a\x1bb", " a", "a ", "a.", ".a", "-a",
        "_a", "CON", "con", "nul.txt", "COM1", "lpt9", "COM\u00b9", "AUX.safetensors", "\u202ea",
        "a\u200bb", "a\u00adb", "a\ufeffb", "\u0301", "\U0001f600", "\ufffc", "\ue000", "a" * 65,
        "a" * 190, "\u00e9" * 150, "\U00020000" * 60, "a/" * 60 + "b",
    ]  # fmt: skip


def voice_names(outside: str) -> Iterator[Malformed]:
    sample = wav_bytes(recording(2, 24000), 24000)
    for name in names_of_no_voice(outside):
        for voice in (name, {"id": name}):
            body = json.dumps(BODY | {"voice": voice}).encode()
            yield Malformed(f"speech with {voice!r}", speech(body), (400,))
        yield Malformed(f"upload of {name!r}", upload(name.encode(), sample), (400, 409))
        target = f"{VOICES}/{quote(name, safe='')}"
        yield Malformed(f"deletion of {name!r}", request("DELETE", target), (404,))
        if name.isascii() and name.isprintable() and " " not in name:
            bare = request("DELETE", f"{VOICES}/{name}")
            yield Malformed(f"deletion of {name!r} as it is", bare, (400, 404, 405))


def all_bodies(outside: str) -> Iterator[Malformed]:
    families = (
        broken_json, binary, content_types, wrong_values, too_large, recordings, forms,
    )  # fmt: skip
    for family in families:
        yield from family()
    yield from voice_names(outside)
