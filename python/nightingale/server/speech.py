"""POST /v1/audio/speech: a text to sound that leaves while it is made."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, get_args

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator
from starlette.types import Receive, Scope, Send

from .._core import Error
from ..audio import SAMPLE_RATE
from ..chunks import Chunk
from ..native_voices import native_language
from ..option import Option, options_of
from ..options import SpeechOptions
from ..text import Segment
from ..tts import TTS, FindVoice
from ..voice import Voice
from .context import MODEL_NAME, Server, ServerContext
from .encoding import RESPONSE_FORMATS, Encoder
from .errors import ApiError, described
from .framing import FRAMINGS, StreamFormat
from .jobs import EngineStoppedError, EngineThread, Work
from .throttle import REST, WORK_BEFORE_REST
from .tolerance import TolerantModel, allow_null, number_or_text

logger = logging.getLogger(__name__)
router = APIRouter(tags=["speech"])

ResponseFormat = Literal["mp3", "opus", "ogg", "aac", "flac", "wav", "pcm"]
assert set(get_args(ResponseFormat)) == set(RESPONSE_FORMATS)

# Programs written for OpenAI name these; all are the model that is loaded.
MODEL_NAMES = (MODEL_NAME, "tts-1", "tts-1-hd", "gpt-4o-mini-tts", "gpt-4o-mini-tts-2025-12-15")

OPTIONS = options_of(SpeechOptions, "http")
MARKUP_NAMES = [option.name for option in OPTIONS if option.stage == "text"]

UNSPOKEN_HEADER, LANGUAGE_HEADER = "nightingale-unspoken", "nightingale-language"
IGNORED_HEADER = "nightingale-ignored"
MOST_NAMED = 50  # code points in it


class VoiceId(BaseModel):
    """A voice by its id, which is its name."""

    id: str = Field(max_length=200)


class Preparing:
    """A text's way to segments, in another thread, which ends when nobody wants them any more. What
    takes long rests most of the time while others are spoken to."""

    def __init__(self, engine: EngineThread) -> None:
        self.over = threading.Event()
        self._engine = engine
        self._rested = 0.0  # when it last did, by time.monotonic

    def run(
        self,
        tts: TTS,
        text: str,
        options: SpeechOptions,
        markup: str | None,
        find_voice: FindVoice,
    ) -> list[Segment]:
        self._rested = time.monotonic()
        return tts.prepare(
            text,
            options.language,
            lexicon=options.lexicon,
            markup=markup,
            find_voice=find_voice,
            check=self._check,
        )

    def _check(self) -> None:
        worked = time.monotonic() - self._rested
        if worked > WORK_BEFORE_REST and self._engine.running > 1:
            self.over.wait(REST * worked)
            self._rested = time.monotonic()
        if self.over.is_set():
            raise CancelledError


class _Speaking(TolerantModel):
    """What requests have beside the options of speech."""

    model_config = ConfigDict(extra="ignore", strict=True, json_schema_extra=allow_null)

    response_format: ResponseFormat = "mp3"

    @property
    def markup(self) -> str | None:
        """How the text is written; None: its beginning tells."""
        return SpeechOptions(**{name: getattr(self, name) for name in MARKUP_NAMES}).markup

    @property
    def voice_name(self) -> str | None:
        voice: VoiceId | str | None = getattr(self, "voice", None)
        return voice.id if isinstance(voice, VoiceId) else voice

    @model_validator(mode="after")
    def _check_markup(self) -> _Speaking:
        _ = self.markup
        return self

    def in_native_language(self, server: Server) -> Self:
        """The same in the language that the voice is native in, where the request names none."""
        if "language" in self.model_fields_set:
            return self
        facts = server.engine.facts
        voice = server.voice_name(self.voice_name or "", facts.voices)
        native = native_language(voice.lower())
        if native not in facts.languages:
            return self
        return self.model_copy(update={"language": native})

    def work(
        self, text: str, server: Server, tts: TTS, *, markup: str | None = None
    ) -> Iterator[Chunk | Future[Any] | None]:
        """Says a text with these options, step by step; for the engine's thread. markup: in place
        of what they say about it."""
        options = {option.name: getattr(self, option.name) for option in OPTIONS}
        options["voice"] = server.find_voice(self.voice_name, tts.voices)
        chosen = SpeechOptions(**options, lexicon=server.settings.lexicon)
        markup = chosen.markup if markup is None else markup
        find_named = partial(_named_voice, server, tts.voices)
        preparing = Preparing(server.engine)
        try:
            segments = server.text_threads.submit(
                preparing.run, tts, text, chosen, markup, find_named
            )
            yield segments
            yield from tts.stepwise(segments.result(), chosen)
        finally:
            preparing.over.set()


def _named_voice(server: Server, own: Sequence[str], name: str) -> str | Voice | None:
    """A voice that SSML names."""
    try:
        return server.find_voice(name, own)
    except ApiError as error:
        raise ValueError(error.detail) from None


def request_field(option: Option, ids: bool = True) -> tuple[Any, Any]:
    """The type and the field of an option in a request. What may be a path elsewhere is a name, or
    an object with an id where these are taken."""
    least, most = option.http_range or option.range
    bounds: dict[str, Any] = {"gt" if option.above else "ge": least, "le": most}
    if option.kind == "float":
        bounds["allow_inf_nan"] = False
    kind: Any = option.plain_type
    if option.choices:
        kind = Literal[option.choices]
    elif kind is str:
        kind = Annotated[str, Field(max_length=option.max_length)]
        kind = kind | VoiceId if option.by_name and ids else kind
    elif kind is not bool:
        kind = number_or_text(Annotated[kind, Field(**bounds)])
    help = option.by_name or option.help
    description = f"{help[0].upper()}{help[1:]}."
    if option.unset:
        description += f" Null: {option.unset}."
    field = Field(option.default, description=description)
    return (kind | None if option.optional else kind), field


if TYPE_CHECKING:
    from typing_extensions import Self

    class SpeechSettings(_Speaking):
        language: str
else:
    SpeechSettings = create_model(
        "SpeechSettings",
        __base__=_Speaking,
        __doc__="How to speak.",
        **{option.name: request_field(option) for option in OPTIONS},
    )


def controls(defaults: Mapping[str, Any], ignored: Collection[str] = ()) -> list[dict[str, Any]]:
    """What the page shows of the options: sliders, then numbers. defaults: the model's own values.
    ignored: options without effect, which are not shown. Whole numbers are strings, since
    JavaScript's numbers are not exact beyond 2⁵³."""
    found = []
    for option in options_of(SpeechOptions, "page"):
        if option.name in ignored:
            continue
        control = option.control
        assert control is not None  # the page has no others
        least, most = option.range
        default = defaults.get(option.name, option.default)
        exact = str if option.kind == "int" else (lambda value: value)
        found.append(
            {
                "name": option.name,
                "label": control.label,
                "help": option.help,
                "minimum": exact(least if control.least is None else control.least),
                "maximum": exact(most if control.most is None else control.most),
                "step": control.step,
                "default": None if default is None else exact(default),
                "fallback": option.fallback,
                "unset": option.unset,
            }
        )
    return sorted(found, key=lambda control: control["step"] is None)


