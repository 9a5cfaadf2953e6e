"""What the server has and how it is: /v1/models, /v1/audio/voices, /health and /metrics."""

from __future__ import annotations

import asyncio
from importlib.metadata import version
from typing import Annotated, Any, BinaryIO, Literal, cast

import anyio
from fastapi import APIRouter, File, Form, Request, Response, UploadFile
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel

from .._core import Error
from ..audio import SAMPLE_RATE
from ..native_voices import Sex, native_language, sex_of, title_of
from ..text.detection import can_detect
from ..voice import Voice
from ..voice_folder import FolderFullError, VoiceExistsError, voice_name
from .context import MODEL_NAME, Server, ServerContext
from .errors import ApiError, described
from .speech import check_model

router = APIRouter(tags=["server"])
voices = APIRouter(prefix="/v1/audio/voices", tags=["voices"])


class ModelObject(BaseModel):
    """The loaded model."""

    id: str = MODEL_NAME
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "nightingale"
    languages: dict[str, str]
    language_voices: dict[str, str]  # that speak a language where no voice is named
    detects_language: bool  # whether `language` may be "auto"
    sample_rate: int = SAMPLE_RATE
    max_input_characters: int
    can_bake: bool
    sound_tags: list[str]


class ModelList(BaseModel):
    """All models: the one."""

    object: Literal["list"] = "list"
    data: list[ModelObject]


class SpeechModelList(BaseModel):
    """The same under the name that Open WebUI reads."""

    models: list[ModelObject]


class Health(BaseModel):
    """How the server is."""

    status: Literal["ok", "failed"]
    version: str
    model: str = MODEL_NAME
    loaded: bool
    running: int
    waiting: int
    queue: int


@router.get("/v1/models", responses=described(401))
def list_models(server: ServerContext) -> ModelList:
    """The models that `model` can name."""
    return ModelList(data=[_model(server)])


@router.get("/v1/audio/models", responses=described(401))
def list_speech_models(server: ServerContext) -> SpeechModelList:
    """The models that speak, as Open WebUI asks for them."""
    return SpeechModelList(models=[_model(server)])


@router.get("/v1/models/{id}", responses=described(401, 404))
def get_model(id: str, server: ServerContext) -> ModelObject:
    """One model; OpenAI's names are the same one."""
    check_model(id)
    return _model(server)


@router.get("/health", responses={503: {"model": Health}})
def health(server: ServerContext) -> Response:
    """Whether the server works, and how busy it is."""
    engine = server.engine
    found = Health(
        status="ok" if engine.alive else "failed",
        version=version("nightingale-tts"),
        loaded=engine.loaded,
        running=engine.running,
        waiting=engine.waiting,
        queue=engine.queue_limit,
    )
    return JSONResponse(found.model_dump(), 200 if engine.alive else 503)


@router.get("/metrics", response_class=Response, responses=described(401))
def metrics(server: ServerContext) -> Response:
    """Counts for Prometheus."""
    return Response(server.metrics.text(server.engine), media_type=CONTENT_TYPE_LATEST)


def _model(server: Server) -> ModelObject:
    facts = server.engine.facts
    return ModelObject(
        languages=facts.languages,
        language_voices=facts.language_voices,
        detects_language=can_detect(facts.languages),
        max_input_characters=server.settings.max_characters,
        can_bake=facts.bakes_voices,
        sound_tags=facts.sound_tags,
    )


class VoiceObject(BaseModel):
    """A voice."""

    id: str  # what requests name it by
    object: Literal["audio.voice"] = "audio.voice"
    name: str  # for people, such as "Emma, British English, woman"; requests may have it too
    source: Literal["model", "folder"]
    created_at: int = 0
    language: str | None = None  # that it is native in, where its name says so
    sex: Sex | None = None  # the same


class VoiceList(BaseModel):
    """All voices, the model's first; `voices` is the same list under the name that Open WebUI and
    clients of Kokoro read."""

    object: Literal["list"] = "list"
    data: list[VoiceObject]
    voices: list[VoiceObject]


