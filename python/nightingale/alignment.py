"""Which attention heads follow the text, and where in the text each speech token is spoken."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from . import _core

# Said once by a model whose files do not name the heads that follow the text.
CALIBRATION_TEXTS = (
    "The quick brown fox jumps over the lazy dog near the river bank.",
    "She sells sea shells by the sea shore every summer morning.",
)
HEADS = 3  # that are followed together


def monotonic_path(weights: np.ndarray, to_end: bool = True) -> np.ndarray:
    """The text position of each query, never going back, that has most of the attention.

    weights: [queries, text]. Begins at the start of the text; to_end: ends at its end, else
    anywhere.
    """
    rows = np.ascontiguousarray(weights, np.float32)
    return np.array(_core.monotonic_path(rows, to_end), np.int64)


def followed_share(weights: np.ndarray) -> float:
    """How well a head follows the text, 0 to 1: the mean attention along its path, times the share
    of the text that the path goes through."""
    path = monotonic_path(weights)
    attention = weights[np.arange(len(path)), path].mean()
    return float(attention * len(np.unique(path)) / min(weights.shape))


def best_heads(spoken: Iterable[np.ndarray], count: int = HEADS) -> list[int]:
    """The numbers of the heads that follow the text best, in their order.

    spoken: [heads, queries, text] of each of some texts.
    """
    shares = np.mean([[followed_share(head) for head in weights] for weights in spoken], axis=0)
    return sorted(int(head) for head in np.argsort(-shares, kind="stable")[:count])
