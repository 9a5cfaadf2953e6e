"""Parts of a network that do not wait for each other, side by side on a GPU.

Each has kernels too small to fill it. What they do is the same as one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch

Result = TypeVar("Result")

_streams: list[torch.cuda.Stream] = []


def abreast(parts: Sequence[Callable[[], Result]], like: torch.Tensor) -> list[Result]:
    """Calls each, on a stream of its own where `like` is on a GPU: gradients go back the same
    way."""
    if not like.is_cuda:
        return [part() for part in parts]
    while len(_streams) < len(parts):
        _streams.append(torch.cuda.Stream(like.device))
    here = torch.cuda.current_stream(like.device)
    results = []
    for part, stream in zip(parts, _streams, strict=False):
        stream.wait_stream(here)
        with torch.cuda.stream(stream):
            results.append(part())
    for stream in _streams[: len(parts)]:
        here.wait_stream(stream)
    return results
