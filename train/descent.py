"""Steps of an optimiser that leave out what is no number."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class Descent:
    """Clipped steps. One whose gradient is no number is left out, without asking the device, which
    may not be waited for: the weights stay as they are."""

    def __init__(self, optimiser: torch.optim.Optimizer, device: torch.device | str) -> None:
        self.optimiser = optimiser
        # Not for its scale, which stays.
        kind = torch.device(device).type
        self._scaler = torch.amp.GradScaler(kind, init_scale=1.0, growth_interval=2**30)

    def step(
        self, loss: Tensor, rate: float, *groups: Sequence[nn.Parameter], most: float = 1.0
    ) -> None:
        """groups: parameters whose gradient is at most `most` long, each group's by itself"""
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.optimiser.zero_grad(set_to_none=True)
        self._scaler.scale(loss).backward()
        self._scaler.unscale_(self.optimiser)
        for group in groups:
            nn.utils.clip_grad_norm_(group, most)
        self._scaler.step(self.optimiser)
        self._scaler.update()
