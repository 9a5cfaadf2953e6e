"""Several texts spoken at once, and one beside other work of an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from .option import shown
from .options import SpeechOptions

if TYPE_CHECKING:
    from ._overrides import SpeechOverrides

RUNNING = 8  # texts at once: as many as share the passes of T3

T = TypeVar("T")


def batch_requests(
    texts: Sequence[str | tuple[str, SpeechOverrides]],
    options: SpeechOptions | None,
    overrides: Any,
) -> list[tuple[str, SpeechOptions]]:
    """Each text and its options, checked."""
    if isinstance(texts, str):
        raise ValueError("texts must be a list of texts, not one text")
    requests = []
    for number, given in enumerate(texts):
        text, own = (given, {}) if isinstance(given, str) else _pair(number, given)
        merged = SpeechOptions.merged("generate_batch", options, {**overrides, **own})
        requests.append((text, merged))
    return requests


def _pair(number: int, given: Any) -> tuple[str, dict[str, Any]]:
    is_pair = isinstance(given, tuple | list) and len(given) == 2
    if not (is_pair and isinstance(given[0], str) and isinstance(given[1], dict)):
        raise ValueError(
            f"texts[{number}] must be a text, or a text and a dict of options, not {shown(given)}"
        )
    return given[0], given[1]


def in_turns(
    begin: Iterable[Callable[[], Iterator[T | None]]],
) -> Iterator[tuple[int, list[T] | Exception]]:
    """Runs works of many steps, RUNNING at once, one step of each in turn. Yields the number of
    each that has ended and its results, which are what steps yield but None, or what it raised."""
    waiting = enumerate(begin)
    running: dict[int, tuple[Iterator[T | None], list[T]]] = {}
    more = True
    while more or running:
        while more and len(running) < RUNNING:
            number, start = next(waiting, (-1, None))
            more = start is not None
            if start is not None:
                try:
                    running[number] = (start(), [])
                except Exception as error:
                    yield number, error
        for number, (steps, results) in list(running.items()):
            try:
                result = next(steps)
            except StopIteration:
                del running[number]
                yield number, results
            except Exception as error:
                del running[number]
                yield number, error
            else:
                if result is not None:
                    results.append(result)


async def in_threads(steps: Iterator[T | None]) -> AsyncGenerator[T, None]:
    """What the steps yield but None; they run in the event loop's threads, one at a time."""
    closing = threading.Event()

    def advance() -> T | None:
        for result in steps:
            if result is not None or closing.is_set():
                return result
        return None

    try:
        while (result := await asyncio.to_thread(advance)) is not None:
            yield result
    finally:
        closing.set()  # for what is under way; the rest is never asked for
