"""POST /v1/audio/conversions: a recording to sound in another voice, which leaves while it is
made."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated

import anyio
from fastapi import APIRouter, Form, Request, Response, UploadFile
from pydantic import ConfigDict, Field, create_model

from ..chunks import Chunk
from ..long_recording import LongRecording
from ..option import options_of
from ..options import SpeechOptions, conversion_names
from ..tts import TTS
from .context import MODEL_NAME, Server, ServerContext
from .errors import ApiError, described
from .framing import StreamFormat
from .speech import SOUND, ResponseFormat, SoundResponse, check_model, request_field
from .tolerance import TolerantModel

router = APIRouter(tags=["speech"])

OPTIONS = [
    option for option in options_of(SpeechOptions, "http") if option.name in conversion_names()
]


class _Conversion(TolerantModel):
    """What a request has beside its options."""

    model_config = ConfigDict(extra="ignore")

    file: UploadFile = Field(description="A recording of speech: WAV, FLAC, OGG or MP3.")
    model: str = Field(MODEL_NAME, max_length=200)
    response_format: ResponseFormat = "mp3"
    stream_format: StreamFormat = "audio"

    def work(self, recording: LongRecording, server: Server, tts: TTS) -> Iterator[Chunk | None]:
        """For the engine's thread."""
        options = {option.name: getattr(self, option.name) for option in OPTIONS}
        options["voice"] = server.find_voice(options["voice"], tts.voices)
        return tts.convert_stepwise(recording, SpeechOptions(**options))


if TYPE_CHECKING:

    class ConversionRequest(_Conversion): ...
else:
    ConversionRequest = create_model(
        "ConversionRequest",
        __base__=_Conversion,
        __doc__="A recording and the voice that it is to have.",
        **{option.name: request_field(option, ids=False) for option in OPTIONS},
    )


@router.post(
    "/v1/audio/conversions",
    response_class=Response,
    responses={200: SOUND, **described(400, 401, 403, 404, 413, 429, 503)},
)
async def convert(
    form: Annotated[ConversionRequest, Form(media_type="multipart/form-data")],
    request: Request,
    server: ServerContext,
) -> Response:
    """Says what a recording says in another voice. The body of the answer comes while it is made,
    in one container."""
    check_model(form.model, server.settings.strict_model)
    settings = server.settings
    if form.file.size is not None and form.file.size > settings.max_upload:
        raise ApiError(413, f"a recording may have {settings.max_upload} bytes at most")
    try:
        with anyio.fail_after(settings.first_audio_timeout):
            recording = await server.recordings.read_source(form.file.file, settings.max_recording)
    except Exception as error:
        raise server.told(error, param="file") from error
    return SoundResponse(server, request, form, partial(form.work, recording, server))