class VoiceDeleted(BaseModel):
    """What was deleted."""

    id: str
    object: Literal["audio.voice.deleted"] = "audio.voice.deleted"
    deleted: bool = True


@voices.get("", responses=described(401))
def list_voices(server: ServerContext) -> VoiceList:
    """The voices of the model and of the voice folder."""
    own = [_voice(name, source="model") for name in server.engine.facts.voices]
    kept = [_kept(server, name) for name in server.voices.names()]
    return VoiceList(data=own + kept, voices=own + kept)


@voices.post("", status_code=201, responses=described(400, 401, 403, 409, 413, 429, 503))
async def create_voice(
    request: Request,
    server: ServerContext,
    name: Annotated[str, Form(max_length=200)],
    audio_sample: Annotated[UploadFile, File(description="WAV, FLAC, OGG or MP3; 10 s or more.")],
    consent: Annotated[str | None, Form(description="Accepted; has no meaning here.")] = None,
) -> VoiceObject:
    """Makes a voice of a recording of one speaker and keeps it."""
    folder = server.voices
    try:
        name = voice_name(name)
    except ValueError as error:
        raise ApiError(400, str(error), param="name") from error
    if audio_sample.size is not None and audio_sample.size > server.settings.max_upload:
        raise ApiError(413, f"a recording may have {server.settings.max_upload} bytes at most")
    if not await asyncio.to_thread(_is_free, server, name):
        raise _taken(name)
    kept = await asyncio.to_thread(folder.names)
    if len(kept) >= server.settings.max_voices:
        raise ApiError(409, f"there are {len(kept)} voices already; delete one first")
    voice = await _baked(request, server, audio_sample.file)
    most = server.settings.max_voices
    try:
        await asyncio.to_thread(folder.save, name, voice, most=most)
    except VoiceExistsError as error:  # another request was faster
        raise _taken(name) from error
    except FolderFullError as error:
        raise ApiError(409, str(error)) from error
    return await asyncio.to_thread(_kept, server, name)


async def _baked(request: Request, server: Server, file: BinaryIO) -> Voice:
    """The voice of a recording; ApiError where there is none."""
    patience = server.settings.first_audio_timeout
    try:
        with anyio.fail_after(patience):
            recording = await server.recordings.read(file)
        job = server.submit(request, lambda tts: iter([tts.bake_voice(recording)]))
        try:
            return cast(Voice, await job.next(patience))
        finally:
            server.engine.cancel(job)
    except Exception as error:
        raise server.told(error, param="audio_sample") from error


@voices.delete("/{id}", responses=described(400, 401, 403, 404))
def delete_voice(id: str, server: ServerContext) -> VoiceDeleted:
    """Deletes a voice of the voice folder."""
    if id in server.engine.facts.voices:
        raise ApiError(403, f"{id!r} is a voice of the model and stays", param="id")
    try:
        server.voices.remove(id)
    except (ValueError, Error, FileNotFoundError) as error:
        message = f"there is no voice {id[:100]!r} to delete"
        raise ApiError(404, message, param="id", code="voice_not_found") from error
    return VoiceDeleted(id=id)


def _is_free(server: Server, name: str) -> bool:
    if name.casefold() in (own.casefold() for own in server.engine.facts.voices):
        return False
    try:
        return not server.voices.path(name).exists()
    except Error:  # something else of that name, such as a link
        return False


def _taken(name: str) -> ApiError:
    return ApiError(409, f"there is a voice {name!r} already", param="name", code="voice_exists")


def _kept(server: Server, name: str) -> VoiceObject:
    try:
        created = int(server.voices.path(name).stat().st_mtime)
    except (FileNotFoundError, Error):  # it was deleted or replaced this moment
        created = 0
    return _voice(name, source="folder", created_at=created)


def _voice(name: str, **facts: Any) -> VoiceObject:
    return VoiceObject(
        id=name,
        name=title_of(name),
        language=native_language(name),
        sex=sex_of(name),
        **facts,
    )
