"""/v1/audio/voices: what there is to speak with, and recordings made into voices."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Annotated, Any, BinaryIO, Literal

from fastapi import APIRouter, File, Form, Request, UploadFile
from pydantic import BaseModel

from .._core import Error
from ..tts import TTS
from ..voice_folder import voice_name
from .context import Server, ServerContext
from .errors import ApiError, described

router = APIRouter(prefix="/v1/audio/voices", tags=["voices"])


class VoiceObject(BaseModel):
    """A voice; its id is its name."""

    id: str
    object: Literal["audio.voice"] = "audio.voice"
    name: str
    source: Literal["model", "folder"]
    created_at: int = 0


class VoiceList(BaseModel):
    """All voices, the model's first."""

    object: Literal["list"] = "list"
    data: list[VoiceObject]


class VoiceDeleted(BaseModel):
    """What was deleted."""

    id: str
    object: Literal["audio.voice.deleted"] = "audio.voice.deleted"
    deleted: bool = True


@router.get("", responses=described(401))
def list_voices(server: ServerContext) -> VoiceList:
    """The voices of the model and of the voice folder."""
    own = [VoiceObject(id=name, name=name, source="model") for name in server.engine.facts.voices]
    kept = [_kept(server, name) for name in server.voices.folder.names()]
    return VoiceList(data=own + kept)


@router.post("", status_code=201, responses=described(400, 401, 403, 409, 413, 429, 503))
async def create_voice(
    request: Request,
    server: ServerContext,
    name: Annotated[str, Form(max_length=200)],
    audio_sample: Annotated[UploadFile, File(description="WAV, FLAC, OGG or MP3; 10 s or more.")],
    consent: Annotated[str | None, Form(description="Accepted; has no meaning here.")] = None,
) -> VoiceObject:
    """Makes a voice of a recording of one speaker and keeps it."""
    folder = server.voices.folder
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
    job = server.submit(request, _baking(audio_sample.file))
    try:
        voice = await asyncio.wait_for(job.next(), server.settings.first_audio_timeout)
    except (ValueError, Error) as error:
        raise ApiError(400, str(error), param="audio_sample") from error
    except Exception as error:
        raise server.told(error) from error
    finally:
        server.engine.cancel(job)
    try:
        await asyncio.to_thread(folder.save, name, voice)
    except ValueError as error:  # another request was faster
        raise _taken(name) from error
    return await asyncio.to_thread(_kept, server, name)


@router.delete("/{id}", responses=described(400, 401, 403, 404))
def delete_voice(id: str, server: ServerContext) -> VoiceDeleted:
    """Deletes a voice of the voice folder."""
    if id in server.engine.facts.voices:
        raise ApiError(403, f"{id!r} is a voice of the model and stays", param="id")
    try:
        server.voices.folder.remove(id)
    except (ValueError, Error, FileNotFoundError) as error:
        message = f"there is no voice {id[:100]!r} to delete"
        raise ApiError(404, message, param="id", code="voice_not_found") from error
    return VoiceDeleted(id=id)


def _is_free(server: Server, name: str) -> bool:
    if name.casefold() in (own.casefold() for own in server.engine.facts.voices):
        return False
    try:
        return not server.voices.folder.path(name).exists()
    except Error:  # something else of that name, such as a link
        return False


def _taken(name: str) -> ApiError:
    return ApiError(409, f"there is a voice {name!r} already", param="name", code="voice_exists")


def _baking(recording: BinaryIO) -> Any:
    def work(tts: TTS) -> Iterator[Any]:
        yield tts.bake_voice(recording)

    return work


def _kept(server: Server, name: str) -> VoiceObject:
    try:
        created = int(server.voices.folder.path(name).stat().st_mtime)
    except FileNotFoundError:  # it was deleted this moment
        created = 0
    return VoiceObject(id=name, name=name, source="folder", created_at=created)
