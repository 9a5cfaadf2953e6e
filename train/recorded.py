"""A step of training that a GPU takes as a whole.

A step of many small kernels costs the host more than the GPU, which then waits. Recorded once, as a
CUDA graph, all of them start together.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Losses = dict[str, Tensor]

WARM_UPS = 3  # steps in which libraries choose kernels and optimisers make their state


class Recorded:
    """What `step` does with tensors of always the same shapes; elsewhere than on a GPU, `step`.

    It must not wait for the GPU nor draw random numbers, and is to begin by setting gradients to
    none. What a call returns is overwritten by the next.
    """

    def __init__(self, step: Callable[..., Losses]) -> None:
        self._step = step
        self._calls = 0
        self._graph: torch.cuda.CUDAGraph | None = None
        self._inputs: list[Tensor] = []
        self._losses: Losses = {}

    def __call__(self, *inputs: Tensor) -> Losses:
        self._calls += 1
        if not inputs[0].is_cuda:
            return self._step(*inputs)
        if self._calls <= WARM_UPS:
            return self._beside(inputs)
        if self._graph is None:
            self._record(inputs)
        for kept, given in zip(self._inputs, inputs, strict=True):
            kept.copy_(given)
        self._graph.replay()
        return self._losses

    def _beside(self, inputs: tuple[Tensor, ...]) -> Losses:
        """A step on a stream of its own, as a recording is: gradients remember theirs."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            losses = self._step(*inputs)
        torch.cuda.current_stream().wait_stream(stream)
        return losses

    def _record(self, inputs: tuple[Tensor, ...]) -> None:
        self._inputs = [given.clone() for given in inputs]
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._losses = self._step(*self._inputs)
