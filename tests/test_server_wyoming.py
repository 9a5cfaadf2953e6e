"""`nightingale serve --wyoming`, as the PyPI package's client speaks with it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nightingale
from nightingale.voice_folder import VoiceFolder

pytest.importorskip("wyoming", reason="pip install 'nightingale-tts[wyoming]'")

from wyoming.client import AsyncTcpClient
from wyoming.event import Event
from wyoming.info import Describe, Info
from wyoming.tts import (
    Synthesize,
    SynthesizeChunk,
    SynthesizeStart,
    SynthesizeStop,
    SynthesizeVoice,
)

from nightingale.server.wyoming import announced_languages

from .command import PATIENCE, run, start
from .serving import Running, pcm, serving, until

pytestmark = pytest.mark.slow

GAP = np.zeros(round(0.2 * 24000), np.float32)
ENGLISH = SynthesizeVoice(language="en-US")


@pytest.fixture(scope="module")
def server(quick_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("voices")
    voice = nightingale.Voice.load(quick_checkpoint / "conds.pt").with_exaggeration(1.5)
    VoiceFolder(folder).save("Anna", voice)
    options = ("--wyoming", "127.0.0.1:0", "--max-characters", "300")
    with serving(quick_checkpoint, folder, *options) as running:
        yield running


def port(server: Running) -> int:
    return int(re.search(r"Wyoming at tcp://127\.0\.0\.1:(\d+)", "".join(server.log))[1])


def conversation(server: Running, *events: Any, last: str) -> list[Event]:
    """Sends events; what comes back up to one of the type `last`."""

    async def talk() -> list[Event]:
        async with AsyncTcpClient("127.0.0.1", port(server)) as client:
            for event in events:
                await client.write_event(event.event())
            found: list[Event] = []
            while not found or found[-1].type != last:
                event = await asyncio.wait_for(client.read_event(), PATIENCE)
                assert event is not None, found
                found.append(event)
            return found

    return asyncio.run(talk())


def sound(events: list[Event]) -> bytes:
    for event in events:
        if event.type == "audio-chunk":
            assert (event.data["rate"], event.data["width"], event.data["channels"]) == (
                24000,
                2,
                1,
            )
    return b"".join(event.payload for event in events if event.type == "audio-chunk")


def said(tts: nightingale.TTS, text: str, **settings: Any) -> np.ndarray:
    return np.concatenate([chunk.samples for chunk in tts.stream(text, **settings)])


def test_voices_and_languages_are_announced(server: Running, quick_tts: nightingale.TTS) -> None:
    (told,) = conversation(server, Describe(), last="info")
    (program,) = Info.from_event(told).tts
    assert program.name == "nightingale"
    assert program.supports_synthesize_streaming
    assert [voice.name for voice in program.voices] == ["default", "Anna"]
    assert program.voices[0].languages == list(quick_tts.languages)


@pytest.mark.parametrize(
    ("voices", "announced"),
    [
        (["default", "Anna"], {"default": ["en", "es", "fr"], "Anna": ["en", "es", "fr"]}),
        (["default", "ef_dora"], {"default": ["en", "es", "fr"], "ef_dora": ["es"]}),
        (["af_heart", "ef_dora"], {"af_heart": ["en", "fr"], "ef_dora": ["es", "fr"]}),
        (["pf_dora"], {"pf_dora": ["en", "es", "fr"]}),
    ],
)
def test_native_voices_are_announced_for_their_language(
    voices: list[str], announced: dict[str, list[str]]
) -> None:
    assert announced_languages(voices, ["en", "es", "fr"]) == announced


def test_a_text_is_spoken(server: Running, quick_tts: nightingale.TTS) -> None:
    events = conversation(server, Synthesize("Hello there.", ENGLISH), last="audio-stop")
    assert [event.type for event in events if event.type != "audio-chunk"] == [
        "audio-start",
        "audio-stop",
    ]
    expected = said(quick_tts, "Hello there.")
    assert sound(events) == pcm(expected)
    assert events[-1].data["timestamp"] == 1000 * len(expected) // 24000


def test_a_voice_is_chosen_by_name(
    server: Running, quick_tts: nightingale.TTS, quick_checkpoint: Path
) -> None:
    anna = nightingale.Voice.load(quick_checkpoint / "conds.pt").with_exaggeration(1.5)
    text = "Where is the station? I would like to go there."
    request = Synthesize(text, SynthesizeVoice(name="anna"))
    events = conversation(server, request, last="audio-stop")
    assert sound(events) == pcm(said(quick_tts, text, voice=anna))


def test_text_is_spoken_as_it_comes(server: Running, quick_tts: nightingale.TTS) -> None:
    """As Home Assistant sends it, with the whole text once more for servers that cannot stream."""
    parts = ("The first one ", "ends here. The second is not com", "plete yet.")

    async def talk() -> tuple[list[Event], list[Event]]:
        async with AsyncTcpClient("127.0.0.1", port(server)) as client:

            async def read(last: str) -> list[Event]:
                found: list[Event] = []
                while not found or found[-1].type != last:
                    found.append(await asyncio.wait_for(client.read_event(), PATIENCE))
                return found

            await client.write_event(SynthesizeStart(ENGLISH).event())
            for part in parts[:2]:
                await client.write_event(SynthesizeChunk(part).event())
            early = await read("audio-chunk")  # before the text is complete
            await client.write_event(SynthesizeChunk(parts[2]).event())
            await client.write_event(Synthesize("".join(parts)).event())
            await client.write_event(SynthesizeStop().event())
            return early, await read("synthesize-stopped")

    early, rest = asyncio.run(talk())
    types = [event.type for event in early + rest if event.type != "audio-chunk"]
    assert types == ["audio-start", "audio-stop", "synthesize-stopped"]
    first, second = (
        said(quick_tts, t) for t in ("The first one ends here.", "The second is not complete yet.")
    )
    assert sound(early + rest) == pcm(np.concatenate([first, GAP, second]))


def test_leaving_ends_the_work(server: Running) -> None:
    long = "This will not be heard to its end. " * 8

    async def leave() -> None:
        async with AsyncTcpClient("127.0.0.1", port(server)) as client:
            await client.write_event(Synthesize(long, ENGLISH).event())
            await asyncio.wait_for(client.read_event(), PATIENCE)
            assert server.health()["running"] == 1

    asyncio.run(leave())
    until(server.idle)


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (Synthesize("Hi.", SynthesizeVoice(name="nobody")), "there is no voice 'nobody'"),
        (Synthesize("Hi.", SynthesizeVoice(language="tlh")), "unknown language 'tlh'"),
        (Synthesize("a" * 301), "text has 301 characters; 300 are the most"),
        (Synthesize(" "), "there is no text to speak"),
        (Synthesize("<speak>Hi.", text_format="ssml"), "SSML"),
        (SynthesizeChunk("Hi."), "`synthesize-start` comes before"),
        (SynthesizeStart(SynthesizeVoice(name="nobody")), "there is no voice 'nobody'"),
    ],
)
def test_what_is_wrong_is_told(server: Running, event: Any, message: str) -> None:
    (told,) = conversation(server, event, last="error")
    assert message.lower() in told.data["text"].lower()


def test_a_refused_text_is_dropped_and_the_next_is_spoken(
    server: Running, quick_tts: nightingale.TTS
) -> None:
    events = conversation(
        server,
        SynthesizeStart(SynthesizeVoice(name="nobody")),
        SynthesizeChunk("Who says this? Nobody."),
        SynthesizeStop(),
        Synthesize("Hi.", ENGLISH),
        last="audio-stop",
    )
    assert events[0].type == "error"
    assert sound(events) == pcm(said(quick_tts, "Hi."))


@pytest.mark.parametrize(
    "data",
    [b"5\n", b"{}\n", b"not JSON\n", b'{"type": "synthesize"}\n', b'{"type": 5, "data": 6}\n',
     b'{"type": "describe", "payload_length": 99999999999}\n', b"x" * 2_000_000],
)  # fmt: skip
def test_what_is_no_event_harms_nobody(server: Running, data: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port(server)), timeout=PATIENCE) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            answer = connection.recv(65536)
        except OSError:
            answer = b""  # the server has hung up before all was sent
    assert answer == b"" or json.loads(answer.split(b"\n")[0])["type"] == "error"
    assert conversation(server, Describe(), last="info")
    assert "Traceback" not in "".join(server.log)
    assert "never retrieved" not in "".join(server.log)


def test_without_http_it_speaks_wyoming_alone(
    quick_checkpoint: Path, quick_tts: nightingale.TTS, tmp_path: Path
) -> None:
    words = ("serve", "--model", quick_checkpoint, "--voices", tmp_path, "--port", "0")
    process = start(*words, "--wyoming", "127.0.0.1:0", "--no-http")
    try:
        server = Running("", process, [process.stderr.readline()])
        events = conversation(server, Synthesize("Hi.", ENGLISH), last="audio-stop")
        assert sound(events) == pcm(said(quick_tts, "Hi."))
        sockets = Path(f"/proc/{process.pid}/net/tcp")
        if sockets.exists():  # one socket of this process listens, and it is Wyoming's
            assert listening_ports(process.pid) == [port(server)]
    finally:
        process.send_signal(signal.SIGTERM)
        rest = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 128 + signal.SIGTERM
    assert "listening on" not in server.log[0] + rest
    assert "Traceback" not in rest


def listening_ports(process: int) -> list[int]:
    """The ports at which a process listens, by Linux's own tables."""
    files = [os.readlink(file) for file in Path(f"/proc/{process}/fd").iterdir()]
    own = {file.removeprefix("socket:[").removesuffix("]") for file in files if "socket:" in file}
    rows = [line.split() for line in Path(f"/proc/{process}/net/tcp").read_text().splitlines()[1:]]
    listen = "0A"
    return [int(row[1].split(":")[1], 16) for row in rows if row[3] == listen and row[9] in own]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--no-http"], "--no-http needs --wyoming HOST:PORT"),
        (["--wyoming", "10200"], "--wyoming takes HOST:PORT"),
        (["--wyoming", "0.0.0.0:0"], "Wyoming has no keys: give --allow-unauthenticated"),
        (["--wyoming", "127.0.0.1:0", "--workers", "2"], "--wyoming takes one worker"),
    ],
)
def test_what_cannot_be_served_is_told(options: list[str], message: str) -> None:
    done = run("serve", "--port", "0", *options)
    assert done.returncode == 1
    assert message in done.stderr
