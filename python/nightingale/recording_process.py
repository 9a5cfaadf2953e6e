"""Reads one recording in a process of its own: `python -m nightingale.recording_process`.

A file can be made so that decoding it takes minutes, and only a process can be ended. The file
comes at standard input; a line of JSON and the samples go to standard output.
"""

from __future__ import annotations

import json
import logging
import os
import resource
from contextlib import suppress
from typing import Any

import numpy as np

from ._core import Error
from .recording import Recording, read_recording
from .recording import logger as warnings

KINDS = {"ValueError": ValueError, "Error": Error}
MOST_SECONDS = 10  # of the processor's time
NICENESS = 5  # speech that is being made comes first


def pack(result: Recording | Exception, told: list[str]) -> bytes:
    """What `unpack` takes; told: the warnings."""
    head: dict[str, Any] = {"warnings": told}
    if isinstance(result, Exception):
        kind = Error if isinstance(result, Error) else ValueError
        head |= {"kind": kind.__name__, "message": str(result)}
        return json.dumps(head).encode() + b"\n"
    head |= {"duration": result.duration, "samples": len(result.at_24k)}
    parts = (result.at_24k.tobytes(), result.at_16k.tobytes())
    return b"".join((json.dumps(head).encode(), b"\n", *parts))


def unpack(data: bytes) -> Recording:
    """The recording; raises what reading it raised, and repeats its warnings."""
    line, _, content = data.partition(b"\n")
    head = json.loads(line)
    for message in head["warnings"]:
        warnings.warning("%s", message)
    if "kind" in head:
        raise KINDS[head["kind"]](head["message"])
    samples = np.frombuffer(content, np.float32)
    return Recording(samples[: head["samples"]], samples[head["samples"] :], head["duration"])


class _Told(logging.Handler):
    """Keeps the messages."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


def main() -> None:
    # SIGXCPU then ends the process, whatever it is doing.
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS + 1))
    os.nice(NICENESS)
    told = _Told()
    warnings.addHandler(told)
    warnings.propagate = False
    result: Recording | Exception
    try:
        with open(0, "rb") as file:
            result = read_recording(file)
    except (ValueError, Error) as error:
        result = error
    # Whoever asked for it may have been killed meanwhile.
    with suppress(BrokenPipeError), open(1, "wb", closefd=False) as out:
        out.write(pack(result, told.messages))


if __name__ == "__main__":
    main()
