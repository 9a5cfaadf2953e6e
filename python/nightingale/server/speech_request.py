"""What clients ask to be said, and the work that it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from ..speech import Chunk
from ..tts import FASTEST, SLOWEST, TTS
from .encoding import RESPONSE_FORMATS
from .errors import ApiError
from .known_voices import KnownVoices
from .settings import MODEL_NAME

ResponseFormat = Literal["mp3", "opus", "aac", "flac", "wav", "pcm"]
assert set(get_args(ResponseFormat)) == set(RESPONSE_FORMATS)

# Programs written for OpenAI name these; all are the model that is loaded.
MODEL_NAMES = (MODEL_NAME, "tts-1", "tts-1-hd", "gpt-4o-mini-tts", "gpt-4o-mini-tts-2025-12-15")

Finite = Annotated[float, Field(allow_inf_nan=False)]


class VoiceId(BaseModel):
    """A voice by its id, which is its name."""

    id: str = Field(max_length=200)


class SpeechSettings(BaseModel):
    """How to speak."""

    model_config = ConfigDict(extra="ignore", strict=True)

    voice: Annotated[str, Field(max_length=200)] | VoiceId | None = Field(
        None, description="Of the model or the voice folder. OpenAI's names mean the default."
    )
    response_format: ResponseFormat = "mp3"
    speed: Annotated[Finite, Field(ge=SLOWEST, le=FASTEST)] = 1.0
    language: str = Field("en", max_length=20, description="A code such as fr.")
    seed: int = Field(0, ge=0, lt=2**64, description="Another one gives another reading.")
    temperature: Annotated[Finite, Field(ge=0, le=5)] = 0.8
    cfg_weight: Annotated[Finite, Field(ge=0, le=10)] = 0.5
    exaggeration: Annotated[Finite, Field(ge=0, le=10)] | None = Field(
        None, description="The voice's own if null."
    )

    @property
    def voice_name(self) -> str | None:
        return self.voice.id if isinstance(self.voice, VoiceId) else self.voice

    def work(self, text: str, voices: KnownVoices, tts: TTS) -> Iterator[Chunk | None]:
        """Says a text in these settings, step by step; for the engine's thread."""
        return tts.stepwise(
            text,
            voice=voices.find(self.voice_name, tts.voices),
            language=self.language,
            seed=self.seed,
            speed=self.speed,
            temperature=self.temperature,
            cfg_weight=self.cfg_weight,
            exaggeration=self.exaggeration,
        )


class SpeechRequest(SpeechSettings):
    """OpenAI's request for speech, with the settings of these models."""

    model: str = Field(max_length=200, examples=[MODEL_NAME])
    input: str = Field(min_length=1, examples=["Hello there."])
    stream_format: Literal["audio", "sse"] = "audio"
    instructions: str | None = Field(None, description="Has no effect with these models.")


def check_model(name: str) -> None:
    if name not in MODEL_NAMES:
        raise ApiError(
            404,
            f"there is no model {name!r}; this server has {MODEL_NAME!r}",
            param="model",
            code="model_not_found",
        )


def check_length(text: str, most: int, param: str = "input") -> None:
    if len(text) > most:
        raise ApiError(
            400,
            f"{param} has {len(text)} characters; {most} are the most",
            param=param,
            code="string_above_max_length",
        )
