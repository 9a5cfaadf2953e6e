"""Writes safetensors files with numpy alone."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .atomic_files import atomic_path

SAFETENSORS_DTYPES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "int16": "I16",
    "uint16": "U16",
    "int32": "I32",
    "uint32": "U32",
    "int64": "I64",
    "uint64": "U64",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
}


def write_safetensors(
    path: str | Path,
    tensors: Mapping[str, np.ndarray],
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Writes arrays held in memory, each in its own dtype."""
    layout = {name: (str(array.dtype), array.shape) for name, array in tensors.items()}
    stream_safetensors(path, layout, tensors.__getitem__, metadata)


def stream_safetensors(
    path: str | Path,
    layout: Mapping[str, tuple[str, tuple[int, ...]]],
    values: Callable[[str], np.ndarray],
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Writes tensors one at a time: `layout` gives dtype and shape, `values(name)` the array.

    Values are cast to the layout's dtype, which may be "bfloat16".
    """
    with atomic_path(path) as unfinished, open(unfinished, "xb") as file:
        file.write(safetensors_header(layout, metadata))
        for name, (dtype, shape) in layout.items():
            file.write(stored_bytes(name, dtype, shape, partial(values, name)))


def safetensors_header(
    layout: Mapping[str, tuple[str, tuple[int, ...]]], metadata: Mapping[str, str] | None = None
) -> bytes:
    """What a file of these tensors begins with; their bytes follow in the same order."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    offset = 0
    for name, (dtype, shape) in layout.items():
        if dtype not in SAFETENSORS_DTYPES:
            raise ValueError(f"{name}: safetensors has no dtype {dtype}")
        end = offset + _nbytes(dtype, shape)
        header[name] = {
            "dtype": SAFETENSORS_DTYPES[dtype],
            "shape": list(shape),
            "data_offsets": [offset, end],
        }
        offset = end
    encoded = json.dumps(header, separators=(",", ":")).encode()
    encoded += b" " * (-len(encoded) % 8)  # the format aligns the data to 8 bytes
    return struct.pack("<Q", len(encoded)) + encoded


def stored_bytes(
    name: str, dtype: str, shape: tuple[int, ...], values: Callable[[], np.ndarray]
) -> memoryview:
    """A tensor as it is stored in a file: little-endian, flat, contiguous."""
    array = values()
    if array.shape != tuple(shape):
        raise ValueError(f"{name}: shape {array.shape}, expected {tuple(shape)}")
    if dtype == "bfloat16":
        return _bfloat16_bits(array).reshape(-1).view(np.uint8).data
    little_endian = np.dtype(dtype).newbyteorder("<")
    return np.ascontiguousarray(array, little_endian).reshape(-1).view(np.uint8).data


def _nbytes(dtype: str, shape: tuple[int, ...]) -> int:
    itemsize = 2 if dtype == "bfloat16" else np.dtype(dtype).itemsize
    return int(np.prod(shape, dtype=np.int64)) * itemsize


def _bfloat16_bits(array: np.ndarray) -> np.ndarray:
    """Rounds finite values to the nearest bfloat16, ties to even, kept as its 16 bits."""
    bits = np.ascontiguousarray(array, "<f4").view("<u4")
    carry = np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    return np.asarray((bits + carry) >> np.uint32(16), "<u2")
