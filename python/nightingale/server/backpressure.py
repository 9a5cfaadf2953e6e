"""The writing side of a connection: how long a client may take nothing, and what waits for it."""

from __future__ import annotations

import asyncio
import fcntl
import struct
import termios
import time
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from .context import ENDING
from .throttle import ConnectionThrottle, Throttle

CHECKS = 8  # of a client's progress, within the time it has
MOST_UNTAKEN = 1_000_000  # bytes that may wait for a client before nothing more is read of it
PART = 2048  # bytes that are taken in at once: up to 340 pings
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
    """Also of a WebSocket: what it sends is taken in small parts, and with rests, in which others
    have the event loop. Answers to pings wait for nobody: with too much untaken, nothing more is
    read. The end of the server is told to the application, which then says goodbye."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._ending = asyncio.Event()
        self._may_read = asyncio.Event()
        self._may_read.set()
        self._arrived = b""  # and not yet taken in
        self._next_part: asyncio.TimerHandle | None = None
        self._throttle: ConnectionThrottle | None = None

    def data_received(self, data: bytes) -> None:
        if not self.handshake_initiated:
            super().data_received(data)
            return
        self._arrived += data
        if self._next_part is None:
            self._take_in()

    def _take_in(self) -> None:
        """A part of what has arrived; others after a rest."""
        began = time.monotonic()
        part, self._arrived = self._arrived[:PART], self._arrived[PART:]
        super().data_received(part)
        if self._throttle is None:
            shared: Throttle = self.config.loaded_app.state.server.throttle
            self._throttle = ConnectionThrottle(shared, self.client[0] if self.client else "")
        rest = self._throttle.rest(time.monotonic() - began)
        if self.transport.get_write_buffer_size() > MOST_UNTAKEN:
            self._may_read.clear()
        self._next_part = None
        if rest or self._arrived:
            self._next_part = self.loop.call_later(rest, self._go_on)
        self._read_or_hold()

    def _go_on(self) -> None:
        self._next_part = None
        if self._arrived and self._may_read.is_set():
            self._take_in()
        else:
            self._read_or_hold()

    def _read_or_hold(self) -> None:
        """Reads more once what has arrived was taken in, and the application has had it."""
        if self.transport.is_closing():
            return
        if self._next_part is not None or not self._may_read.is_set():
            self.transport.pause_reading()
        elif not self.read_paused:
            self.transport.resume_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._may_read.set()
        if self._next_part is None:
            self._go_on()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._next_part is not None:
            self._next_part.cancel()
        self._arrived = b""
        self._drop_messages()
        super().connection_lost(exc)
        self._may_read.set()

    def _drop_messages(self) -> None:
        """Those of a client who has left: nobody would hear what comes of them."""
        waiting = [self.queue.get_nowait() for _ in range(self.queue.qsize())]
        for event in waiting:
            if event["type"] != "websocket.receive":  # the application expects all others
                self.queue.put_nowait(event)

    async def run_asgi(self) -> None:
        self.scope["extensions"][ENDING] = {"event": self._ending}
        await super().run_asgi()

    async def receive(self) -> Any:
        await self._may_read.wait()
        message = await super().receive()
        self._read_or_hold()
        return message

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
