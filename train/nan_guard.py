"""Optimizer steps that skip gradients which are not finite."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn


class GuardedOptimizer:
    """Clipped optimizer steps. A step whose gradient is not finite leaves the weights as they are;
    this is decided on the device, without a host sync."""

    def __init__(self, optimizer: torch.optim.Optimizer, device: torch.device | str) -> None:
        self.optimizer = optimizer
        self._scaler = inf_check(device)

    def step(
        self, loss: Tensor, rate: float, *groups: Sequence[nn.Parameter], max_norm: float = 1.0
    ) -> None:
        """groups: parameters whose gradient norm is clipped to `max_norm`, each group by itself"""
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad(set_to_none=True)
        self._scaler.scale(loss).backward()
        self._scaler.unscale_(self.optimizer)
        for group in groups:
            nn.utils.clip_grad_norm_(group, max_norm)
        self._scaler.step(self.optimizer)
        self._scaler.update()


def inf_check(device: torch.device | str) -> torch.amp.GradScaler:
    """A GradScaler of constant scale 1, used only for its check of the gradients."""
    kind = torch.device(device).type
    return torch.amp.GradScaler(kind, init_scale=1.0, growth_interval=2**30)


def guarded_adamw(
    parameters: Iterable[Any],
    device: torch.device | str,
    betas: tuple[float, float] = (0.9, 0.98),
    weight_decay: float = 0.01,
) -> GuardedOptimizer:
    """parameters: parameters or parameter groups"""
    fused = torch.device(device).type == "cuda"
    optimizer = torch.optim.AdamW(parameters, betas=betas, weight_decay=weight_decay, fused=fused)
    return GuardedOptimizer(optimizer, device)
