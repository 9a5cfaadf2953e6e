"""Text over a WebSocket as it comes, sound back as it is made."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

import nightingale

from .serving import PATIENCE, Running, pcm, serving, until

pytestmark = pytest.mark.slow

GAP = round(0.2 * 24000)


@pytest.fixture(scope="module")
def server(quick_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    # Long enough for a client on a busy machine to go on, short enough to wait for once.
    limits = ("--max-characters", "300", "--websocket-timeout", "8")
    with serving(quick_checkpoint, tmp_path_factory.mktemp("voices"), *limits) as running:
        yield running


@pytest.fixture
def socket(server: Running) -> Iterator[ClientConnection]:
    with connect(address(server), open_timeout=PATIENCE) as connection:
        yield connection


def address(server: Running) -> str:
    return server.url.replace("http", "ws") + "/v1/audio/speech/live"


def send(socket: ClientConnection, type: str, **content: Any) -> None:
    socket.send(json.dumps({"type": type, **content}))


def received(socket: ClientConnection, last: str) -> tuple[list[dict[str, Any]], bytes]:
    """Messages up to one of the type `last`, and the sound among them."""
    messages, sound = [], b""
    while True:
        message = socket.recv(timeout=PATIENCE)
        if isinstance(message, bytes):
            sound += message
            continue
        messages.append(json.loads(message))
        if messages[-1]["type"] == last:
            return messages, sound


def samples(tts: nightingale.TTS, text: str, **settings: Any) -> np.ndarray:
    return np.concatenate([chunk.samples for chunk in tts.stream(text, **settings)])


def test_sentences_are_said_as_they_are_completed(
    socket: ClientConnection, quick_tts: nightingale.TTS
) -> None:
    send(socket, "begin", seed=5)
    for word in ("The first one ", "ends here. The sec", "ond is not complete yet"):
        send(socket, "text", text=word)
    messages, sound = received(socket, "sentence")
    assert messages[0]["type"] == "begin"
    assert messages[0]["media_type"].startswith("audio/pcm")
    assert messages[-1] == {"type": "sentence", "text": "The first one ends here."}
    send(socket, "text", text=", but now it is.")
    send(socket, "end")
    more, rest = received(socket, "done")
    said = [message["text"] for message in more if message["type"] == "sentence"]
    assert said == ["The second is not complete yet, but now it is."]

    first = samples(quick_tts, "The first one ends here.", seed=5)
    second = samples(quick_tts, said[0], seed=5)
    assert sound + rest == pcm(np.concatenate([first, np.zeros(GAP, np.float32), second]))
    assert more[-1]["seconds"] == pytest.approx((len(first) + GAP + len(second)) / 24000)
    words = [word for message in more if message["type"] == "words" for word in message["words"]]
    assert all(word[2] <= more[-1]["seconds"] + 1e-6 for word in words)
    text = "The first one ends here. The second is not complete yet, but now it is."
    assert words
    assert all(text[word[3] : word[4]] == word[0] for word in words)


def test_flush_says_what_is_there(socket: ClientConnection, quick_tts: nightingale.TTS) -> None:
    send(socket, "text", text="Hello")
    send(socket, "flush")
    received(socket, "sentence")
    send(socket, "end")
    _, sound = received(socket, "done")
    assert sound == pcm(samples(quick_tts, "Hello"))


def test_one_container_an_utterance(socket: ClientConnection) -> None:
    for _ in range(2):
        send(socket, "begin", response_format="flac")
        send(socket, "text", text="One. Two.")
        send(socket, "end")
        _, sound = received(socket, "done")
        assert sound.startswith(b"fLaC")
        assert sound.count(b"fLaC") == 1


def test_cancel_ends_the_work_and_the_next_text_is_said(
    socket: ClientConnection, server: Running, quick_tts: nightingale.TTS
) -> None:
    send(socket, "text", text="This will not be heard to its end. " * 8)
    send(socket, "end")
    received(socket, "sentence")
    send(socket, "cancel")
    received(socket, "cancelled")
    until(server.idle)
    send(socket, "text", text="Hi.")
    send(socket, "end")
    messages, sound = received(socket, "done")
    assert [message["type"] for message in messages if message["type"] != "words"] == [
        "begin",
        "sentence",
        "done",
    ]
    assert sound == pcm(samples(quick_tts, "Hi."))


def test_an_end_without_text_is_done(socket: ClientConnection) -> None:
    send(socket, "end")
    messages, sound = received(socket, "done")
    assert (messages, sound) == ([{"type": "done", "seconds": 0.0}], b"")


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("{", "not JSON"),
        ('{"type": "sing"}', "'begin', 'text', 'flush', 'end', 'cancel'"),
        ('{"type": "text"}', "text: Field required"),
        ('{"type": "text", "text": 5}', "valid string"),
        (b"\x00\x01", "not JSON"),
        ('{"type": "begin", "speed": 9}', "less than or equal to 4"),
        (json.dumps({"type": "text", "text": "a" * 301}), "300 are the most"),
    ],
)
def test_a_bad_message_is_told_and_the_connection_stays(
    socket: ClientConnection, message: str | bytes, told: str
) -> None:
    socket.send(message)
    (error,), _ = received(socket, "error")
    assert told in error["error"]["message"]
    send(socket, "end")
    received(socket, "done")


def test_a_failing_utterance_is_told_and_the_next_is_said(socket: ClientConnection) -> None:
    send(socket, "begin", voice="nobody")
    send(socket, "text", text="Who says this?")
    send(socket, "end")
    messages, _ = received(socket, "error")
    assert messages[-1]["error"]["code"] == "voice_not_found"
    send(socket, "begin")
    send(socket, "text", text="Hi.")
    send(socket, "end")
    _, sound = received(socket, "done")
    assert len(sound) > 24000


def test_settings_cannot_change_in_the_middle(socket: ClientConnection) -> None:
    send(socket, "text", text="A beginning")
    send(socket, "begin", seed=2)
    (error,), _ = received(socket, "error")
    assert "`end` or `cancel`" in error["error"]["message"]


def test_hanging_up_ends_the_work(server: Running) -> None:
    with connect(address(server), open_timeout=PATIENCE) as connection:
        send(connection, "text", text="This will not be heard to its end. " * 8)
        send(connection, "flush")
        received(connection, "sentence")
    until(server.idle)


def test_a_silent_client_is_let_go(socket: ClientConnection) -> None:
    with pytest.raises(ConnectionClosed) as closed:
        socket.recv(timeout=PATIENCE)
    assert closed.value.rcvd.code == 1001


def test_a_page_of_another_site_is_refused(server: Running) -> None:
    with (
        pytest.raises(InvalidStatus) as refused,
        connect(address(server), origin="https://example.com", open_timeout=PATIENCE),
    ):
        pass
    assert refused.value.response.status_code == 403
