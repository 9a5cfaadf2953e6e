"""The writing side of a connection: how long a client may take nothing, and what waits for it."""

from __future__ import annotations

import asyncio
import fcntl
import struct
import termios
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from .context import ENDING

CHECKS = 8  # of a client's progress, within the time it has
MOST_UNTAKEN = 1_000_000  # bytes that may wait for a client before nothing more is read of it
LAST_CLOSE_TIMEOUT = 2.0  # seconds for which a server that ends waits for a client's goodbye


class CountingTransport:
    """A transport that knows how many bytes its client has taken."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self._written = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        self._written += len(data)
        self._transport.write(data)

    def taken(self) -> int:
        """Bytes that have arrived at the client's system."""
        kept = _unacknowledged(self._transport.get_extra_info("socket"))
        return self._written - int(self._transport.get_write_buffer_size()) - kept


def _unacknowledged(socket: Any) -> int:
    """Bytes that this system keeps: it takes megabytes, and more only when a third has left."""
    try:
        count = fcntl.ioctl(socket.fileno(), termios.TIOCOUTQ, bytes(4))
    except (OSError, ValueError):  # a system that does not tell, or a socket that is closed
        return 0
    return int(struct.unpack("i", count)[0])


class Backpressure(asyncio.Protocol):
    """Ends a connection whose client has taken nothing of what waits for it for `patience`
    seconds. One who reads slowly stays."""

    config: Any  # uvicorn's protocols set it: with `patience`
    loop: asyncio.AbstractEventLoop
    transport: Any
    _check: asyncio.TimerHandle | None = None
    _taken = 0
    _moved = 0.0  # when the client was last seen to have taken something

    def connection_made(self, transport: Any) -> None:
        if not isinstance(transport, CountingTransport):  # it is one after an upgrade
            transport = CountingTransport(transport)
        super().connection_made(transport)
        # `pause_writing` then tells of the first byte that the system does not take.
        transport.set_write_buffer_limits(0)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._taken, self._moved = self.transport.taken(), self.loop.time()
        self._check_later()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_checking()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_checking()
        super().connection_lost(exc)

    def _check_later(self) -> None:
        self._check = self.loop.call_later(self.config.patience / CHECKS, self._check_progress)

    def _check_progress(self) -> None:
        taken = self.transport.taken()
        if taken > self._taken:
            self._taken, self._moved = taken, self.loop.time()
        if self.loop.time() - self._moved >= self.config.patience:
            self.transport.abort()
        else:
            self._check_later()

    def _stop_checking(self) -> None:
        if self._check is not None:
            self._check.cancel()


class SocketWriting(Backpressure, WebSocketsSansIOProtocol):
    """Also of a WebSocket, whose answers to pings wait for nobody: with too much untaken, nothing
    more is read. The end of the server is told to the application, which then says goodbye."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._ending = asyncio.Event()
        self._may_read = asyncio.Event()
        self._may_read.set()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.transport.get_write_buffer_size() > MOST_UNTAKEN:
            self._may_read.clear()
            self.transport.pause_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._may_read.set()
        if not self.read_paused:
            self.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._may_read.set()

    async def run_asgi(self) -> None:
        self.scope["extensions"][ENDING] = {"event": self._ending}
        await super().run_asgi()

    async def receive(self) -> Any:
        await self._may_read.wait()
        return await super().receive()

    async def send(self, message: Any) -> None:
        closing = message["type"] == "websocket.close" and self._ending.is_set()
        if closing and not self.writable.is_set():
            self.transport.abort()  # it would not read this either
        else:
            await super().send(message)

    def shutdown(self) -> None:
        if self.handshake_complete and not self.close_sent:
            self.close_timeout = LAST_CLOSE_TIMEOUT
            self._ending.set()
        else:
            super().shutdown()
