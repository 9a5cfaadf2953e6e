"""A bounded queue in which no client can push in front of the others."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class QueueFullError(Exception):
    """No more can wait."""


class FairQueue(Generic[T]):
    """Clients take turns; what one client asks for keeps its order. Not for several threads."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._waiting: dict[str, deque[T]] = {}  # the client whose turn is next comes first
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def put(self, client: str, item: T) -> None:
        if self._count >= self.limit:
            raise QueueFullError
        self._waiting.setdefault(client, deque()).append(item)
        self._count += 1

    def pop(self) -> T:
        """The next client's oldest item; that client comes last afterwards."""
        client = next(iter(self._waiting))
        items = self._waiting.pop(client)
        item = items.popleft()
        if items:
            self._waiting[client] = items
        self._count -= 1
        return item

    def remove(self, client: str, item: T) -> bool:
        """Takes an item out of the queue; False where it is not there."""
        items = self._waiting.get(client, deque())
        if item not in items:
            return False
        items.remove(item)
        if not items:
            del self._waiting[client]
        self._count -= 1
        return True

    def clear(self) -> list[T]:
        """Empties the queue and gives what was in it."""
        items = [item for items in self._waiting.values() for item in items]
        self._waiting.clear()
        self._count = 0
        return items
