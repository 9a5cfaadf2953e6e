"""One line on standard error for each answer."""

from __future__ import annotations

import logging
import time
from urllib.parse import quote

from starlette.types import ASGIApp, Message, Receive, Scope, Send

logger = logging.getLogger("nightingale.access")


class AccessLog:
    """Logs who asked for what, the status, the seconds to the end of the answer and its bytes; no
    text and no key."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        if not logger.handlers:  # in a worker's process nobody has set logging up
            handler = logging.StreamHandler()
            handler.setFormatter(logging.Formatter("nightingale: %(message)s"))
            logger.addHandler(handler)
            logger.propagate = False
        logger.setLevel(logging.INFO)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        began, status, size, whole = time.monotonic(), 0, 0, False

        async def counted(message: Message) -> None:
            nonlocal status, size, whole
            kind = message["type"]
            if kind in ("http.response.start", "websocket.http.response.start"):
                status = message["status"]
            elif kind == "websocket.accept":
                status, whole = 101, True
            size += len(message.get("body") or message.get("bytes") or b"")
            whole = whole or (kind.endswith("response.body") and not message.get("more_body"))
            await send(message)

        try:
            await self.app(scope, receive, counted)
        finally:
            client = scope["client"][0] if scope.get("client") else "-"
            method = scope.get("method", "WS")
            logger.info(
                "%s %s %s %s %.3f s %d bytes%s",
                *(client, method, quote(scope["path"]), status or "-"),
                *(time.monotonic() - began, size, "" if whole else ", broken off"),
            )
