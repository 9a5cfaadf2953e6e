"""Running the application under uvicorn, in this process or in several."""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import socket
import tempfile
from collections.abc import Callable
from typing import Any

import h11
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..hub import find_model
from .app import create_app, make_engine
from .backpressure import Backpressure, SocketWriting
from .context import Settings
from .guard import MOST_JSON
from .http_server import HttpServer
from .metrics import SHARED_FOLDER
from .reading import PacedReading
from .workers import Supervisor


def serve(
    settings: Settings,
    listener: socket.socket | None,
    workers: int,
    shutdown_timeout: int,
    tell: Callable[[str], None],
    wyoming_listener: socket.socket | None = None,
) -> int:
    """Serves at sockets that listen, one for HTTP and one for Wyoming, until told to end; `tell`
    hears where that is. Gives the status to exit with."""
    if workers == 1:
        engine = make_engine(settings)
        engine.start()
        if wyoming_listener is not None:
            tell(f"nightingale: Wyoming at {_address(wyoming_listener, 'tcp')}")
        if listener is not None:
            tell(f"nightingale: listening on {_address(listener)}")
        app = functools.partial(create_app, settings, engine, wyoming_listener)
        config = _Config(app, settings, shutdown_timeout)
        server = HttpServer(config)
        server.run([] if listener is None else [listener])  # raises the signal that ended it
        return server.status
    assert listener is not None, "several workers share one socket, HTTP's"
    # A model that is not there is told here, once, and not by every worker again and again.
    find_model(settings.model, settings.load.offline, False, settings.load.variant)
    with tempfile.TemporaryDirectory() as shared:
        os.environ[SHARED_FOLDER] = shared
        app = functools.partial(create_app, settings)
        config = _Config(app, settings, shutdown_timeout)
        config.workers = workers
        tell(f"nightingale: listening on {_address(listener)} with {workers} workers")
        supervisor = Supervisor(config, sockets=[listener])
        supervisor.run()
        return supervisor.status


class _Config(uvicorn.Config):
    """uvicorn's, with what its connections need to know."""

    def __init__(
        self, factory: Callable[[], FastAPI], settings: Settings, shutdown_timeout: int
    ) -> None:
        super().__init__(
            factory,
            factory=True,
            http=HttpConnection,
            ws=SocketConnection,
            log_level=logging.WARNING,
            access_log=False,
            server_header=False,
            proxy_headers=False,  # the application reads those of proxies that it is told of
            timeout_graceful_shutdown=shutdown_timeout,
            timeout_worker_healthcheck=60,
            ws_max_size=MOST_JSON,
            ws_ping_timeout=None,  # the answer of a client who reads slowly comes late
            lifespan="on",
        )
        self.settings = settings
        self.patience = settings.stall_timeout  # seconds


def _address(listener: socket.socket, scheme: str = "http") -> str:
    host, port = listener.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


class _Impatient(asyncio.Protocol):
    """Ends a connection whose client has sent nothing for `patience` seconds though more is due."""

    config: Any  # uvicorn's protocols set it: a _Config
    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport
    _silent: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._listen()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._listen()

    def connection_lost(self, exc: Exception | None) -> None:
        _stop(self._silent)
        super().connection_lost(exc)

    def _listen(self) -> None:
        _stop(self._silent)
        self._silent = self.loop.call_later(self.config.patience, self._end_if_silent)

    def _end_if_silent(self) -> None:
        # After an upgrade the connection is another protocol's.
        if self.transport.get_protocol() is self and self._more_is_due():
            self.transport.abort()

    def _more_is_due(self) -> bool:
        raise NotImplementedError


class HttpConnection(PacedReading, _Impatient, Backpressure, H11Protocol):
    """HTTP by h11, which bounds the head of a request."""

    def _more_is_due(self) -> bool:
        return self.conn.their_state in (h11.IDLE, h11.SEND_BODY)

    def send_400_response(self, msg: str) -> None:
        """Refuses a request. One that stops being HTTP in its body is being answered already: the
        refusal takes the place of the answer, or where that has begun, ends the connection."""
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.close()


class SocketConnection(_Impatient, SocketWriting):
    """A WebSocket. Once it is open, the application says how long it may be silent."""

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self.handshake_initiated and self.conn.handshake_exc is not None:
            # uvicorn gives no answer to a request that the WebSocket library cannot read.
            self.transport.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
            self.transport.close()

    def _more_is_due(self) -> bool:
        return not self.handshake_complete


def _stop(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
