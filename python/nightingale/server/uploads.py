"""How many recordings the server receives and holds at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio

from .context import Settings
from .errors import ApiError


@dataclass
class _Address:
    """A client's address: its share of the slots, and how many requests have or want one."""

    slots: asyncio.Semaphore
    users: int = 0


class UploadSlots:
    """A recording is received only once it has a slot, so that unfinished ones cannot fill the
    disk. One address has at most half of them."""

    def __init__(self, settings: Settings) -> None:
        self._slots = asyncio.Semaphore(settings.max_concurrent_uploads)
        self._share = max(1, settings.max_concurrent_uploads // 2)
        self._patience = settings.first_audio_timeout
        self._most_waiting = settings.max_queue
        self._waiting = 0
        self._addresses: dict[str, _Address] = {}

    @asynccontextmanager
    async def slot(self, address: str) -> AsyncIterator[None]:
        """Waits for a slot and holds it; ApiError where too many wait, or for too long."""
        if self._waiting >= self._most_waiting:
            raise _refusal(429, "queue_full")
        own = self._addresses.setdefault(address, _Address(asyncio.Semaphore(self._share)))
        own.users += 1
        try:
            await self._wait_for(own)
            try:
                yield
            finally:
                self._slots.release()
                own.slots.release()
        finally:
            own.users -= 1
            if not own.users:
                del self._addresses[address]

    async def _wait_for(self, own: _Address) -> None:
        self._waiting += 1
        try:
            with anyio.fail_after(self._patience):
                await self._acquire(own)
        except TimeoutError:
            raise _refusal(503, "timeout") from None
        finally:
            self._waiting -= 1

    async def _acquire(self, own: _Address) -> None:
        await own.slots.acquire()
        try:
            await self._slots.acquire()
        except BaseException:
            own.slots.release()
            raise


def _refusal(status: int, code: str) -> ApiError:
    message = "too many recordings are being received; try again later"
    headers = {"Retry-After": "5", "Connection": "close"}
    return ApiError(status, message, code=code, headers=headers)
