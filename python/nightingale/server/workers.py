"""Several processes that serve at one address, and the one that looks after them."""

from __future__ import annotations

import ctypes
import os
import pickle
import signal
import sys
import threading
import time
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from socket import socket
from typing import Any

from prometheus_client.multiprocess import mark_process_dead
from uvicorn import Config
from uvicorn.supervisors import multiprocess

from .http_server import HttpServer

PR_SET_PDEATHSIG = 1  # of Linux's prctl
LAST_SECONDS = 10  # beyond the time to shut down, after which an orphan is ended by force


class Worker(multiprocess.Process):
    """uvicorn's, with this package's server, whose status it ends with. It does not outlive its
    supervisor: that holds the only end of a pipe at which the worker listens."""

    def __init__(self, config: Config, sockets: list[socket]) -> None:
        self._supervisor = os.getpid()
        self._lifeline, self._held = Pipe(duplex=False)
        super().__init__(config, sockets)

    def __getstate__(self) -> dict[str, Any]:
        """What the worker's process gets of it: not the supervisor's end of the pipe."""
        return {name: value for name, value in vars(self).items() if name != "_held"}

    @property
    def server(self) -> HttpServer:
        if not isinstance(self._server, HttpServer):
            self._server = HttpServer(self.config)
        return self._server

    def target(self, sockets: list[socket] | None = None) -> None:
        end_with_parent(self._supervisor)
        limit = (self.config.timeout_graceful_shutdown or 0) + LAST_SECONDS
        threading.Thread(target=_end_with, args=(self._lifeline, limit), daemon=True).start()
        super().target(sockets)
        sys.exit(self.server.status)

    def ping(self, timeout: float = 5) -> bool:
        """Whether it answers; uvicorn's own waits the whole time for one that ends meanwhile."""
        try:
            self.parent_conn.send(b"ping")
            if self.parent_conn in wait([self.parent_conn, self.process.sentinel], timeout):
                self.parent_conn.recv()
                return True
        except (OSError, EOFError, pickle.UnpicklingError):
            pass
        return False


def end_with_parent(parent: int) -> None:
    """Has Linux send SIGTERM to this process when its parent ends, however that ends."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # it ended before
        os.kill(os.getpid(), signal.SIGTERM)


def _end_with(lifeline: Connection, limit: float) -> None:
    """Ends this process once the other end of a pipe has closed: in order, then by force."""
    try:
        lifeline.recv_bytes()
    except (EOFError, OSError):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(limit)
        os._exit(1)


# uvicorn's supervisor has no argument for the class of its workers.
multiprocess.Process = Worker  # type: ignore[misc]


class Supervisor(multiprocess.Multiprocess):
    """uvicorn's, which starts a worker anew when one ends. It also knows what ended it, and takes
    what dead workers were doing out of the metrics; their counts stay."""

    status = 1  # of a worker that could not start
    _pids: frozenset[int] = frozenset()

    def keep_subprocess_alive(self) -> None:
        super().keep_subprocess_alive()
        pids = frozenset(process.pid for process in self.processes if process.pid is not None)
        for pid in self._pids - pids:
            mark_process_dead(pid)  # type: ignore[no-untyped-call]
        self._pids = pids

    def handle_int(self) -> None:
        super().handle_int()
        self.status = 128 + signal.SIGINT

    def handle_term(self) -> None:
        super().handle_term()
        self.status = 128 + signal.SIGTERM
