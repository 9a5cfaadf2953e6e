"""POST /v1/audio/speech: a text to sound that leaves while it is made."""

from __future__ import annotations

from collections.abc import Iterator

from fastapi import APIRouter, Request, Response

from ..speech import Chunk
from ..tts import TTS
from .context import ServerContext
from .encoding import RESPONSE_FORMATS, Encoder
from .errors import described
from .sound_response import EventFrames, SoundFrames, SoundResponse
from .speech_request import SpeechRequest, check_length, check_model

router = APIRouter(tags=["speech"])

_SOUND = {
    "description": "The sound, or its events, as they are made.",
    "content": {
        media_type.partition(";")[0]: {"schema": {"type": "string", "format": "binary"}}
        for media_type in RESPONSE_FORMATS.values()
    }
    | {"text/event-stream": {}},
}


@router.post(
    "/v1/audio/speech",
    response_class=Response,
    responses={200: _SOUND, **described(400, 401, 403, 404, 413, 429, 503)},
)
async def speak(body: SpeechRequest, request: Request, server: ServerContext) -> Response:
    """Says a text. The body of the answer comes while the speech is made, in one container."""
    check_model(body.model)
    check_length(body.input, server.settings.max_characters)
    encoder = Encoder(body.response_format)
    frames = EventFrames(encoder) if body.stream_format == "sse" else SoundFrames(encoder)

    def work(tts: TTS) -> Iterator[Chunk | None]:
        frames.input_tokens = len(tts.tokenize(body.input, body.language))
        return body.work(body.input, server.voices, tts)

    return SoundResponse(server, server.submit(request, work), frames)
