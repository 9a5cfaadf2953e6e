"""The Wyoming protocol, which Home Assistant speaks: one text or a stream of text, sound back."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version
from typing import Any, NamedTuple

import anyio
import numpy as np
from pydantic import ValidationError
from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.error import Error as ErrorEvent
from wyoming.event import Event, Eventable, async_read_event, async_write_event
from wyoming.info import Attribution, Describe, Info, TtsProgram, TtsVoice
from wyoming.ping import Ping, Pong
from wyoming.tts import (
    Synthesize,
    SynthesizeChunk,
    SynthesizeStart,
    SynthesizeStop,
    SynthesizeStopped,
    SynthesizeTextFormat,
    SynthesizeVoice,
)

from ..audio import SAMPLE_RATE
from ..checkpoint import known_language
from ..language_tags import language_code
from ..native_voices import native_language, title_of
from ..text.detection import AUTO, can_detect, is_auto
from ..text.segment import GAPS
from ..text.sentence_buffer import SentenceBuffer
from .context import Server
from .encoding import Encoder
from .errors import ApiError, invalid
from .jobs import Work
from .speech import SpeechSettings, check_length

logger = logging.getLogger(__name__)

MOST_BYTES = 1_000_000  # of an event
_FORMAT = {"rate": SAMPLE_RATE, "width": 2, "channels": 1}
_MAKER = Attribution(name="Nightingale", url="https://pypi.org/project/nightingale-tts/")


def information(server: Server) -> Info:
    """The voices and the languages that they speak."""
    facts, own = server.engine.facts, version("nightingale-tts")
    about: dict[str, Any] = {"attribution": _MAKER, "installed": True, "version": own}
    voices = [
        TtsVoice(name=name, description=title_of(name), languages=languages, **about)
        for name, languages in announced_languages(
            [*facts.voices, *server.voices.names()], list(facts.languages)
        ).items()
    ]
    program = TtsProgram(
        name="nightingale",
        description="Text-to-speech on your own machine",
        voices=voices,
        supports_synthesize_streaming=True,
        **about,
    )
    return Info(tts=[program])


def announced_languages(voices: Sequence[str], languages: Sequence[str]) -> dict[str, list[str]]:
    """The languages of each voice. Clients let people choose a language, then one of its voices: a
    voice is announced for the language it is native in, where its name says so, and for those that
    would have no voice; any other voice for all."""
    found = ((name, native_language(name)) for name in voices)
    native = {name: language for name, language in found if language and language in languages}
    left = [each for each in languages if each not in native.values()]
    if len(native) < len(voices):
        left = []
    return {name: [native[name], *left] if name in native else list(languages) for name in voices}


class Utterance(NamedTuple):
    """How a text is to be spoken, and whether it comes in parts."""

    settings: SpeechSettings
    streamed: bool


Item = Utterance | str | None  # the beginning of an utterance, sentences of it, its end


class _BoundedReader:
    """A reader for the `wyoming` package, which takes any length that a client states."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader

    async def readline(self) -> bytes:
        return await self._reader.readline()

    async def readexactly(self, count: int) -> bytes:
        if count > MOST_BYTES:
            raise ValueError(f"an event may have {MOST_BYTES} bytes")
        return await self._reader.readexactly(count)


