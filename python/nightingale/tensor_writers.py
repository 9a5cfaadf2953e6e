"""Writes safetensors and torch files with numpy alone. Every file appears whole or not at all."""

from __future__ import annotations

import json
import os
import secrets
import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

SAFETENSORS_DTYPES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "int16": "I16",
    "int32": "I32",
    "uint32": "U32",
    "int64": "I64",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
}

TORCH_STORAGES = {
    "bool": "BoolStorage",
    "uint8": "ByteStorage",
    "int8": "CharStorage",
    "int16": "ShortStorage",
    "int32": "IntStorage",
    "int64": "LongStorage",
    "float16": "HalfStorage",
    "bfloat16": "BFloat16Storage",
    "float32": "FloatStorage",
    "float64": "DoubleStorage",
}


@contextmanager
def atomic_path(path: str | Path, durable: bool = False) -> Iterator[Path]:
    """Gives a temporary name beside `path`: renamed to it on success, removed on error.

    durable: what has the name is on the disk by then, also where the power fails.
    """
    path = Path(path)
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    try:
        yield partial
        if durable:
            _sync(partial)
        os.replace(partial, path)
        if durable and os.name == "posix":
            _sync(path.parent)
    finally:
        partial.unlink(missing_ok=True)


def unfinished_files(folder: Path) -> Iterator[tuple[Path, str]]:
    """What `atomic_path` has under temporary names in a folder, each with the name it was to get:
    being written, or left behind by a process that was killed."""
    for file in folder.glob(".*.partial"):
        yield file, file.name[1:].rsplit(".", 2)[0]


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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
    """A tensor as it lies in a file."""
    return _Tensor(name, dtype, shape, values).stored().data


def write_torch(path: str | Path, tree: Mapping[str, Any]) -> None:
    """Writes a nested dictionary of arrays, numbers, strings and None as `torch.save` would."""
    path = Path(path)
    pickler = _TorchPickler()
    pickle = pickler.dump(tree)
    with atomic_path(path) as unfinished, zipfile.ZipFile(unfinished, "x") as archive:

        def write(name: str, data: bytes | memoryview) -> None:
            # ZipInfo's default date keeps equal content equal in bytes.
            entry = zipfile.ZipInfo(f"{path.stem}/{name}")
            entry.file_size = len(data)
            with archive.open(entry, "w") as file:
                file.write(data)

        write("data.pkl", pickle)
        write("byteorder", b"little")
        for i, tensor in enumerate(pickler.storages):
            write(f"data/{i}", tensor.stored().data)
        write("version", b"3\n")


def stream_torch(
    path: str | Path,
    layout: Mapping[str, tuple[str, tuple[int, ...]]],
    values: Callable[[str], np.ndarray],
) -> None:
    """Writes a torch file of one flat dictionary, with the arguments of `stream_safetensors`."""
    write_torch(
        path,
        {
            name: _Tensor(name, dtype, shape, partial(values, name))
            for name, (dtype, shape) in layout.items()
        },
    )


@dataclass(frozen=True)
class _Tensor:
    """An array that is asked for when it is written."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    values: Callable[[], np.ndarray]

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    def stored(self) -> np.ndarray:
        """The bytes as they lie in the file: little-endian, flat, contiguous."""
        array = self.values()
        if array.shape != tuple(self.shape):
            raise ValueError(f"{self.name}: shape {array.shape}, expected {tuple(self.shape)}")
        if self.dtype == "bfloat16":
            return _bfloat16_bits(array).reshape(-1).view(np.uint8)
        little_endian = np.dtype(self.dtype).newbyteorder("<")
        return np.ascontiguousarray(array, little_endian).reshape(-1).view(np.uint8)


class _TorchPickler:
    """Protocol 2 pickle in the one shape torch writes: tensors are views of numbered storages."""

    def __init__(self) -> None:
        self.storages: list[_Tensor] = []

    def dump(self, tree: Any) -> bytes:
        return b"\x80\x02" + self._encode(tree) + b"."

    def _encode(self, value: Any) -> bytes:
        if value is None:
            return b"N"
        if isinstance(value, bool):
            return b"\x88" if value else b"\x89"
        if isinstance(value, int):
            if not -(2**31) <= value < 2**31:
                raise ValueError(f"integer {value} does not fit in 32 bits")
            return b"J" + struct.pack("<i", value)
        if isinstance(value, float):
            return b"G" + struct.pack(">d", value)
        if isinstance(value, str):
            encoded = value.encode()
            return b"X" + struct.pack("<I", len(encoded)) + encoded
        if isinstance(value, tuple):
            return b"(" + b"".join(map(self._encode, value)) + b"t"
        if isinstance(value, Mapping):
            items = b"".join(self._encode(k) + self._encode(v) for k, v in value.items())
            return b"}(" + items + b"u"
        if isinstance(value, np.ndarray):
            return self._encode_tensor(
                _Tensor("tensor", str(value.dtype), value.shape, lambda: value)
            )
        if isinstance(value, _Tensor):
            return self._encode_tensor(value)
        raise TypeError(f"cannot write a {type(value).__name__} to a torch file")

    def _encode_tensor(self, tensor: _Tensor) -> bytes:
        if tensor.dtype not in TORCH_STORAGES:
            raise ValueError(f"no torch storage for dtype {tensor.dtype}")
        shape = tensor.shape
        strides = np.cumprod((1, *shape[:0:-1]), dtype=np.int64)[::-1]
        key = str(len(self.storages))
        self.storages.append(tensor)
        persistent_id = (
            b"("
            + self._encode("storage")
            + _global("torch", TORCH_STORAGES[tensor.dtype])
            + self._encode(key)
            + self._encode("cpu")
            + self._encode(tensor.size)
            + b"tQ"
        )
        hooks = _global("collections", "OrderedDict") + b")R"
        arguments = (
            persistent_id
            + self._encode(0)
            + self._encode(tuple(shape))
            + self._encode(tuple(int(s) for s in strides[: len(shape)]))
            + self._encode(False)
            + hooks
        )
        return _global("torch._utils", "_rebuild_tensor_v2") + b"(" + arguments + b"tR"


def _global(module: str, name: str) -> bytes:
    return f"c{module}\n{name}\n".encode()


def _nbytes(dtype: str, shape: tuple[int, ...]) -> int:
    itemsize = 2 if dtype == "bfloat16" else np.dtype(dtype).itemsize
    return int(np.prod(shape, dtype=np.int64)) * itemsize


def _bfloat16_bits(array: np.ndarray) -> np.ndarray:
    """Rounds finite values to the nearest bfloat16, ties to even, kept as its 16 bits."""
    bits = np.ascontiguousarray(array, "<f4").view("<u4")
    carry = np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    return ((bits + carry) >> np.uint32(16)).astype("<u2")
