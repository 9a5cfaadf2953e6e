"""WebSockets: text in the smallest parts, clients that cancel and leave, and the server's end."""

from __future__ import annotations

import json
import signal
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed

import nightingale
from nightingale.text.sentences import split_sentences

from ..command import PATIENCE
from ..malformed import LIVE, UPGRADE, request
from ..serving import Running, pcm, serving, until
from ..test_server_live import GAP, received, samples, send
from ..test_server_load import LONG, address, live
from .first_audio import assert_hardly_later


@pytest.fixture(scope="module")
def server(quick_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(quick_checkpoint, tmp_path_factory.mktemp("voices")) as running:
        yield running


@pytest.mark.nightly
def test_text_in_the_smallest_parts_holds_nobody_up(server: Running) -> None:
    text = 2_000 * "Mr. "

    def type_it() -> None:
        with live(server) as connection:
            for i in range(0, len(text), 4):
                send(connection, "text", text=text[i : i + 4])
            send(connection, "cancel")
            received(connection, "cancelled")

    assert_hardly_later(server, type_it)


def test_clients_that_cancel_and_leave_cause_no_traceback(server: Running) -> None:
    for number in range(20):
        with live(server) as connection:
            send(connection, "text", text=LONG)
            if number % 2:
                received(connection, "sentence")
            send(connection, "cancel")
            if number % 4 < 2:  # with a reset
                linger = struct.pack("ii", 1, 0)
                connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            connection.socket.shutdown(socket.SHUT_RDWR)
    until(server.idle)
    with live(server) as connection:
        send(connection, "end")
        received(connection, "done")
    assert "Traceback" not in "".join(server.log)


def test_clients_that_leave_before_they_are_accepted_cause_no_traceback(server: Running) -> None:
    for number in range(30):
        with socket.create_connection(address(server), PATIENCE) as connection:
            linger = struct.pack("ii", 1, 0)  # with a reset
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            connection.sendall(request("GET", LIVE, headers=UPGRADE))
            time.sleep(0.0005 * (number % 10))
    until(server.idle)
    assert "Traceback" not in "".join(server.log)


@pytest.mark.nightly
def test_the_servers_end_lets_it_say_what_has_come(
    quick_checkpoint: Path, tmp_path: Path, quick_tts: nightingale.TTS
) -> None:
    with serving(quick_checkpoint, tmp_path, "--shutdown-timeout", str(PATIENCE)) as server:
        with live(server) as connection, live(server) as idle:
            send(connection, "text", text="The first one is said. The second is said too.")
            send(connection, "end")
            _, sound = received(connection, "sentence")
            server.process.send_signal(signal.SIGTERM)
            with pytest.raises(ConnectionClosed) as closed:
                idle.recv(timeout=PATIENCE)
            assert closed.value.rcvd.code == 1012
            send(connection, "text", text="This comes too late.")
            messages, rest = received(connection, "done")
            told = [message for message in messages if message["type"] == "error"]
            assert [error["error"]["code"] for error in told] == ["stopping"]
            with pytest.raises(ConnectionClosed) as closed:
                connection.recv(timeout=PATIENCE)
            assert closed.value.rcvd.code == 1012
        assert server.process.wait(PATIENCE) == 143
    text = "The first one is said. The second is said too."
    whole = pcm(samples(quick_tts, text))
    first, second = (samples(quick_tts, sentence) for sentence in split_sentences(text))
    parts = pcm(np.concatenate([first, np.zeros(GAP, np.float32), second]))
    assert sound + rest in (whole, parts)
    assert "Traceback" not in "".join(server.log)


@pytest.mark.nightly
def test_the_servers_end_does_not_wait_longer_than_it_should(
    quick_checkpoint: Path, tmp_path: Path
) -> None:
    with serving(quick_checkpoint, tmp_path, "--shutdown-timeout", "1") as server:
        with live(server) as connection:
            connection.send(json.dumps({"type": "text", "text": LONG}))
            received(connection, "sentence")
            server.process.send_signal(signal.SIGTERM)
            with pytest.raises(ConnectionClosed) as closed:
                list(connection)
            assert closed.value.rcvd.code == 1012
        assert server.process.wait(PATIENCE) == 143
    assert "Traceback" not in "".join(server.log)
