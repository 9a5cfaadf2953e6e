"""A moving average of a network's weights: what is judged and kept."""

from __future__ import annotations

import copy

import torch
from torch import nn


class Average:
    """`network` is the average; `memory` is how much of it stays at a step, in the long run."""

    def __init__(self, network: nn.Module, memory: float = 0.999) -> None:
        self.network = copy.deepcopy(network).eval().requires_grad_(False)
        # Looked up once: that takes as long as some of a step's kernels.
        self._means, self._news = list(self.network.parameters()), list(network.parameters())
        self._memory = memory
        self._updates = 0

    @torch.no_grad()
    def update(self) -> None:
        """After a step of the network that it was made of."""
        self._updates += 1
        # Short memory at first, or it would hold the untrained weights for long.
        share = max(1 - self._memory, 9 / (9 + self._updates))
        torch._foreach_lerp_(self._means, self._news, share)
