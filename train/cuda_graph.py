"""A training step captured as a CUDA graph.

Launching a step of many small kernels takes the host longer than the GPU needs to run them.
Replayed from a graph, all kernels are launched at once.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Losses = dict[str, Tensor]

WARM_UPS = 3  # eager steps in which libraries choose kernels and optimizers create their state


class CudaGraphStep:
    """Calls `step` with tensors whose shapes never change; on a GPU through a CUDA graph.

    `step` must not synchronize with the GPU nor draw random numbers, and has to start by setting
    gradients to None. The returned tensors are overwritten by the next call.
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
            return self._warm_up(inputs)
        if self._graph is None:
            self._capture(inputs)
        for static, given in zip(self._inputs, inputs, strict=True):
            static.copy_(given)
        self._graph.replay()
        return self._losses

    def _warm_up(self, inputs: tuple[Tensor, ...]) -> Losses:
        """An eager step on a side stream, as in a capture: gradients remember their stream."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            losses = self._step(*inputs)
        torch.cuda.current_stream().wait_stream(stream)
        return losses

    def _capture(self, inputs: tuple[Tensor, ...]) -> None:
        self._inputs = [given.clone() for given in inputs]
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._losses = self._step(*self._inputs)
