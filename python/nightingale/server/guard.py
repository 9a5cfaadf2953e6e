"""What is refused before a route sees it: strangers, other sites' pages, bodies beyond measure."""

from __future__ import annotations

import hmac
import ipaddress

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .context import Settings
from .errors import ApiError
from .uploads import UploadSlots

OPEN_PATHS = ("/", "/health", "/docs", "/openapi.json")  # and /page/: they tell nothing secret
UPLOAD_PATHS = ("/v1/audio/voices", "/v1/audio/conversions")
MOST_JSON = 1_000_000  # bytes
MULTIPART_FRAME = 100_000  # bytes of a form besides its recording


class Guard:
    """Checks the host's name, the origin, the key and the size of the body."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self.settings = settings
        self._uploads = UploadSlots(settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        upload = scope["path"] in UPLOAD_PATHS
        limit = self.settings.max_upload + MULTIPART_FRAME if upload else MOST_JSON
        refusal = self._refusal(scope, Headers(scope=scope), limit)
        if refusal is not None:
            await refusal.response()(scope, receive, send)
            return
        if upload and scope.get("method") == "POST":
            await self._receive_upload(scope, _limited(receive, limit), send)
        else:
            await self.app(scope, _limited(receive, limit), send)

    async def _receive_upload(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with self._uploads.slot(scope["client"][0] if scope.get("client") else ""):
                await self.app(scope, receive, send)
        except ApiError as refusal:  # the application answers its own
            await refusal.response()(scope, receive, send)

    def _refusal(self, scope: Scope, headers: Headers, limit: int) -> ApiError | None:
        host = headers.get("host", "")
        if not self._is_called(_name(host)):
            # A page elsewhere can point its own name here, and would then be of the same origin.
            message = f"this server is not called {_name(host)!r}; --allow-host adds names"
            return ApiError(421, message, code="unknown_host")
        origin = headers.get("origin")
        if origin is not None and not self._admits(origin, host):
            message = "pages of other sites may not use this server; --allow-origin admits them"
            return ApiError(403, message, code="origin")
        is_open = scope["path"] in OPEN_PATHS or scope["path"].startswith("/page/")
        if self.settings.key is not None and not is_open:
            scheme, _, key = headers.get("authorization", "").partition(" ")
            same = hmac.compare_digest(key.strip().encode(), self.settings.key.encode())
            if scheme.lower() != "bearer" or not same:
                return ApiError(
                    401,
                    "this server needs its key as `Authorization: Bearer KEY`",
                    code="invalid_api_key",
                    headers={"WWW-Authenticate": "Bearer"},
                )
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > limit:
            return _too_large(limit)
        return None

    def _admits(self, origin: str, host: str) -> bool:
        """Whether the page of an origin may use the server."""
        allowed = self.settings.allowed_origins
        return origin.partition("://")[2] == host or "*" in allowed or origin in allowed

    def _is_called(self, name: str) -> bool:
        hosts = self.settings.hosts
        if hosts is None or name in hosts:
            return True
        return self.settings.any_address and _is_address(name)


def _name(host: str) -> str:
    """The name in a Host header, without its port."""
    if host.startswith("["):
        return host.partition("]")[0].lower() + "]"
    return host.partition(":")[0].lower()


def _is_address(name: str) -> bool:
    """Whether a name in a Host header is an IP address, which no page can point elsewhere."""
    bracketed = name.startswith("[") and name.endswith("]")
    try:
        address = ipaddress.ip_address(name[1:-1] if bracketed else name)
    except ValueError:
        return False
    return bracketed == (address.version == 6)


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
    message, headers = f"the body is larger than {limit} bytes", {"Connection": "close"}
    return ApiError(413, message, code="too_large", headers=headers)
