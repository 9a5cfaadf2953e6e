"""uvicorn's connections, given up where the client neither sends nor takes what it should."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol


class _Impatient(asyncio.Protocol):
    """Ends a connection whose client has sent nothing for `patience` seconds though more is due, or
    has left something untaken as long."""

    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport

    def __init__(self, *args: Any, patience: float, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._patience = patience
        self._silent: asyncio.TimerHandle | None = None
        self._full: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        # `pause_writing` then tells of the first byte that the system does not take.
        transport.set_write_buffer_limits(0)
        self._listen()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._listen()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._full = self.loop.call_later(self._patience, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        _stop(self._full)

    def connection_lost(self, exc: Exception | None) -> None:
        _stop(self._silent)
        _stop(self._full)
        super().connection_lost(exc)

    def _listen(self) -> None:
        _stop(self._silent)
        self._silent = self.loop.call_later(self._patience, self._end_if_silent)

    def _end_if_silent(self) -> None:
        # After an upgrade the connection is another protocol's.
        if self.transport.get_protocol() is self and self._more_is_due():
            self.transport.abort()

    def _more_is_due(self) -> bool:
        raise NotImplementedError


class HttpConnection(_Impatient, H11Protocol):
    """HTTP by h11, which bounds the head of a request."""

    def _more_is_due(self) -> bool:
        return self.conn.their_state in (h11.IDLE, h11.SEND_BODY)


class SocketConnection(_Impatient, WebSocketsSansIOProtocol):
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
