"""What is refused before a route sees it: strangers, other sites' pages, bodies beyond measure."""

from __future__ import annotations

import hmac
import json

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .errors import ApiError
from .settings import Settings

OPEN_PATHS = ("/", "/health", "/docs", "/openapi.json")  # and /page/: they tell nothing secret
UPLOAD_PATH = "/v1/audio/voices"
MOST_JSON = 1_000_000  # bytes
MULTIPART_FRAME = 100_000  # bytes of a form besides its recording


class Guard:
    """Checks the host's name, the origin, the key and the size of the body."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self.settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            if scope["type"] == "websocket":
                await _refuse_socket(refusal, receive, send)
            else:
                await refusal.response()(scope, receive, send)
            return
        if scope["type"] == "websocket":
            await self.app(scope, receive, send)
            return
        limit = self._limit(scope)
        if _stated_length(headers) > limit:
            await _too_large(limit).response()(scope, receive, send)
            return
        await self.app(scope, _limited(receive, limit), send)

    def _refusal(self, scope: Scope, headers: Headers) -> ApiError | None:
        host = headers.get("host", "")
        hosts = self.settings.hosts
        if hosts is not None and _name(host) not in hosts:
            # A page elsewhere can point its own name here, and would then be of the same origin.
            return ApiError(421, f"this server is not called {_name(host)!r}", code="unknown_host")
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            return ApiError(403, "pages of other sites may not use this server", code="origin")
        if self.settings.key is not None and not _is_open(scope["path"]):
            scheme, _, key = headers.get("authorization", "").partition(" ")
            same = hmac.compare_digest(key.strip().encode(), self.settings.key.encode())
            if scheme.lower() != "bearer" or not same:
                return ApiError(
                    401,
                    "this server needs its key as `Authorization: Bearer KEY`",
                    code="invalid_api_key",
                    headers={"WWW-Authenticate": "Bearer"},
                )
        return None

    def _limit(self, scope: Scope) -> int:
        if scope["path"] == UPLOAD_PATH:
            return self.settings.max_upload + MULTIPART_FRAME
        return MOST_JSON


def _is_open(path: str) -> bool:
    return path in OPEN_PATHS or path.startswith("/page/")


def _name(host: str) -> str:
    """The name in a Host header, without its port."""
    if host.startswith("["):
        return host.partition("]")[0].lower() + "]"
    return host.partition(":")[0].lower()


def _stated_length(headers: Headers) -> int:
    length = headers.get("content-length", "0")
    return int(length) if length.isdecimal() else 0


def _limited(receive: Receive, limit: int) -> Receive:
    """Ends a body that goes on beyond the limit, whatever length it stated."""
    received = 0

    async def counted() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > limit:
            raise _too_large(limit)
        return message

    return counted


def _too_large(limit: int) -> ApiError:
    # The rest of the body is not read, so that the connection cannot be used again.
    headers = {"Connection": "close"}
    return ApiError(
        413, f"the body is larger than {limit} bytes", code="too_large", headers=headers
    )


async def _refuse_socket(refusal: ApiError, receive: Receive, send: Send) -> None:
    await receive()
    body = json.dumps(refusal.body).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    start = {
        "type": "websocket.http.response.start",
        "status": refusal.status_code,
        "headers": headers,
    }
    await send(start)
    await send({"type": "websocket.http.response.body", "body": body})
