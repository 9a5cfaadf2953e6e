"""Serves speech over HTTP with FastAPI: uvicorn fastapi_endpoint:app"""

import io
import wave
from collections.abc import Iterator
from typing import Annotated

import numpy as np
from fastapi import FastAPI, HTTPException, Response
from fastapi.responses import StreamingResponse
from numpy.typing import NDArray
from pydantic import BaseModel, Field

import nightingale

# pip install "nightingale-tts[server]"
app = FastAPI(title="Speech")
tts = nightingale.load()  # once; requests in several threads take turns


class Speech(BaseModel):
    """What to say. A voice is one of GET /voices and never a path on the server."""

    text: Annotated[str, Field(min_length=1, max_length=1000)]
    voice: str = tts.voices[0]
    seed: Annotated[int, Field(ge=0)] = 0


@app.get("/voices")
def voices() -> list[str]:
    return tts.voices


@app.post("/speech", response_class=Response)
def whole(speech: Speech) -> Response:
    """The speech as a WAV file."""
    check(speech)
    audio = tts.generate(speech.text, voice=speech.voice, seed=speech.seed)
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setparams((1, 2, audio.sample_rate, 0, "NONE", "not compressed"))
        writer.writeframes(pcm(audio.samples))
    return Response(file.getvalue(), media_type="audio/wav")


@app.post("/stream", response_class=StreamingResponse)
def stream(speech: Speech) -> StreamingResponse:
    """The speech as 16-bit samples at 24 kHz while it is generated."""
    check(speech)

    def body() -> Iterator[bytes]:
        for chunk in tts.stream(speech.text, voice=speech.voice, seed=speech.seed):
            yield pcm(chunk.samples)

    return StreamingResponse(body(), media_type="audio/pcm")


def check(speech: Speech) -> None:
    if speech.voice not in tts.voices:
        raise HTTPException(404, f"unknown voice; GET /voices lists {len(tts.voices)}")


def pcm(samples: NDArray[np.float32]) -> bytes:
    integers: NDArray[np.int16] = np.rint(np.clip(samples, -1, 1) * 32767).astype(np.int16)
    return integers.tobytes()
