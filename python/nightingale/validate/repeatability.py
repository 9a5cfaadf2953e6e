"""The same seed must give the same audio, bit for bit, and another seed another one."""

import hashlib
from collections.abc import Sequence

import numpy as np

from .report import Result


def sha256(array: np.ndarray) -> str:
    """Of the values as little-endian bytes: float32 samples, int32 tokens."""
    return hashlib.sha256(array.astype(array.dtype.newbyteorder("<")).tobytes()).hexdigest()


def same_every_run(hashes: Sequence[str]) -> Result:
    """Hashes of several runs of one text with one seed."""
    figure = f"{len(set(hashes))} hash in {len(hashes)} runs: {hashes[0][:12]}"
    values = {"hashes": list(hashes)}
    return Result("same seed: runs", figure, "1 hash", len(set(hashes)) == 1, values)


def same_with_threads(expected: str, by_threads: dict[int, str]) -> Result:
    """Hashes by the number of threads the CPU backend had."""
    differing = [count for count, found in by_threads.items() if found != expected]
    counts = ", ".join(map(str, by_threads))
    figure = f"{len(by_threads) - len(differing)} of {len(by_threads)} equal (threads: {counts})"
    notes = tuple(f"{by_threads[count][:12]} with {count} threads" for count in differing)
    values = {"hashes": {str(count): found for count, found in by_threads.items()}}
    return Result("same seed: threads", figure, "all equal", not differing, values, notes)


def other_with_another_seed(expected: str, other: str) -> Result:
    """The hash of the same text with another seed."""
    differs = other != expected
    figure = "another hash" if differs else "the same hash"
    return Result("another seed", figure, "another hash", differs, {"hash": other})
