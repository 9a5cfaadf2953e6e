"""Running the application, in this process or in several."""

from __future__ import annotations

import functools
import logging
import os
import signal
import socket
import tempfile
from collections.abc import Callable
from typing import Any

import uvicorn
from uvicorn.supervisors import Multiprocess

from ..checkpoint import find_checkpoint
from ..hub import resolve
from .app import create_app, make_engine
from .connection import HttpConnection, SocketConnection
from .guard import MOST_JSON
from .metrics import SHARED_FOLDER
from .settings import Settings


def serve(
    settings: Settings,
    listener: socket.socket,
    workers: int,
    shutdown_timeout: int,
    tell: Callable[[str], None],
) -> int:
    """Serves at a socket that listens, until told to end; `tell` hears where that is. Gives the
    status to exit with."""
    address = _address(listener)
    if workers == 1:
        engine = make_engine(settings)
        engine.start()
        tell(f"nightingale: listening on {address}")
        app = create_app(settings, engine)
        uvicorn.Server(_config(app, settings, shutdown_timeout)).run(
            [listener]
        )  # raises what ended it
        return 0
    # A model that is not there is told here, once, and not by every worker again and again.
    find_checkpoint(resolve(settings.model, settings.load.offline, False))
    with tempfile.TemporaryDirectory() as shared:
        os.environ[SHARED_FOLDER] = shared
        app = functools.partial(create_app, settings)
        config = _config(app, settings, shutdown_timeout, factory=True)
        config.workers = workers
        tell(f"nightingale: listening on {address} with {workers} workers")
        supervisor = _Supervisor(config, sockets=[listener])
        supervisor.run()
        return supervisor.status


class _Supervisor(Multiprocess):
    """uvicorn's, which starts a worker anew when one ends; it also knows what ended it."""

    status = 1  # of a worker that could not start

    def handle_int(self) -> None:
        super().handle_int()
        self.status = 128 + signal.SIGINT

    def handle_term(self) -> None:
        super().handle_term()
        self.status = 128 + signal.SIGTERM


def _config(
    app: Any, settings: Settings, shutdown_timeout: int, factory: bool = False
) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        factory=factory,
        http=functools.partial(HttpConnection, patience=settings.stall_timeout),
        ws=functools.partial(SocketConnection, patience=settings.stall_timeout),
        log_level=logging.WARNING,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=shutdown_timeout,
        timeout_worker_healthcheck=60,
        ws_max_size=MOST_JSON,
        lifespan="on",
    )


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
