"""Which attention heads follow the text, and where in the text each speech token is spoken."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

# Said once by a model whose files do not name the heads that follow the text.
CALIBRATION_TEXTS = (
    "The quick brown fox jumps over the lazy dog near the river bank.",
    "She sells sea shells by the sea shore every summer morning.",
)
HEADS = 3  # that are followed together
_SKIP = 0.5  # what a text token that is passed over costs, in nats of attention
_FLOOR = 1e-3  # of the attention: a head that looks away for a moment is not lost


def monotonic_path(weights: np.ndarray, to_end: bool = True) -> np.ndarray:
    """The text position of each query, never going back, that has most of the attention.

    weights: [queries, text]. Begins at the start of the text; to_end: ends at its end, else
    anywhere.
    """
    gain = np.log(weights.astype(np.float64) + _FLOOR)
    queries, text = gain.shape
    places = np.arange(text)
    best = gain[0] - _SKIP * places
    came_from = np.zeros((queries, text), np.int64)
    for query in range(1, queries):
        # Of all earlier positions the best one to come from, each text token between at its cost.
        ahead = best + _SKIP * places
        leader = np.maximum.accumulate(np.where(ahead >= np.maximum.accumulate(ahead), places, 0))
        moved = np.full(text, -np.inf)
        moved[1:] = ahead[leader[:-1]] - _SKIP * places[:-1]
        moves = moved > best
        came_from[query, 1:] = np.where(moves[1:], leader[:-1], places[1:])
        best = np.where(moves, moved, best) + gain[query]
    path = np.empty(queries, np.int64)
    path[-1] = int(np.argmax(best + _SKIP * places if to_end else best))
    for query in range(queries - 1, 0, -1):
        path[query - 1] = came_from[query, path[query]]
    return path


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
