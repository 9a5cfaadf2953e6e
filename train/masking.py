"""Masks of padded batches, and losses over the positions that count."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

IGNORED = -100  # the target of a position that has no label


def length_mask(lengths: Tensor, size: int) -> Tensor:
    """lengths: [B] → [B, size] bool, true before each row's end"""
    return torch.arange(size, device=lengths.device) < lengths[:, None]


def masked_mean(x: Tensor, mask: Tensor) -> Tensor:
    """x: [B, T] or [B, T, C]; mask: [B, T], bool or weights"""
    x = x if x.ndim == 2 else x.mean(-1)
    return (x * mask).sum() / mask.sum().clamp_min(1)


def masked_cross_entropy(logits: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
    """Nats per target; 0 if all are IGNORED. logits: [B, K, V]; targets: [B, K]"""
    total = functional.cross_entropy(
        logits.flatten(0, 1).float(),
        targets.flatten(),
        ignore_index=IGNORED,
        reduction="sum",
        label_smoothing=smoothing,
    )
    return total / (targets != IGNORED).sum().clamp_min(1)
