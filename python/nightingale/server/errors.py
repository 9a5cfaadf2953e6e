"""Errors as clients get them: in OpenAI's shape, without a word of the inside."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from .._core import Error
from .engine_thread import EngineStoppedError
from .fair_queue import QueueFullError

logger = logging.getLogger(__name__)

FAILED = "the server failed; its log says why"
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


def api_error(error: Exception, retry_after: int = 1) -> ApiError:
    """What a client is told of an exception; the unforeseen ones stay with the server."""
    retry = {"Retry-After": str(retry_after)}
    if isinstance(error, ApiError):
        return error
    if isinstance(error, QueueFullError):
        message = "too many requests are waiting; try again later"
        return ApiError(429, message, code="queue_full", headers=retry)
    if isinstance(error, EngineStoppedError):
        return ApiError(503, "the server is ending", code="stopping", headers=retry)
    if isinstance(error, asyncio.TimeoutError):
        message = "the request waited too long for its first sound; try again later"
        return ApiError(503, message, code="timeout", headers=retry)
    if isinstance(error, (ValueError, Error)):
        return ApiError(400, " ".join(str(error).split()))
    logger.error("a request failed", exc_info=error)
    return ApiError(500, FAILED)


def add_error_handlers(app: FastAPI) -> None:
    app.add_exception_handler(ApiError, _answer)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(ClientDisconnect, _gone)
    app.add_exception_handler(Exception, _unforeseen)


async def _answer(request: Request, error: ApiError) -> JSONResponse:
    return error.response()


async def _invalid(request: Request, error: RequestValidationError) -> JSONResponse:
    return invalid(error.errors()).response()


def invalid(problems: Sequence[Mapping[str, Any]]) -> ApiError:
    """What pydantic found wrong: the first of it, under the field's name."""
    first = problems[0]
    if first["type"] == "json_invalid":
        return ApiError(400, "this is not JSON")
    place = [str(part) for part in first["loc"] if part not in ("body", "query", "path")]
    param = place[0] if place else None
    return ApiError(400, f"{param}: {first['msg']}" if param else first["msg"], param=param)


async def _http_error(request: Request, error: HTTPException) -> JSONResponse:
    return ApiError(error.status_code, str(error.detail), headers=error.headers).response()


async def _gone(request: Request, error: ClientDisconnect) -> JSONResponse:
    """Nobody reads this: the client went away before its request was complete."""
    return ApiError(400, "the request broke off").response()


async def _unforeseen(request: Request, error: Exception) -> JSONResponse:
    """Also for a ValueError or Error outside of a job: there they are no fault of the client."""
    return ApiError(500, FAILED).response()


def described(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The answers of a route that are no success, for the OpenAPI page."""
    return {status: {"model": ErrorBody} for status in (*statuses, "4XX")}
