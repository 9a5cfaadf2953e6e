"""uvicorn's server, which limits its connections and ends when it can no longer speak."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
import time
from collections.abc import Hashable
from typing import Any

import uvicorn
from uvicorn.config import STARTUP_FAILURE

from .accepting import Acceptor, ConnectionLimits

logger = logging.getLogger(__name__)

REST_SECONDS = 1.0  # without anything to do, after which memory is given back


class Rest:
    """Tells when a server comes to rest."""

    def __init__(self) -> None:
        self._work: Hashable = None
        self._since = 0.0
        self._told = False

    def begins(self, busy: bool, work: Hashable) -> bool:
        """True once, when nothing has gone on for a while; work: another value where something has
        gone on since the last call."""
        now = time.monotonic()
        if busy or work != self._work:
            self._work, self._since, self._told = work, now, False
        elif not self._told and now - self._since >= REST_SECONDS:
            self._told = True
            return True
        return False


class HttpServer(uvicorn.Server):
    """Runs until a signal ends it, or until its engine has failed; `status` tells which."""

    config: Any  # a _Config of serving.py
    status = 0

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._rest = Rest()

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
        server = self.config.loaded_app.state.server
        engine = server.engine
        state = self.server_state
        work = (state.total_requests, len(state.connections))
        if self._rest.begins(bool(state.tasks) or engine.busy, work):
            # In a thread, as it takes a few milliseconds.
            server.text_threads.submit(engine.release_memory)
        if engine.failed and not self.status:
            self.status = 1
            logger.error("the server ends, because its engine has failed")
        return await super().on_tick(counter) or self.status != 0
