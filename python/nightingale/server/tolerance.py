"""Requests as clients in use write them: null, numbers as strings, other names for a field, JSON
without its content type."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, model_validator
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

NUMBER = r"^\s*[+-]?([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][+-]?[0-9]{1,3})?\s*$"
_NUMBER = re.compile(NUMBER.replace("$", r"\Z"))
_NumberText = Annotated[str, Field(pattern=NUMBER, max_length=200)]

# Other names of fields.
FIELD_ALIASES = {"lang_code": "language"}
# What programs written for Kokoro call their languages.
KOKORO_LANGUAGES = {
    "a": "en-US", "b": "en-GB", "e": "es", "f": "fr", "h": "hi", "i": "it", "j": "ja", "p": "pt-BR",
    "z": "zh",
}  # fmt: skip
_NULL = {"type": "null"}
_ABOUT = ("title", "description", "default", "examples")  # what is no part of a field's type
JSON_PATHS = ("/v1/audio/speech",)
# What programs send that set no content type; a form's is curl's.
_NO_TYPES = ("", "text/plain", "application/x-www-form-urlencoded", "application/octet-stream")


def _number(value: Any) -> Any:
    if not isinstance(value, str) or not _NUMBER.match(value):
        return value
    try:
        return int(value)
    except ValueError:
        return float(value)


def number_or_text(kind: Any) -> Any:
    """A number's type that also takes it as a string."""
    return Annotated[kind, BeforeValidator(_number, json_schema_input_type=kind | _NumberText)]


class TolerantModel(BaseModel):
    """A request in which null stands for what was not given, as long as it may be left out."""

    @model_validator(mode="before")
    @classmethod
    def _tolerate(cls, content: Any) -> Any:
        if not isinstance(content, Mapping):
            return content
        given = {
            name: value
            for name, value in content.items()
            if value is not None or name not in cls.model_fields or _is_required(cls, name)
        }
        for alias, name in FIELD_ALIASES.items():
            if name in cls.model_fields and name not in given and given.get(alias) is not None:
                given[name] = given[alias]
        language = given.get("language")
        if isinstance(language, str):
            given["language"] = KOKORO_LANGUAGES.get(language.lower(), language)
        return given


def _is_required(kind: type[BaseModel], name: str) -> bool:
    return kind.model_fields[name].is_required()


def allow_null(schema: dict[str, Any]) -> None:
    """Says in a request's JSON schema that what may be left out may be null."""
    for name, field in schema.get("properties", {}).items():
        if name in schema.get("required", ()):
            continue
        kind = {key: field.pop(key) for key in list(field) if key not in _ABOUT}
        kinds = kind.get("anyOf", [kind])
        field["anyOf"] = kinds if _NULL in kinds else [*kinds, _NULL]


class JsonByDefault:
    """Takes the body of a request for JSON where its content type says nothing of what it is."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "POST" and scope["path"] in JSON_PATHS:
            given = Headers(scope=scope).get("content-type", "").partition(";")[0].strip().lower()
            if given in _NO_TYPES:
                others = [pair for pair in scope["headers"] if pair[0].lower() != b"content-type"]
                scope = {**scope, "headers": [*others, (b"content-type", b"application/json")]}
        await self.app(scope, receive, send)
