"""What clients ask to be said, and the work that it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, create_model

from ..option import Option, options_of
from ..options import SpeechOptions
from ..speech import Chunk
from ..tts import TTS
from .encoding import RESPONSE_FORMATS
from .errors import ApiError
from .known_voices import KnownVoices
from .settings import MODEL_NAME

ResponseFormat = Literal["mp3", "opus", "aac", "flac", "wav", "pcm"]
assert set(get_args(ResponseFormat)) == set(RESPONSE_FORMATS)

# Programs written for OpenAI name these; all are the model that is loaded.
MODEL_NAMES = (MODEL_NAME, "tts-1", "tts-1-hd", "gpt-4o-mini-tts", "gpt-4o-mini-tts-2025-12-15")

OPTIONS = options_of(SpeechOptions, "http")


class VoiceId(BaseModel):
    """A voice by its id, which is its name."""

    id: str = Field(max_length=200)


class _Speaking(BaseModel):
    """What requests have beside the options of speech."""

    model_config = ConfigDict(extra="ignore", strict=True)

    response_format: ResponseFormat = "mp3"

    def work(self, text: str, voices: KnownVoices, tts: TTS) -> Iterator[Chunk | None]:
        """Says a text with these options, step by step; for the engine's thread."""
        options = {option.name: getattr(self, option.name) for option in OPTIONS}
        voice = options["voice"]
        options["voice"] = voices.find(
            voice.id if isinstance(voice, VoiceId) else voice, tts.voices
        )
        return tts.stepwise(text, **options)


def _field(option: Option) -> tuple[Any, Any]:
    """The type and the field of an option in a request. What may be a path elsewhere is a name."""
    least, most = option.http_range or option.range
    bounds = {"gt" if option.above else "ge": least, "le": most}
    if option.kind == "float":
        bounds["allow_inf_nan"] = False
    kind: Any = option.plain_type
    if option.choices:
        kind = Literal[option.choices]
    elif kind is str:
        kind = Annotated[str, Field(max_length=option.max_length)]
        kind = kind | VoiceId if option.by_name else kind
    elif kind is not bool:
        kind = Annotated[kind, Field(**bounds)]
    help = option.by_name or option.help
    description = f"{help[0].upper()}{help[1:]}."
    if option.unset:
        description += f" Null: {option.unset}."
    return (kind | None if option.optional else kind), Field(
        option.default, description=description
    )


SpeechSettings = create_model(
    "SpeechSettings",
    __base__=_Speaking,
    __doc__="How to speak.",
    **{option.name: _field(option) for option in OPTIONS},
)


def controls(defaults: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What the page shows of the options: sliders, then numbers. defaults: the model's own values.
    Whole numbers are strings, since JavaScript's numbers are not exact beyond 2⁵³."""
    found = []
    for option in options_of(SpeechOptions, "page"):
        control = option.control
        least, most = option.range
        bounds = (
            least if control.least is None else control.least,
            most if control.most is None else control.most,
        )
        default = defaults.get(option.name, option.default)
        exact = str if option.kind == "int" else (lambda value: value)
        found.append(
            {
                "name": option.name,
                "label": control.label,
                "help": option.help,
                "minimum": exact(bounds[0]),
                "maximum": exact(bounds[1]),
                "step": control.step,
                "default": None if default is None else exact(default),
                "fallback": option.fallback,
                "unset": option.unset,
            }
        )
    return sorted(found, key=lambda control: control["step"] is None)


class SpeechRequest(SpeechSettings):  # type: ignore[misc, valid-type]
    """OpenAI's request for speech, with the options of these models."""

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