class Conversation:
    """One client's connection. Texts are spoken one after another by a task of their own, which
    ends when the client leaves."""

    def __init__(
        self, server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._server = server
        self._reader: Any = _BoundedReader(reader)
        self._writer = writer
        self._client = (writer.get_extra_info("peername") or ("",))[0]
        self._items: asyncio.Queue[Item] = asyncio.Queue()
        self._waiting = 0  # characters that wait or are being spoken
        self._incoming: SentenceBuffer | None = None  # of a text that comes in parts
        self._dropping = False  # it was refused
        self._whole = False  # it is SSML, which is complete with its end

    async def run(self) -> None:
        speaking = asyncio.create_task(self._speak())
        try:
            while (event := await self._event()) is not None:
                await self._take(event)
        except (OSError, EOFError):
            pass  # the client has left, or has read or sent nothing for long
        finally:
            speaking.cancel()
            await asyncio.gather(speaking, return_exceptions=True)
            self._writer.close()

    async def _event(self) -> Event | None:
        """The next event; None at the end, also of a client that does not keep to the protocol."""
        reading = asyncio.create_task(async_read_event(self._reader))
        patience = self._server.settings.websocket_timeout
        try:
            while not (await asyncio.wait({reading}, timeout=patience))[0]:
                if not self._waiting:
                    return None
            return reading.result()
        except (ValueError, TypeError, AttributeError, KeyError, asyncio.IncompleteReadError):
            return None
        finally:
            reading.cancel()

    async def _take(self, event: Event) -> None:
        try:
            if Describe.is_type(event.type):
                await self._send(await asyncio.to_thread(information, self._server))
            elif Ping.is_type(event.type):
                await self._send(Pong(text=Ping.from_event(event).text))
            elif Synthesize.is_type(event.type):
                self._take_text(Synthesize.from_event(event))
            elif SynthesizeStart.is_type(event.type):
                self._start(SynthesizeStart.from_event(event))
            elif SynthesizeChunk.is_type(event.type):
                self._add(SynthesizeChunk.from_event(event).text)
            elif SynthesizeStop.is_type(event.type):
                self._stop()
        except (KeyError, TypeError, AttributeError):
            await self._tell(ApiError(400, f"{event.type!r} has not the data that it needs"))
        except ApiError as error:
            await self._tell(error)

    def _take_text(self, request: Synthesize) -> None:
        if self._incoming is not None:
            return  # the whole text once more, for servers that cannot stream
        self._check_text(request.text)
        settings = self._settings(request.voice, request.text_format)
        self._put(Utterance(settings, False), request.text, None)

    def _start(self, request: SynthesizeStart) -> None:
        self._dropping = True  # until it is known to be right
        self._incoming = SentenceBuffer()
        settings = self._settings(request.voice, request.text_format)
        self._incoming = SentenceBuffer(language_code(settings.language))
        self._dropping, self._whole = False, bool(settings.markup)
        self._put(Utterance(settings, True))

    def _add(self, text: str) -> None:
        if self._incoming is None:
            raise ApiError(400, "`synthesize-start` comes before the first `synthesize-chunk`")
        if self._dropping:
            return
        self._check_text(text)
        self._incoming.hold(text)
        if not self._whole:
            self._put(self._incoming.complete())

    def _stop(self) -> None:
        incoming, self._incoming = self._incoming, None
        if incoming is not None and not self._dropping:
            self._put(incoming.rest(), None)

    def _check_text(self, text: Any) -> None:
        if not isinstance(text, str):
            raise ApiError(400, "the text must be a string")
        waiting = self._waiting + (len(self._incoming) if self._incoming else 0)
        check_length(text, self._server.settings.max_characters - waiting, "text")

    def _settings(self, voice: SynthesizeVoice | None, text_format: Any) -> SpeechSettings:
        """What a request asks for; ApiError where the server does not have it. Clients rarely name
        a language, so that it is detected where that can be done."""
        facts = self._server.engine.facts
        given: dict[str, Any] = {"voice": voice.name if voice else None}
        given["language"] = voice.language if voice else None
        if given["language"] is None:
            first = "en" if "en" in facts.languages else next(iter(facts.languages))
            given["language"] = AUTO if can_detect(facts.languages) else first
        elif not is_auto(given["language"]):
            try:
                known_language(given["language"], facts.languages)
            except ValueError as error:
                raise ApiError(400, str(error), param="language") from error
        given["ssml"] = text_format == SynthesizeTextFormat.SSML
        try:
            settings = SpeechSettings.model_validate(given)
        except ValidationError as error:
            raise invalid(error.errors()) from error
        self._server.find_voice(settings.voice_name, facts.voices)
        return settings

    def _put(self, *items: Item) -> None:
        for item in items:
            if isinstance(item, str):
                self._waiting += len(item)
            self._items.put_nowait(item)

    async def _speak(self) -> None:
        """Speaks one utterance after another."""
        while True:
            begun = await self._items.get()
            assert isinstance(begun, Utterance)
            try:
                await self._speak_utterance(begun)
            except OSError:
                self._writer.close()
                return
            except Exception as error:
                await self._tell(self._server.told(error))
                while (rest := await self._items.get()) is not None:
                    self._waiting -= len(rest) if isinstance(rest, str) else 0
            if begun.streamed:
                await self._send(SynthesizeStopped())

    async def _speak_utterance(self, begun: Utterance) -> None:
        samples, settings = 0, begun.settings
        markup = "plain" if begun.streamed and not settings.markup else None
        while (text := await self._items.get()) is not None:
            assert isinstance(text, str)
            try:
                if text.strip():
                    work = partial(settings.work, text, self._server, markup=markup)
                    samples, language = await self._say(work, samples)
                    # Where it is to be detected, the first sentence decides for all.
                    settings = settings.model_copy(update={"language": language})
            finally:
                self._waiting -= len(text)
        if samples:
            await self._send(AudioStop(timestamp=1000 * samples // SAMPLE_RATE))
        elif not begun.streamed:
            raise ApiError(400, "there is no text to speak", param="text")

    async def _say(self, work: Work, before: int) -> tuple[int, str]:
        """Speaks some sentences; the samples of the utterance so far, and its language."""
        job = self._server.submit_for(self._client, work)
        encoder, samples, language = Encoder("pcm"), before, AUTO
        silence = np.zeros(round(GAPS["sentence"] * SAMPLE_RATE) if before else 0, np.float32)
        try:
            chunk = await job.next(self._server.settings.first_audio_timeout)
            while chunk is not None:
                if not samples:
                    await self._send(AudioStart(**_FORMAT, timestamp=0))
                sound = np.concatenate([silence, chunk.samples])
                silence = silence[:0]
                started = 1000 * samples // SAMPLE_RATE
                await self._send(
                    AudioChunk(**_FORMAT, audio=encoder.write(sound), timestamp=started)
                )
                samples, language = samples + len(sound), chunk.language
                chunk = await job.next()
        except (asyncio.CancelledError, OSError):
            self._server.metrics.cancelled.inc()
            raise
        finally:
            self._server.engine.cancel(job)
        return samples, language

    async def _tell(self, error: ApiError) -> None:
        detail = error.body["error"]
        await self._send(ErrorEvent(text=str(detail["message"]), code=detail["code"]))

    async def _send(self, event: Eventable) -> None:
        with anyio.fail_after(self._server.settings.stall_timeout):
            await async_write_event(event.event(), self._writer)


class Listener:
    """Takes connections, as many as the server may have."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._conversations: set[asyncio.Task[None]] = set()

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._conversations) >= self._server.settings.max_connections:
            writer.close()
            return
        task = asyncio.create_task(Conversation(self._server, reader, writer).run())
        self._conversations.add(task)
        task.add_done_callback(self._conversations.discard)

    async def end(self) -> None:
        for task in self._conversations:
            task.cancel()
        await asyncio.gather(*self._conversations, return_exceptions=True)


@asynccontextmanager
async def listening(server: Server, at: socket.socket) -> AsyncIterator[None]:
    """Speaks Wyoming at a socket that listens, as long as the context lasts."""
    listener = Listener(server)
    taking = await asyncio.start_server(listener.take, sock=at, limit=MOST_BYTES)
    try:
        yield
    finally:
        taking.close()
        await listener.end()
        with anyio.move_on_after(1):
            await taking.wait_closed()
