"""uvicorn's server, which limits its connections and ends when it can no longer speak."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from typing import Any

import uvicorn
from uvicorn.config import STARTUP_FAILURE

from .accepting import Acceptor, ConnectionLimits

logger = logging.getLogger(__name__)


class HttpServer(uvicorn.Server):
    """Runs until a signal ends it, or until its engine has failed; `status` tells which."""

    config: Any  # a _Config of serving.py
    status = 0

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """uvicorn's for sockets that listen, with this package's way to take connections."""
        await self.lifespan.startup()
        if self.lifespan.should_exit:
            sys.exit(STARTUP_FAILURE)
        limits = ConnectionLimits(self.config.settings, self.server_state.connections)
        acceptors: Any = [Acceptor(each, self._protocol, limits) for each in sockets or ()]
        self.servers = acceptors  # it only closes them
        self.started = True

    def _protocol(self) -> asyncio.Protocol:
        kind: Any = self.config.http_protocol_class
        protocol: asyncio.Protocol = kind(self.config, self.server_state, self.lifespan.state)
        return protocol

    async def on_tick(self, counter: int) -> bool:
        engine = self.config.loaded_app.state.server.engine
        if engine.failed and not self.status:
            self.status = 1
            logger.error("the server ends, because its engine has failed")
        return await super().on_tick(counter) or self.status != 0
