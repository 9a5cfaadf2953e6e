"""WebSocket /v1/audio/speech/live: text as it is typed or generated, sound as it is made."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Annotated, Literal

import numpy as np
from fastapi import APIRouter, WebSocket, WebSocketDisconnect
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from ..audio import SAMPLE_RATE
from ..speech import GAPS
from ..text.sentence_buffer import SentenceBuffer
from .context import Server, ServerContext
from .encoding import Encoder
from .errors import ApiError, invalid
from .speech import ResponseFormat, SpeechSettings, check_length

router = APIRouter()


class Begin(SpeechSettings):
    """Settings of what is said next; sent before its text."""

    type: Literal["begin"]
    response_format: ResponseFormat = "pcm"


class Text(BaseModel):
    """More text. Its sentences are said once they are complete."""

    type: Literal["text"]
    text: str


class Signal(BaseModel):
    """`flush`: what has come is to be said, although the sentence may be incomplete. `end`: the
    text is complete; `done` answers when all of it was said. `cancel`: nothing more is to be said
    of it; `cancelled` answers."""

    type: Literal["flush", "end", "cancel"]


Message = Begin | Text | Signal
_MESSAGE: TypeAdapter[Message] = TypeAdapter(Annotated[Message, Field(discriminator="type")])


@router.websocket("/v1/audio/speech/live")
async def live(socket: WebSocket, server: ServerContext) -> None:
    await socket.accept()
    session = _Session(socket, server)
    try:
        while True:
            text = await _received(socket, server.settings.websocket_timeout, session)
            try:
                await session.take(_MESSAGE.validate_json(text))
            except ValidationError as error:
                # Each place begins with the type of the message.
                problems = [{**found, "loc": found["loc"][1:]} for found in error.errors()]
                await session.tell(invalid(problems))
            except ApiError as error:
                await session.tell(error)
    except WebSocketDisconnect:
        pass
    except asyncio.TimeoutError:
        await socket.close(1001, "nothing came for a long time")
    finally:
        await session.stop()


async def _received(socket: WebSocket, patience: float, session: _Session) -> str:
    while True:
        try:
            message = await asyncio.wait_for(socket.receive(), patience)
        except asyncio.TimeoutError:
            if session.busy:
                continue
            raise
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message.get("code", 1005))
        return message.get("text") or ""


class _Session:
    """One client's connection. Passages, which are complete sentences to be said in one go, are
    said one after another by a task of their own, those up to an `end` in one container."""

    def __init__(self, socket: WebSocket, server: Server) -> None:
        self._socket = socket
        self._server = server
        self._settings = Begin.model_validate({"type": "begin"})
        self._incoming = SentenceBuffer(self._settings.language)
        self._open = False  # text has come that no `end` has followed
        self._begin()

    @property
    def busy(self) -> bool:
        return self._characters > 0

    async def take(self, message: Message) -> None:
        if isinstance(message, Begin):
            if self._open:
                raise ApiError(400, "`end` or `cancel` what was begun before the next `begin`")
            self._settings = message
            self._incoming = SentenceBuffer(message.language)
        elif isinstance(message, Text):
            waiting = len(self._incoming) + self._characters
            check_length(message.text, self._server.settings.max_characters - waiting, "text")
            self._open = True
            self._say(self._incoming.add(message.text))
        elif message.type == "cancel":
            await self.stop()
            self._incoming.rest()
            self._open = False
            self._begin()
            await self._socket.send_json({"type": "cancelled"})
        else:
            self._say(self._incoming.rest())
            if message.type == "end":
                self._open = False
                self._passages.put_nowait(None)

    async def tell(self, error: ApiError) -> None:
        await self._socket.send_json({"type": "error", **error.body})

    async def stop(self) -> None:
        """Ends what is being said."""
        self._speaking.cancel()
        await asyncio.gather(self._speaking, return_exceptions=True)

    def _begin(self) -> None:
        self._passages: asyncio.Queue[tuple[str, Begin] | None] = asyncio.Queue()
        self._characters = 0  # that wait or are being said
        self._speaking = asyncio.create_task(self._speak())

    def _say(self, text: str) -> None:
        if text.strip():
            self._characters += len(text)
            self._passages.put_nowait((text, self._settings))

    async def _speak(self) -> None:
        while True:
            try:
                await self._speak_utterance()
            except WebSocketDisconnect:
                return
            except Exception as error:
                await self.tell(self._server.told(error))
                await self._skip_utterance()

    async def _speak_utterance(self) -> None:
        """Says passages up to an `end`."""
        encoder: Encoder | None = None
        samples, gap = 0, 0.0
        while (passage := await self._passages.get()) is not None:
            text, settings = passage
            try:
                if encoder is None:
                    encoder = Encoder(settings.response_format)
                    begin = {"type": "begin", "media_type": encoder.media_type}
                    await self._socket.send_json(begin)
                silence = np.zeros(round(gap * SAMPLE_RATE), np.float32)
                samples += await self._send(encoder, silence)
                samples += await self._pass(encoder, text, settings, samples)
            finally:
                self._characters -= len(text)
            paragraph = text[len(text.rstrip()) :].count("\n") > 1
            gap = GAPS["paragraph" if paragraph else "sentence"]
        if encoder is not None:
            await self._socket.send_bytes(encoder.finish())
        await self._socket.send_json({"type": "done", "seconds": samples / SAMPLE_RATE})

    async def _skip_utterance(self) -> None:
        while (passage := await self._passages.get()) is not None:
            self._characters -= len(passage[0])

    async def _pass(self, encoder: Encoder, text: str, settings: Begin, before: int) -> int:
        """Says one passage; gives its samples."""
        start, samples = before / SAMPLE_RATE, 0
        job = self._server.submit(self._socket, partial(settings.work, text, self._server))
        try:
            await self._socket.send_json({"type": "sentence", "text": text.strip()})
            chunk = await job.next(self._server.settings.first_audio_timeout)
            while chunk is not None:
                samples += await self._send(encoder, chunk.samples)
                words = [(word, start + begin, start + end) for word, begin, end in chunk.words]
                if words:
                    await self._socket.send_json({"type": "words", "words": words})
                chunk = await job.next()
        except (asyncio.CancelledError, WebSocketDisconnect):
            self._server.metrics.cancelled.inc()
            raise
        finally:
            self._server.engine.cancel(job)
        return samples

    async def _send(self, encoder: Encoder, samples: np.ndarray) -> int:
        data = await asyncio.to_thread(encoder.write, samples)
        if data:
            await self._socket.send_bytes(data)
        return len(samples)
