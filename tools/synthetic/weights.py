"""Synthetic tensors: each a function of a seed and its name alone, the same on every machine."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Philox


@dataclass(frozen=True)
class Weights:
    """One tensor's distribution: uniform, of this mean and standard deviation."""

    shape: tuple[int, ...]
    std: float
    mean: float = 0.0
    quiet_from: int | None = None  # rows from here on are ten times smaller
    centred: int = 0  # rows add up to zero (but for rounding) in each of this many equal parts
    drawn_as: str | None = None  # the name to draw by, where it is not the tensor's own
    mean_rows: tuple[int, int] | None = None  # only these have the mean, the others are about 0
    dtype: str | None = None  # where it is not that of the file

    def values(self, seed: int, name: str) -> np.ndarray:
        """The tensor, float32."""
        array = uniform(seed, self.drawn_as or name, self.shape)
        if self.centred:
            rows = array.reshape(self.shape[0] * self.centred, -1)
            # Rounding a float64 sum to float32 hides the platform's order of addition.
            rows -= rows.mean(axis=1, keepdims=True, dtype=np.float64).astype(np.float32)
        array *= np.float32(self.std * 3**0.5)
        array[slice(*self.mean_rows) if self.mean_rows else ...] += np.float32(self.mean)
        if self.quiet_from is not None:
            array[self.quiet_from :] *= np.float32(0.1)
        return array


def uniform(seed: int, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """float32 in [-1, 1] with zero mean, from Philox keyed by (seed, name); 65536 distinct values.

    Only the raw bit stream is numpy's: its distributions may change between versions.
    """
    key = int.from_bytes(hashlib.sha256(f"{seed}:{name}".encode()).digest()[:16], "little")
    count = int(np.prod(shape, dtype=np.int64))
    words = Philox(key=key).random_raw(-(-count // 4)).astype("<u8", copy=False)
    values = words.view("<u2")[:count].astype(np.float32)
    values -= np.float32(32767.5)
    values *= np.float32(1 / 32767.5)
    return values.reshape(shape)


@dataclass(frozen=True)
class Table:
    """A tensor that is computed, and float32 in every file."""

    shape: tuple[int, ...]
    compute: Callable[[], np.ndarray]
    dtype: str = "float32"

    def values(self, seed: int, name: str) -> np.ndarray:
        return self.compute().astype(np.float32)


Tensors = dict[str, Weights | Table]


def linear_weights(
    name: str,
    inputs: int,
    outputs: int,
    gain: float = 1.0,
    bias: float | None = 0.1,
    centred: int = 0,
) -> Tensors:
    std = gain * inputs**-0.5
    tensors = {name + ".weight": Weights((outputs, inputs), std, centred=centred)}
    if bias is not None:
        tensors[name + ".bias"] = Weights((outputs,), bias)
    return tensors


def conv_weights(
    name: str, inputs: int, outputs: int, kernel: int, gain: float = 1.0, centred: int = 0
) -> Tensors:
    std = gain * (inputs * kernel) ** -0.5
    return {
        name + ".weight": Weights((outputs, inputs, kernel), std, centred=centred),
        name + ".bias": Weights((outputs,), 0.1),
    }


def norm_weights(name: str, channels: int) -> Tensors:
    return {
        name + ".weight": Weights((channels,), 0.1, mean=1.0),
        name + ".bias": Weights((channels,), 0.1),
    }
