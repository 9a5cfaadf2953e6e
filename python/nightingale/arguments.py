"""Checks of arrays and paths that callers pass in; each returns what the package goes on with."""

from __future__ import annotations

import os
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from .option import shown

MOST_NAME_BYTES = 255  # of a file or folder, on most disks


def a_path(name: str, given: Any) -> Path:
    """The path of a file to read or write, which may not be there."""
    if not isinstance(given, (str, PathLike)) or not isinstance(path := os.fspath(given), str):
        raise ValueError(f"{name} must be a path, not {shown(given)}")
    if "\0" in path:
        raise ValueError(f"{name} holds a NUL character: {shown(path)}")
    if any(len(os.fsencode(part)) > MOST_NAME_BYTES for part in Path(path).parts):
        raise ValueError(f"{name} has a name of more than {MOST_NAME_BYTES} bytes: {shown(path)}")
    return Path(path)


def token_ids(name: str, tokens: Any) -> np.ndarray:
    ids = np.asarray(tokens)
    if ids.size == 0:
        ids = ids.astype(np.int32)
    if ids.ndim != 1 or ids.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must be a list of whole numbers, not {ids.dtype} of shape {list(ids.shape)}"
        )
    if ids.size and max(-int(ids.min()), int(ids.max())) >= 2**31:
        raise ValueError(f"{name} holds {ids.min()} to {ids.max()}, which are no token ids")
    return np.ascontiguousarray(ids, dtype=np.int32)


def floats(name: str, values: Any, shape: tuple[int | None, ...]) -> np.ndarray:
    """float32 of this shape, where None accepts any size; every value finite."""
    array = np.asarray(values)
    if array.dtype.kind not in "fiu":
        raise ValueError(f"{name} must be numbers, not {array.dtype}")
    fits = array.ndim == len(shape) and all(
        wanted in (None, size) for size, wanted in zip(array.shape, shape, strict=True)
    )
    if not fits:
        expected = ", ".join("any" if size is None else str(size) for size in shape)
        raise ValueError(f"{name} has shape {list(array.shape)}; expected [{expected}]")
    array = np.ascontiguousarray(array, dtype=np.float32)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds values that are not finite")
    return array
