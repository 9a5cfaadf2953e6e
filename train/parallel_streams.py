"""Independent parts of a network on parallel CUDA streams.

The kernels of each part are too small to fill the GPU. The results are the same as one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch

Result = TypeVar("Result")

_streams: list[torch.cuda.Stream] = []


def run_parallel(parts: Sequence[Callable[[], Result]], like: torch.Tensor) -> list[Result]:
    """Calls each part, on its own stream if `like` is on a GPU; so does the backward pass."""
    if not like.is_cuda:
        return [part() for part in parts]
    while len(_streams) < len(parts):
        _streams.append(torch.cuda.Stream(like.device))
    current = torch.cuda.current_stream(like.device)
    results = []
    for part, stream in zip(parts, _streams, strict=False):
        stream.wait_stream(current)
        with torch.cuda.stream(stream):
            results.append(part())
    for stream in _streams[: len(parts)]:
        current.wait_stream(stream)
    return results
