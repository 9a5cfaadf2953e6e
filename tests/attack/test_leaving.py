"""Clients that leave at the moment when something comes for them."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from nightingale.chunks import Chunk
from nightingale.server.jobs import Job
from nightingale.server.metrics import Metrics
from nightingale.server.speech import SoundResponse


async def ends_with_its_client(turns: int) -> bool:
    """Whether an answer ends whose client leaves so many turns of the event loop after the first
    sound has come."""
    job = Job("a", lambda tts: iter(()))
    server: Any = SimpleNamespace(
        submit=lambda request, work: job,
        engine=SimpleNamespace(cancel=lambda job: None, cache_counts={}),
        settings=SimpleNamespace(first_audio_timeout=60.0),
        metrics=SimpleNamespace(**vars(Metrics()), watch=lambda engine: None),
    )
    gone = asyncio.Event()

    async def receive() -> dict[str, str]:
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        pass  # as uvicorn's does once the client has gone

    formats: Any = SimpleNamespace(response_format="pcm", stream_format="audio")
    response = SoundResponse(server, SimpleNamespace(), formats, job.work)  # type: ignore[arg-type]
    answering = asyncio.create_task(response({"type": "http"}, receive, send))
    await asyncio.sleep(0.01)
    job.give(Chunk(np.zeros(100, np.float32), np.zeros(1, np.int32), [], index=0))
    for _ in range(turns):
        await asyncio.sleep(0)
    gone.set()
    await asyncio.wait({answering}, timeout=5)
    return answering.done()


@pytest.mark.parametrize("turns", range(6))
def test_a_client_that_leaves_as_its_sound_begins_is_spoken_to_no_longer(turns: int) -> None:
    assert asyncio.run(ends_with_its_client(turns))
