"""Means over the part of a batch that counts."""

from __future__ import annotations

from torch import Tensor


def masked_mean(x: Tensor, mask: Tensor) -> Tensor:
    """x: [B, T] or [B, T, C]; mask: [B, T], true where it counts, or how much it does"""
    x = x if x.ndim == 2 else x.mean(-1)
    return (x * mask).sum() / mask.sum().clamp_min(1)
