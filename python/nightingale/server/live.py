"""WebSocket /v1/audio/speech/live: text as it is typed or generated, sound as it is made."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple

import anyio
import numpy as np
from fastapi import APIRouter, WebSocket, WebSocketDisconnect
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from ..audio import SAMPLE_RATE
from ..checkpoint import known_language
from ..language_tags import language_code
from ..text.detection import is_auto
from ..text.markup import markup_of
from ..text.segment import GAPS
from ..text.sentence_buffer import SentenceBuffer
from .context import ENDING, Server, ServerContext
from .encoding import RESPONSE_FORMATS, Encoder
from .errors import ApiError, invalid
from .jobs import EngineStoppedError
from .speech import ResponseFormat, SpeechSettings, check_length
from .throttle import ConnectionThrottle

router = APIRouter()

GOING_AWAY, SERVICE_RESTART = 1001, 1012  # why a WebSocket is closed, by its RFC
LONGEST_WORK = 0.5  # seconds that a message is taken to have cost


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
    listening = asyncio.create_task(_listen(socket, server, session))
    ending = asyncio.create_task(_say_the_last(socket, session))
    code, reason = SERVICE_RESTART, "the server is ending"
    try:
        await asyncio.wait({listening, ending}, return_when=asyncio.FIRST_COMPLETED)
        if listening.done():
            listening.result()
    except WebSocketDisconnect:
        return
    except TimeoutError:
        code, reason = GOING_AWAY, "nothing came for a long time"
    except asyncio.CancelledError:  # the server's time for running requests is over
        pass
    finally:
        for task in (listening, ending):
            task.cancel()
        await asyncio.gather(listening, ending, session.stop(), return_exceptions=True)
    with suppress(WebSocketDisconnect, RuntimeError):  # it may have left in the meantime
        await socket.close(code, reason)


async def _listen(socket: WebSocket, server: Server, session: _Session) -> None:
    """Takes messages until the client leaves, with rests, in which others have the event loop."""
    throttle = ConnectionThrottle(server.throttle, socket.client.host if socket.client else "")
    while True:
        text = await _received(socket, server.settings.websocket_timeout, session)
        began = time.monotonic()
        try:
            await session.take(_MESSAGE.validate_json(text))
        except ValidationError as error:
            # Each place begins with the type of the message.
            problems = [{**found, "loc": found["loc"][1:]} for found in error.errors()]
            if error.errors()[0]["loc"][:1] == ("begin",):
                session.refuse()
            await session.tell(invalid(problems))
        except ApiError as error:
            await session.tell(error)
        # It may also have waited for the client to read.
        worked = min(time.monotonic() - began, LONGEST_WORK)
        if rest := throttle.rest(worked):
            await asyncio.sleep(rest)


async def _say_the_last(socket: WebSocket, session: _Session) -> None:
    """Waits for the end of the server, and then until all that has come was said."""
    if (told := socket.scope["extensions"].get(ENDING)) is None:  # another server than ours
        await asyncio.Event().wait()
    await told["event"].wait()
    await session.finish()


async def _received(socket: WebSocket, patience: float, session: _Session) -> str:
    while True:
        try:
            with anyio.fail_after(patience):
                message = await socket.receive()
        except TimeoutError:
            if session.busy:
                continue
            raise
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message.get("code", 1005))
        return message.get("text") or ""


class Passage(NamedTuple):
    """Complete sentences to be said in one go."""

    text: str
    settings: Begin
    markup: str
    offset: int  # of its first character in the text up to an `end`


class _Session:
    """One client's connection. Passages are said one after another by a task of their own, those up
    to an `end` in one container."""

    def __init__(self, socket: WebSocket, server: Server) -> None:
        self._socket = socket
        self._server = server
        self._settings = Begin.model_validate({"type": "begin"})
        self._incoming = SentenceBuffer(self._settings.language)
        self._open = False  # text has come that no `end` has followed
        self._refused = False  # the last `begin`, whose text is dropped
        self._whole = False  # it has markup, which is complete with the `end`
        self._ending = False
        self._detected = ""  # the language of what is being said, where it is to be detected
        self._ignored_is_told = False
        self._idle = asyncio.Event()
        self._begin()

    @property
    def busy(self) -> bool:
        return self._characters > 0

    async def take(self, message: Message) -> None:
        if isinstance(message, Begin):
            if self._open:
                raise ApiError(400, "`end` or `cancel` what was begun before the next `begin`")
            await self._take_begin(message)
        elif isinstance(message, Text):
            if self._ending:
                raise self._server.told(EngineStoppedError())
            if self._refused:
                self._open = True
                return
            waiting = len(self._incoming) + self._characters
            check_length(message.text, self._server.settings.max_characters - waiting, "text")
            self._open = True
            self._incoming.hold(message.text)
            self._whole = self._whole or self._is_document()
            if not self._whole:
                self._say(self._incoming.complete())
        elif message.type == "cancel":
            await self.stop()
            self._incoming.rest()
            self._open = self._whole = self._refused = False
            self._begin()
            await self._emit({"type": "cancelled"})
        elif self._refused and self._open:
            self._open = self._refused = message.type != "end"
        elif message.type == "flush" and self._whole:
            raise ApiError(400, "a text with markup is said as a whole: send `end`")
        else:
            self._say(self._incoming.rest())
            if message.type == "end":
                self._open = self._whole = self._refused = False
                self._offset = 0
                self._put(None)

    async def _take_begin(self, settings: Begin) -> None:
        """Checks the settings now, and has them answered when all before them was said."""
        try:
            await asyncio.to_thread(self._check, settings)
        except Exception as error:
            self.refuse()
            raise self._server.told(error) from error
        self._refused = False
        self._settings = settings = settings.in_native_language(self._server)
        self._incoming = SentenceBuffer(language_code(settings.language))
        self._put(settings)

    def _check(self, settings: Begin) -> None:
        """ApiError where the model has no such voice or language."""
        facts = self._server.engine.facts
        self._server.find_voice(settings.voice_name, facts.voices)
        if not is_auto(settings.language):
            try:
                known_language(settings.language, facts.languages)
            except ValueError as error:
                raise ApiError(400, str(error), param="language") from error

    def refuse(self) -> None:
        """What follows a `begin` that was refused is not said."""
        self._refused = not self._open

    async def tell(self, error: ApiError) -> None:
        await self._emit({"type": "error", **error.body})

    async def _emit(self, message: dict[str, Any] | bytes) -> None:
        try:
            if isinstance(message, bytes):
                await self._socket.send_bytes(message)
            else:
                await self._socket.send_json(message)
        except RuntimeError as error:  # another task has found before that the client has left
            raise WebSocketDisconnect(1006) from error

    async def finish(self) -> None:
        """Takes no more text; returns when all there was is said or cancelled."""
        self._ending = True
        await self._idle.wait()

    async def stop(self) -> None:
        """Ends what is being said."""
        self._speaking.cancel()
        await asyncio.gather(self._speaking, return_exceptions=True)

    def _begin(self) -> None:
        self._passages: asyncio.Queue[Passage | Begin | None] = asyncio.Queue()
        self._pending = 0  # what waits in it or is being said
        self._idle.set()
        self._characters = 0  # that wait or are being said
        self._offset = 0  # of the next passage in the text up to an `end`
        self._speaking = asyncio.create_task(self._speak())

    def _say(self, text: str) -> None:
        if text.strip():
            self._characters += len(text)
            markup = self._settings.markup or "ssml"
            self._put(
                Passage(text, self._settings, markup if self._whole else "plain", self._offset)
            )
        self._offset += len(text)

    def _is_document(self) -> bool:
        """Whether what has come is read as a whole: as asked for, or SSML by its looks."""
        if self._settings.markup is not None:
            return True
        return self._offset == 0 and markup_of(self._incoming.text) == "ssml"

    def _put(self, passage: Passage | Begin | None) -> None:
        self._pending += 1
        self._idle.clear()
        self._passages.put_nowait(passage)

    def _has_been_said(self, passage: Passage | Begin | None) -> None:
        self._characters -= len(passage.text) if isinstance(passage, Passage) else 0
        self._pending -= 1
        if not self._pending:
            self._idle.set()

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
        """Says passages up to an `end`; a `begin` before them is answered at once."""
        encoder: Encoder | None = None
        begun = False
        samples, gap = 0, 0.0
        self._detected = ""
        self._ignored_is_told = False
        while (passage := await self._passages.get()) is not None:
            if isinstance(passage, Begin):
                begun = True
                self._has_been_said(passage)
                await self._emit_begin(passage)
                continue
            try:
                if encoder is None:
                    encoder = Encoder(passage.settings.response_format)
                    if not begun:
                        await self._emit_begin(passage.settings)
                silence = np.zeros(round(gap * SAMPLE_RATE), np.float32)
                samples += await self._send(encoder, silence)
                samples += await self._pass(encoder, passage, samples)
            finally:
                self._has_been_said(passage)
            paragraph = passage.text[len(passage.text.rstrip()) :].count("\n") > 1
            gap = GAPS["paragraph" if paragraph else "sentence"]
        if encoder is not None:
            await self._emit(encoder.finish())
        await self._emit({"type": "done", "seconds": samples / SAMPLE_RATE})
        self._has_been_said(None)

    async def _emit_begin(self, settings: Begin) -> None:
        media_type = RESPONSE_FORMATS[settings.response_format]
        await self._emit({"type": "begin", "media_type": media_type})

    async def _skip_utterance(self) -> None:
        while (passage := await self._passages.get()) is not None:
            self._has_been_said(passage)
        self._has_been_said(None)

    async def _pass(self, encoder: Encoder, passage: Passage, before: int) -> int:
        """Says one passage; gives its samples."""
        start, samples = before / SAMPLE_RATE, 0
        settings = passage.settings
        if self._detected and is_auto(settings.language):
            settings = settings.model_copy(update={"language": self._detected})
        work = partial(settings.work, passage.text, self._server, markup=passage.markup)
        job = self._server.submit(self._socket, work)
        try:
            await self._emit({"type": "sentence", "text": passage.text.strip()})
            chunk = await job.next(self._server.settings.first_audio_timeout)
            while chunk is not None:
                samples += await self._send(encoder, chunk.samples)
                await self._tell_language(settings, chunk.language)
                if chunk.unspoken:
                    await self._emit({"type": "unspoken", "characters": chunk.unspoken})
                if chunk.ignored and not self._ignored_is_told:
                    self._ignored_is_told = True
                    await self._emit({"type": "ignored", "options": chunk.ignored})
                words = [word.later(start, passage.offset) for word in chunk.words]
                if words:
                    await self._emit({"type": "words", "words": words})
                chunk = await job.next()
        except (asyncio.CancelledError, WebSocketDisconnect):
            self._server.metrics.cancelled.inc()
            raise
        finally:
            self._server.engine.cancel(job)
        return samples

    async def _tell_language(self, settings: Begin, language: str) -> None:
        """The first sentence's is that of all up to the `end`, where it is to be detected."""
        if is_auto(settings.language) and not self._detected:
            self._detected = language
            if settings is self._settings:  # else the next text has begun, with its own
                self._incoming.language = language
            await self._emit({"type": "language", "language": language})

    async def _send(self, encoder: Encoder, samples: np.ndarray) -> int:
        data = await asyncio.to_thread(encoder.write, samples)
        if data:
            await self._emit(data)
        return len(samples)
