"""Sound on its way to a client that may be slow or go away."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import time
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from .._core import Error
from ..audio import SAMPLE_RATE
from ..speech import Chunk
from .context import Server
from .encoding import Encoder
from .engine_thread import EngineStoppedError
from .job import Job

logger = logging.getLogger(__name__)


class SoundFrames:
    """The body of an answer: the encoder's bytes as they are."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self.media_type = encoder.media_type
        self.input_tokens = 0

    def chunk(self, chunk: Chunk) -> bytes:
        return self._encoder.write(chunk.samples)

    def end(self, output_tokens: int) -> bytes:
        return self._encoder.finish()

    def error(self, body: dict[str, Any]) -> bytes | None:
        """What tells of an error in the middle; None where the body can only break off."""
        return None

    def close(self) -> None:
        self._encoder.close()


class EventFrames(SoundFrames):
    """The same bytes in OpenAI's server-sent events."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__(encoder)
        self.media_type = "text/event-stream"

    def chunk(self, chunk: Chunk) -> bytes:
        return _delta(super().chunk(chunk))

    def end(self, output_tokens: int) -> bytes:
        usage = {
            "input_tokens": self.input_tokens,
            "output_tokens": output_tokens,
            "total_tokens": self.input_tokens + output_tokens,
        }
        last = _delta(super().end(output_tokens))
        return last + _event({"type": "speech.audio.done", "usage": usage})

    def error(self, body: dict[str, Any]) -> bytes:
        return _event({"type": "error", **body})


def _delta(data: bytes) -> bytes:
    audio = base64.b64encode(data).decode()
    return _event({"type": "speech.audio.delta", "audio": audio}) if data else b""


def _event(content: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(content).encode() + b"\n\n"


class SoundResponse(Response):
    """Sends a job's sound. The status waits for the first of it, so that an error has its own."""

    def __init__(self, server: Server, job: Job, frames: SoundFrames) -> None:
        super().__init__(media_type=frames.media_type)
        del self.headers["content-length"]
        self.headers["cache-control"] = "no-store"
        self._server = server
        self._job = job
        self._frames = frames
        self._began = time.monotonic()
        self._samples = 0
        self._tokens = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending = asyncio.create_task(self._send(scope, receive, send))
        leaving = asyncio.create_task(_left(receive))
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
            else:
                self._server.metrics.cancelled.inc()
        except asyncio.CancelledError:  # the server ends, and its time for running requests is over
            self._job.fail(EngineStoppedError())
            await sending
        finally:
            for task in (sending, leaving):
                task.cancel()
            # The encoder may be at work in another thread until the task has ended.
            await asyncio.gather(sending, leaving, return_exceptions=True)
            self._server.engine.cancel(self._job)
            self._frames.close()
            self._server.metrics.watch(self._server.engine)

    async def _send(self, scope: Scope, receive: Receive, send: Send) -> None:
        settings = self._server.settings
        try:
            chunk = await asyncio.wait_for(self._job.next(), settings.first_audio_timeout)
            if chunk is None:
                raise Error("the model said nothing: try another seed or a longer text")
        except Exception as error:
            await self._server.told(error).response()(scope, receive, send)
            return
        self._server.metrics.first_sound.observe(time.monotonic() - self._began)
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)
        try:
            while chunk is not None:
                await self._pass(send, await asyncio.to_thread(self._frames.chunk, chunk))
                self._count(chunk)
                chunk = await self._job.next()
            await self._pass(send, await asyncio.to_thread(self._frames.end, self._tokens))
        except Exception as error:
            # Without its last part the body is seen to have broken off.
            told = self._frames.error(self._server.told(error).body)
            if told is None:
                logger.warning("an answer broke off: %s", str(error) or type(error).__name__)
                return
            await self._pass(send, told)
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        seconds = max(self._samples / SAMPLE_RATE, 1e-9)
        self._server.metrics.real_time_factor.observe((time.monotonic() - self._began) / seconds)

    async def _pass(self, send: Send, data: bytes) -> None:
        if data:
            message = {"type": "http.response.body", "body": data, "more_body": True}
            await send(message)

    def _count(self, chunk: Chunk) -> None:
        self._samples += len(chunk.samples)
        self._tokens += len(chunk.tokens)
        self._server.metrics.speech.inc(len(chunk.samples) / SAMPLE_RATE)
        self._server.metrics.tokens.inc(len(chunk.tokens))


async def _left(receive: Receive) -> None:
    """Ends when the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
