"""Who may send a recording, who waits and who is refused."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from nightingale.server import Settings
from nightingale.server.errors import ApiError
from nightingale.server.uploads import UploadSlots


async def take(stack: AsyncExitStack, slots: UploadSlots, address: str) -> None:
    await asyncio.wait_for(stack.enter_async_context(slots.slot(address)), 5)


def slots_of(**settings: float) -> UploadSlots:
    return UploadSlots(Settings(max_concurrent_uploads=4, first_audio_timeout=0.1, **settings))


def test_one_address_has_half_of_the_slots() -> None:
    async def run() -> None:
        slots = slots_of()
        async with AsyncExitStack() as stack:
            for address in ("a", "a", "b", "b"):
                await take(stack, slots, address)
            for address in ("a", "c"):
                with pytest.raises(ApiError) as caught:
                    await take(stack, slots, address)
                assert caught.value.status_code == 503
                assert caught.value.headers["Retry-After"] == "5"
        async with AsyncExitStack() as stack:  # all are free again
            for address in ("c", "c", "a", "b"):
                await take(stack, slots, address)

    asyncio.run(run())


def test_who_waits_gets_the_slot_that_becomes_free() -> None:
    async def run() -> None:
        slots = UploadSlots(Settings(max_concurrent_uploads=1))
        held = AsyncExitStack()
        await take(held, slots, "a")
        async with AsyncExitStack() as stack:
            waiting = asyncio.create_task(take(stack, slots, "b"))
            await asyncio.sleep(0.05)
            assert not waiting.done()
            await held.aclose()
            await waiting

    asyncio.run(run())


def test_no_more_wait_than_the_queue_has_places() -> None:
    async def run() -> list[int]:
        slots = slots_of(max_queue=3)
        async with AsyncExitStack() as stack:
            for address in ("a", "a"):
                await take(stack, slots, address)
            others = [take(stack, slots, "a") for _ in range(5)]
            refused = await asyncio.gather(*others, return_exceptions=True)
        return [error.status_code for error in refused if isinstance(error, ApiError)]

    assert sorted(asyncio.run(run())) == [429, 429, 503, 503, 503]