class SpeechRequest(SpeechSettings):
    """OpenAI's request for speech, with the options of these models."""

    model: str = Field(MODEL_NAME, max_length=200, examples=[MODEL_NAME])
    input: str = Field(min_length=1, examples=["Hello there."])
    stream_format: StreamFormat = "audio"
    instructions: str | None = Field(None, description="Has no effect with these models.")


def check_model(name: str, strict: bool = True) -> None:
    """ApiError where a request names a model that is not there, if that matters."""
    if strict and name not in MODEL_NAMES:
        message = f"there is no model {name!r}; this server has {MODEL_NAME!r}"
        raise ApiError(404, message, param="model", code="model_not_found")


def check_length(text: str, most: int, param: str = "input") -> None:
    if len(text) > most:
        message = f"{param} has {len(text)} characters; {most} are the most"
        raise ApiError(400, message, param=param, code="string_above_max_length")


class SoundFormats(Protocol):
    """The part of a request that says how its sound is sent."""

    response_format: ResponseFormat
    stream_format: StreamFormat


class SoundResponse(Response):
    """Speech on its way to a client that may be slow or go away. The status waits for the first
    sound, so that an error has its own."""

    def __init__(self, server: Server, request: Request, formats: SoundFormats, work: Work) -> None:
        self._encoder = Encoder(formats.response_format)
        self._framing = FRAMINGS[formats.stream_format](self._encoder.media_type)
        super().__init__(media_type=self._framing.media_type)
        del self.headers["content-length"]
        self.headers["cache-control"] = "no-store"
        self._server = server
        self._began = time.monotonic()
        self._samples = 0
        self._unspoken: list[str] = []
        self._ignored: list[str] = []
        self._language = ""
        self._usage = {"input_tokens": 0, "output_tokens": 0}
        self._job = server.submit(request, work)

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
            self._job.give(EngineStoppedError())
            await sending
        finally:
            for task in (sending, leaving):
                task.cancel()
            # The encoder may be at work in another thread until the task has ended.
            await asyncio.gather(sending, leaving, return_exceptions=True)
            self._server.engine.cancel(self._job)
            self._encoder.close()
            self._server.metrics.watch(self._server.engine)

    async def _send(self, scope: Scope, receive: Receive, send: Send) -> None:
        metrics = self._server.metrics
        try:
            chunk = await self._job.next(self._server.settings.first_audio_timeout)
            if chunk is None:
                raise Error("the model said nothing: try another seed or a longer text")
        except Exception as error:
            await self._server.told(error).response()(scope, receive, send)
            return
        metrics.first_sound.observe(time.monotonic() - self._began)
        if chunk.unspoken:
            self.headers[UNSPOKEN_HEADER] = _code_points(chunk.unspoken)
        if chunk.ignored:
            self.headers[IGNORED_HEADER] = ", ".join(chunk.ignored)
        if chunk.language:
            self.headers[LANGUAGE_HEADER] = self._language = chunk.language
        self._unspoken, self._ignored = chunk.unspoken, chunk.ignored
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        try:
            while chunk is not None:
                data = await asyncio.to_thread(self._encoder.write, chunk.samples)
                await self._pass(send, self._framing.part(data, chunk.words))
                self._count(chunk)
                chunk = await self._job.next()
            data = await asyncio.to_thread(self._encoder.finish)
            await self._pass(send, self._framing.part(data, []))
            end = self._framing.end(self._facts())
        except Exception as error:
            told = self._framing.error(self._server.told(error).body)
            if told is None:  # without its last part the body is seen to have broken off
                logger.warning("an answer broke off: %s", str(error) or type(error).__name__)
                return
            end = told
        await send({"type": "http.response.body", "body": end, "more_body": False})
        seconds = max(self._samples / SAMPLE_RATE, 1e-9)
        metrics.real_time_factor.observe((time.monotonic() - self._began) / seconds)

    async def _pass(self, send: Send, data: bytes) -> None:
        if data:
            await send({"type": "http.response.body", "body": data, "more_body": True})

    def _facts(self) -> dict[str, Any]:
        """What a framing may tell at the end."""
        total = sum(self._usage.values())
        return {
            "language": self._language,
            "unspoken": self._unspoken,
            "ignored": self._ignored,
            "seconds": self._samples / SAMPLE_RATE,
            "usage": {**self._usage, "total_tokens": total},
        }

    def _count(self, chunk: Chunk) -> None:
        self._samples += len(chunk.samples)
        self._usage["input_tokens"] += chunk.text_tokens
        self._usage["output_tokens"] += len(chunk.tokens)
        self._server.metrics.speech.inc(len(chunk.samples) / SAMPLE_RATE)
        self._server.metrics.tokens.inc(len(chunk.tokens))


def _code_points(characters: list[str]) -> str:
    """Characters as a header can name them: "U+1F642 U+597D"."""
    points = [f"U+{ord(part):04X}" for character in characters for part in character]
    return " ".join(points[:MOST_NAMED])


async def _left(receive: Receive) -> None:
    """Ends when the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


SOUND = {
    "description": "The sound, or its events, as they are made.",
    "content": {
        media_type.partition(";")[0]: {"schema": {"type": "string", "format": "binary"}}
        for media_type in RESPONSE_FORMATS.values()
    }
    | {"text/event-stream": {}, "application/json": {}},
}


@router.post(
    "/v1/audio/speech",
    response_class=Response,
    responses={200: SOUND, **described(400, 401, 403, 404, 413, 429, 503)},
)
async def speak(body: SpeechRequest, request: Request, server: ServerContext) -> Response:
    """Says a text. The body of the answer comes while the speech is made, in one container."""
    check_model(body.model, server.settings.strict_model)
    check_length(body.input, server.settings.max_characters)
    settings = body.in_native_language(server)
    return SoundResponse(server, request, body, partial(settings.work, body.input, server))
