"""Texts that take long to read, while another client waits for its first audio."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

import nightingale
from nightingale.server.jobs import Job

from ..command import PATIENCE
from ..malformed import speech as speech_request
from ..serving import Running, serving
from ..test_server_engine import Model, results, started
from ..test_server_load import address
from .first_audio import assert_hardly_later

JAPANESE = ("日本語の文章をここに書いていますが東京は大きな都市で多くの人々が住んで" * 300)[:10_000]


@pytest.mark.parametrize("text", [JAPANESE, "word " * 2000, "a" * 10_000, " " * 9_999 + "a"])
def test_a_long_text_is_counted_in_parts(
    tts: nightingale.TTS, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    tokenizer = tts._tokenizer
    encode, lengths = tokenizer.encode, []

    def watched(part: str, language: str) -> Any:
        lengths.append(len(part))
        return encode(part, language)

    whole = len(encode(text, "en"))
    monkeypatch.setattr(tokenizer, "encode", watched)
    counted = tokenizer.count(text, "en")
    assert max(lengths) <= 500
    # Each part has a language tag and an end of its own.
    assert whole <= counted <= whole + 2 * len(lengths)


def test_a_short_text_is_counted_as_it_is(tts: nightingale.TTS) -> None:
    for text in ("Hi.", "a" * 500, "a b " * 125):
        assert tts._tokenizer.count(text) == len(tts.tokenize(text))


@pytest.mark.nightly
def test_prepared_text_is_spoken_as_the_text_is(quick_tts: nightingale.TTS) -> None:
    text = "Dr. Lee paid $5. [pause 1s] Did you?"
    plain = [chunk for chunk in quick_tts.stepwise(text, seed=2) if chunk is not None]
    prepared = quick_tts.prepare(text)
    chunks = [chunk for chunk in quick_tts.stepwise(prepared, seed=2) if chunk is not None]
    assert [chunk.samples.tobytes() for chunk in chunks] == [c.samples.tobytes() for c in plain]
    spoken = [len(quick_tts.tokenize(segment.text)) for segment in prepared]
    assert sum(chunk.text_tokens for chunk in chunks) == sum(spoken)


@pytest.mark.parametrize("text", [b"Hi.", ["Hi."], None, 5])
def test_what_is_neither_text_nor_prepared_is_refused(
    quick_tts: nightingale.TTS, text: Any
) -> None:
    with pytest.raises(ValueError, match="text must be a string"):
        quick_tts.stepwise(text)


def test_other_jobs_go_on_while_one_waits_for_another_thread() -> None:
    prepared: Future[str] = Future()
    waiting = threading.Event()

    def slow(model: Model) -> Iterator[Any]:
        waiting.set()
        yield prepared
        yield prepared.result()

    async def run() -> None:
        with started(running=2) as engine:
            first, second = Job("a", slow), Job("b", lambda model: iter(["spoken"]))
            engine.submit(first)
            await asyncio.to_thread(waiting.wait, PATIENCE)
            engine.submit(second)
            assert await asyncio.wait_for(results(second), PATIENCE) == ["spoken"]
            prepared.set_result("prepared")
            assert await asyncio.wait_for(results(first), PATIENCE) == ["prepared"]

    asyncio.run(run())


def test_a_job_that_waits_can_be_cancelled() -> None:
    closed = threading.Event()

    def slow(model: Model) -> Iterator[Any]:
        try:
            yield Future()
        finally:
            closed.set()

    async def run() -> None:
        with started() as engine:
            job = Job("a", slow)
            engine.submit(job)
            while not engine.running:
                await asyncio.sleep(0.01)
            engine.cancel(job)
            assert await asyncio.to_thread(closed.wait, PATIENCE)

    asyncio.run(run())


@pytest.fixture(scope="module")
def server(quick_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(quick_checkpoint, tmp_path_factory.mktemp("voices")) as running:
        yield running


@pytest.mark.nightly
def test_10_000_japanese_characters_hold_nobody_up(server: Running) -> None:
    pytest.importorskip("pykakasi", reason="pip install 'nightingale-tts[languages]'")
    body = {"model": "nightingale", "input": JAPANESE, "language": "ja", "stream_format": "sse"}
    request = speech_request(json.dumps(body).encode())

    def ask_and_leave() -> None:
        with socket.create_connection(address(server), PATIENCE) as connection:
            connection.sendall(request)
            time.sleep(0.5)

    assert_hardly_later(server, ask_and_leave)
