"""An exponential moving average (EMA) of a network's weights: what is validated and saved."""

from __future__ import annotations

import copy

import torch
from torch import nn


class MovingAverage:
    """`network` has the averaged weights; `decay` is the share that a step keeps in the end."""

    def __init__(self, network: nn.Module, decay: float = 0.999, warm_up: int = 9) -> None:
        """warm_up: after n updates a step keeps at most n / (n + warm_up), so that the untrained
        weights are soon forgotten"""
        self.network = copy.deepcopy(network).eval().requires_grad_(False)
        # Looked up once: that takes as long as some of a step's kernels.
        self._averages, self._weights = list(self.network.parameters()), list(network.parameters())
        self._decay, self._warm_up = decay, warm_up
        self._updates = 0

    @torch.no_grad()
    def update(self) -> None:
        """Call after each optimizer step."""
        self._updates += 1
        share = max(1 - self._decay, self._warm_up / (self._warm_up + self._updates))
        torch._foreach_lerp_(self._averages, self._weights, share)
