"""Compares other precisions with the one that was loaded.

Rounding can change which token is sampled, and everything after it, so sampled tokens are only
counted. Logits and mels are compared value by value, for the same tokens in each precision.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .log_mel import correlation
from .report import Result
from .seams import common_start

MOST_OFF = 0.25  # of the token count
LEAST_LOGITS_CORRELATION = 0.999
LEAST_MEL_CORRELATION = 0.98


@dataclass(frozen=True, eq=False)
class Reading:
    """The results of one precision for a text, and for given speech tokens."""

    dtype: str
    tokens: np.ndarray  # drawn by itself
    logits: np.ndarray  # [n, vocabulary] that follow each of the given tokens
    mel: np.ndarray  # [80, frames] of the given tokens
    samples: np.ndarray  # of that mel


def token_counts(base: Reading, others: Sequence[Reading]) -> Result:
    """Compares the number of tokens that are sampled for the same text and seed."""
    off = [abs(len(other.tokens) / max(1, len(base.tokens)) - 1) for other in others]
    counts = ", ".join(f"{reading.dtype} {len(reading.tokens)}" for reading in (base, *others))
    values = {
        "tokens": {reading.dtype: len(reading.tokens) for reading in (base, *others)},
        "same_at_first": {other.dtype: common_start(other.tokens, base.tokens) for other in others},
    }
    notes = tuple(
        f"the first {count} of {dtype} are those of {base.dtype}"
        for dtype, count in values["same_at_first"].items()
        if count < len(base.tokens)
    )
    bound = f"within {MOST_OFF:.0%} of {base.dtype}"
    return Result("precision: tokens", counts, bound, max(off) <= MOST_OFF, values, notes)


def same_logits(base: Reading, others: Sequence[Reading]) -> Result:
    """Compares the logits of T3 after each of the same tokens."""
    found = {other.dtype: correlation(other.logits, base.logits) for other in others}
    most_likely = base.logits.argmax(axis=-1)
    agreeing = {o.dtype: float(np.mean(o.logits.argmax(axis=-1) == most_likely)) for o in others}
    figure = ", ".join(f"{dtype} {value:.6f}" for dtype, value in found.items())
    bound = f"correlation >= {LEAST_LOGITS_CORRELATION}"
    passed = min(found.values()) >= LEAST_LOGITS_CORRELATION
    values = {"correlation": found, "most_likely_agrees": agreeing}
    return Result("precision: logits", figure, bound, passed, values)


def same_sound(base: Reading, others: Sequence[Reading]) -> Result:
    """Compares the mel of the same tokens, and the number of samples."""
    counts = {other.dtype: len(other.samples) for other in others}
    if set(counts.values()) != {len(base.samples)}:
        figure = ", ".join(f"{dtype} {count}" for dtype, count in counts.items())
        bound = f"{len(base.samples)} samples"
        return Result("precision: sound", figure, bound, False, {"samples": counts})
    found = {other.dtype: correlation(other.mel, base.mel) for other in others}
    figure = ", ".join(f"{dtype} {value:.4f}" for dtype, value in found.items())
    bound = f"same length, mel correlation >= {LEAST_MEL_CORRELATION}"
    passed = min(found.values()) >= LEAST_MEL_CORRELATION
    values = {"samples": counts, "correlation": found}
    return Result("precision: sound", f"same length, {figure}", bound, passed, values)
