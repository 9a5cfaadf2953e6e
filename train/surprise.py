"""How unlikely a network finds what is true: the loss of what names tokens or phonemes."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from .alignment import IGNORED


def surprise(logits: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
    """Nats a target; 0 where all are ignored. logits: [B, K, V]; targets: [B, K]"""
    lost = functional.cross_entropy(
        logits.flatten(0, 1).float(),
        targets.flatten(),
        ignore_index=IGNORED,
        reduction="sum",
        label_smoothing=smoothing,
    )
    return lost / (targets != IGNORED).sum().clamp_min(1)
