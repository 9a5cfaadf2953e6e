"""Errors as clients get them: in OpenAI's shape, without a word of the inside."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from .._core import Error
from .jobs import EngineFailedError, EngineStoppedError, QueueFullError

logger = logging.getLogger(__name__)

FAILED = "the server failed; its log says why"
ABSOLUTE_PATH = re.compile(r"""(?<![\w:/.~-])/(?:[^/\s'"]+/)+([^/\s'",;]*)""")
TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


class ErrorDetail(BaseModel):
    """What went wrong."""

    message: str
    type: str
    param: str | None
    code: str | None


class ErrorBody(BaseModel):
    """The body of every answer that is no success."""

    error: ErrorDetail


class ApiError(HTTPException):
    """An answer that is no success."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(status, message, headers)
        kind = "server_error" if status >= 500 else TYPES.get(status, "invalid_request_error")
        self.body = {"error": {"message": message, "type": kind, "param": param, "code": code}}

    def response(self) -> JSONResponse:
        return JSONResponse(self.body, self.status_code, self.headers)


def without_paths(message: str, folders: Sequence[str]) -> str:
    """A message in which files of this machine have lost where they are. folders: whose paths may
    have spaces, so that they are not found by their looks."""
    for folder in folders:
        message = message.replace(f"{folder.rstrip('/')}/", "")
    return ABSOLUTE_PATH.sub(r"\1", message)


def api_error(
    error: Exception, retry_after: int, param: str | None = None, folders: Sequence[str] = ()
) -> ApiError:
    """What a client is told of a job's exception; the unforeseen ones stay with the server, and so
    do paths, of which `folders` are known."""
    retry = {"Retry-After": str(retry_after)}
    if isinstance(error, ApiError):
        return error
    if isinstance(error, QueueFullError):
        message = "too many requests are waiting; try again later"
        return ApiError(429, message, code="queue_full", headers=retry)
    if isinstance(error, EngineStoppedError):
        return ApiError(503, "the server is ending", code="stopping", headers=retry)
    if isinstance(error, EngineFailedError):
        message = "the engine has failed; the server must be started again"
        return ApiError(503, message, code="engine_failed", headers=retry)
    if isinstance(error, TimeoutError):
        message = "the request waited too long for its first sound; try again later"
        return ApiError(503, message, code="timeout", headers=retry)
    if isinstance(error, (ValueError, Error)):
        message = without_paths(" ".join(str(error).split()), folders)
        return ApiError(400, message, param=param)
    logger.error("a request failed", exc_info=error)
    return ApiError(500, FAILED)


def invalid(problems: Sequence[Mapping[str, Any]]) -> ApiError:
    """What pydantic found wrong: the first of it, under the field's name."""
    first = problems[0]
    if first["type"] == "json_invalid":
        return ApiError(400, "this is not JSON")
    place = [str(part) for part in first["loc"] if part not in ("body", "query", "path")]
    param = place[0] if place else None
    return ApiError(400, f"{param}: {first['msg']}" if param else first["msg"], param=param)


def add_error_handlers(app: FastAPI) -> None:
    for kind in (HTTPException, RequestValidationError, ClientDisconnect, Exception):
        app.add_exception_handler(kind, _respond)


async def _respond(request: Request, error: Exception) -> JSONResponse:
    """The answer to an error outside of a job, where a ValueError or Error is no fault of the
    client."""
    if isinstance(error, RequestValidationError):
        told = invalid(error.errors())
    elif isinstance(error, ClientDisconnect):  # before its request was complete: nobody reads this
        told = ApiError(400, "the request broke off")
    elif isinstance(error, HTTPException) and not isinstance(error, ApiError):
        told = ApiError(error.status_code, str(error.detail), headers=error.headers)
    else:
        told = error if isinstance(error, ApiError) else ApiError(500, FAILED)
    return told.response()


def described(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The answers of a route that are no success, for the OpenAPI page."""
    keys: tuple[int | str, ...] = (*statuses, "4XX")
    return {key: {"model": ErrorBody} for key in keys}
