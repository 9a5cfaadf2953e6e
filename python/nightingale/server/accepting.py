"""Taking connections: as many as the limits allow, also where the system has run out of files."""

from __future__ import annotations

import asyncio
import json
import logging
import resource
import socket
import time
from collections import Counter
from collections.abc import Callable, Collection
from ipaddress import ip_address, ip_network
from typing import Any

from .context import Settings
from .errors import ApiError

logger = logging.getLogger(__name__)

BURST = 16  # connections that are taken before others have their turn
RETRY_SECONDS = 1.0  # after the system has refused one
TOLD_SECONDS = 60.0  # between two lines of the log about that
OWN_FILES = 64  # descriptors that are kept for other things than connections
LEAST_CONNECTIONS = 8


class ConnectionLimits:
    """Whether one more connection may be had. Others are counted by uvicorn's set of them."""

    def __init__(self, settings: Settings, connections: Collection[Any]) -> None:
        self._most = min(settings.max_connections, _file_limit())
        self._most_of_one = settings.max_connections_per_address
        self._proxies = [ip_network(proxy) for proxy in settings.trusted_proxies]
        self._connections = connections

    def allow(self, host: str, pending: Counter[str]) -> bool:
        """pending: those of each address that uvicorn does not know of yet."""
        if len(self._connections) + pending.total() >= self._most:
            return False
        if self._is_proxy(host):
            return True
        known = [each for each in self._connections if each.client and each.client[0] == host]
        return len(known) + pending[host] < self._most_of_one

    def _is_proxy(self, host: str) -> bool:
        """One that many clients share."""
        return bool(self._proxies) and any(ip_address(host) in each for each in self._proxies)


def _file_limit() -> int:
    """Connections for which this process may have descriptors."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return max(soft - OWN_FILES, LEAST_CONNECTIONS)


class Acceptor:
    """Takes connections at a socket. asyncio's own server tries again at once, for each place in
    the backlog and with a traceback each, when the system has no more files."""

    def __init__(
        self,
        listener: socket.socket,
        protocol: Callable[[], asyncio.Protocol],
        limits: ConnectionLimits,
    ) -> None:
        self._listener = listener
        self._protocol = protocol
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._pending: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._retry: asyncio.TimerHandle | None = None
        self._told = -TOLD_SECONDS
        listener.setblocking(False)
        self._listen()

    def close(self) -> None:
        """Takes no more; those that were taken stay."""
        self._loop.remove_reader(self._listener)
        if self._retry is not None:
            self._retry.cancel()

    async def wait_closed(self) -> None:
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _listen(self) -> None:
        self._loop.add_reader(self._listener, self._accept)

    def _accept(self) -> None:
        for _ in range(BURST):
            try:
                connection, address = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._pause(error)
                return
            connection.setblocking(False)
            if self._limits.allow(address[0], self._pending):
                self._take(connection, address[0])
            else:
                _refuse(connection)

    def _pause(self, error: OSError) -> None:
        self._loop.remove_reader(self._listener)
        self._retry = self._loop.call_later(RETRY_SECONDS, self._listen)
        if time.monotonic() - self._told >= TOLD_SECONDS:
            self._told = time.monotonic()
            logger.warning("no connection can be taken for now: %s", error.strerror)

    def _take(self, connection: socket.socket, host: str) -> None:
        self._pending[host] += 1
        task = self._loop.create_task(self._connect(connection, host))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connect(self, connection: socket.socket, host: str) -> None:
        try:
            await self._loop.connect_accepted_socket(self._protocol, connection)
        except OSError:  # it has gone
            connection.close()
        finally:
            self._pending[host] -= 1
            if not self._pending[host]:
                del self._pending[host]


def _refuse(connection: socket.socket) -> None:
    """Answers without a look at what was asked: reading it would take what there is none of."""
    with connection:
        try:
            connection.send(_REFUSAL)
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it has gone


def _refusal() -> bytes:
    told = ApiError(503, "too many connections; try again later", code="too_many_connections")
    body = json.dumps(told.body).encode()
    lines = ("HTTP/1.1 503 Service Unavailable", "Content-Type: application/json", "Retry-After: 5")
    length = f"Content-Length: {len(body)}"
    return "\r\n".join((*lines, "Connection: close", length, "", "")).encode() + body


_REFUSAL = _refusal()
