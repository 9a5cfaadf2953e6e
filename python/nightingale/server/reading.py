"""How fast a request must come."""

from __future__ import annotations

import asyncio
from typing import Any

import h11


class PacedReading(asyncio.Protocol):
    """Ends a connection whose request comes too slowly: its head must be there after `head_timeout`
    seconds, and its body must bring `min_body_rate` bytes a second in each such span, however often
    a byte comes. For uvicorn's HTTP connections."""

    config: Any  # uvicorn's protocols have these
    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport
    conn: h11.Connection
    cycle: Any
    flow: Any
    _received = 0  # bytes
    _received_before = 0  # this span
    _stage: Any = None
    _span: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._begin_stage()

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        super().data_received(data)
        if self._stage != (self.conn.their_state, self.cycle):
            self._begin_stage()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_span()
        super().connection_lost(exc)

    def _begin_stage(self) -> None:
        """The client begins the head or the body of a request, or it is the server's turn."""
        self._stage = (self.conn.their_state, self.cycle)
        self._end_span()
        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            self._begin_span()

    def _begin_span(self) -> None:
        self._received_before = self._received
        self._span = self.loop.call_later(self.config.settings.head_timeout, self._check_span)

    def _end_span(self) -> None:
        if self._span is not None:
            self._span.cancel()

    def _check_span(self) -> None:
        if self.transport.get_protocol() is not self:
            return  # it is a WebSocket's now
        settings = self.config.settings
        received = self._received - self._received_before
        enough = received >= settings.min_body_rate * settings.head_timeout
        # While the server does not read, the client cannot send.
        if self.conn.their_state is h11.SEND_BODY and (enough or self.flow.read_paused):
            self._begin_span()
        else:
            self.transport.abort()
