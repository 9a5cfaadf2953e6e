"""Reads one recording in a process of its own: `python -m nightingale.recording_process [SECONDS]`.

Without SECONDS it is read to make a voice of it, else to convert it, of so many at most.

A file can be made so that decoding it takes minutes, and only a process can be ended. The file
comes at standard input; a line of JSON and the samples go to standard output.
"""

from __future__ import annotations

import json
import logging
import math
import os
import resource
import sys
from contextlib import suppress
from typing import Any, BinaryIO

import numpy as np

from ._core import Error
from .long_recording import Level, LongRecording
from .recording import Recording, read_recording
from .recording import logger as warnings

KINDS = {"ValueError": ValueError, "Error": Error}
MOST_SECONDS = 10  # of the processor's time
NICENESS = 5  # speech that is being made comes first


def decoding_limit(seconds: float | None) -> int:
    """Seconds of the processor's time for a recording; seconds: where it is to be converted."""
    return MOST_SECONDS if seconds is None else max(MOST_SECONDS, math.ceil(seconds / 20))


def pack(result: Recording | np.ndarray | Exception, told: list[str]) -> bytes:
    """What `unpack` takes; told: the warnings."""
    head: dict[str, Any] = {"warnings": told}
    if isinstance(result, Exception):
        kind = Error if isinstance(result, Error) else ValueError
        head |= {"kind": kind.__name__, "message": str(result)}
        return json.dumps(head).encode() + b"\n"
    if isinstance(result, np.ndarray):
        return json.dumps(head).encode() + b"\n" + result.tobytes()
    head |= {"duration": result.duration, "samples": len(result.at_24k)}
    parts = (result.at_24k.tobytes(), result.at_16k.tobytes())
    return b"".join((json.dumps(head).encode(), b"\n", *parts))


def unpack(data: bytes) -> Recording | np.ndarray:
    """The recording, or the samples to convert; raises what reading it raised, and repeats its
    warnings."""
    line, _, content = data.partition(b"\n")
    head = json.loads(line)
    for message in head["warnings"]:
        warnings.warning("%s", message)
    if "kind" in head:
        raise KINDS[head["kind"]](head["message"])
    samples = np.frombuffer(content, np.float32)
    if "samples" not in head:
        return samples
    return Recording(samples[: head["samples"]], samples[head["samples"] :], head["duration"])


class _Told(logging.Handler):
    """Keeps the messages."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


def _source(file: BinaryIO, seconds: float) -> np.ndarray:
    """All samples of a recording to convert, mono at 16 kHz, [n] float32."""
    recording = LongRecording.of(file)
    level = Level("the recording", seconds)
    blocks = []
    for block in recording.blocks():
        level.add(block)
        blocks.append(block)
    level.check()
    return np.concatenate(blocks)


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else None
    # SIGXCPU then ends the process, whatever it is doing.
    limit = decoding_limit(seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
    os.nice(NICENESS)
    told = _Told()
    warnings.addHandler(told)
    warnings.propagate = False
    result: Recording | np.ndarray | Exception
    try:
        with open(0, "rb") as file:
            result = read_recording(file) if seconds is None else _source(file, seconds)
    except (ValueError, Error) as error:
        result = error
    # Whoever asked for it may have been killed meanwhile.
    with suppress(BrokenPipeError), open(1, "wb", closefd=False) as out:
        out.write(pack(result, told.messages))


if __name__ == "__main__":
    main()
