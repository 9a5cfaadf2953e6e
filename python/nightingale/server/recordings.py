"""Recordings that clients send, read outside of this process."""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import BinaryIO, cast

import anyio
import numpy as np

from ..long_recording import LongRecording
from ..recording import Recording
from ..recording_process import decoding_limit, unpack


class RecordingReader:
    """Reads one recording at a time."""

    def __init__(self) -> None:
        self._turn = asyncio.Semaphore(1)

    async def read(self, file: BinaryIO) -> Recording:
        """A recording in a file of the system; raises what `read_recording` raises. Whoever does
        not wait any longer ends the process."""
        return cast(Recording, await self._read(file, None))

    async def read_source(self, file: BinaryIO, seconds: float) -> LongRecording:
        """A recording to convert, of so many seconds at most."""
        return LongRecording.of_samples(cast(np.ndarray, await self._read(file, seconds)))

    async def _read(self, file: BinaryIO, seconds: float | None) -> Recording | np.ndarray:
        arguments = () if seconds is None else (str(seconds),)
        async with self._turn:
            status, output = await _read_in_a_process(file, *arguments)
        if status == -signal.SIGXCPU:
            limit = decoding_limit(seconds)
            raise ValueError(f"the recording takes more than {limit} s to decode")
        if status:
            raise RuntimeError(f"reading a recording failed with status {status}")
        return unpack(output)


async def _read_in_a_process(file: BinaryIO, *arguments: str) -> tuple[int, bytes]:
    """The status of the process, and what it has written."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "nightingale.recording_process", *arguments),
        stdin=file,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,  # Ctrl-C at the terminal is not for it
    )
    try:
        output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            with anyio.CancelScope(shield=True):
                await process.wait()
    return await process.wait(), output
