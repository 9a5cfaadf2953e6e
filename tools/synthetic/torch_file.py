"""Writes torch files with numpy alone."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from nightingale.atomic_files import atomic_path
from nightingale.safetensors_writer import stored_bytes
from nightingale.torch_pickle import STORAGES


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
            write(f"data/{i}", tensor.stored())
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

    def stored(self) -> memoryview:
        return stored_bytes(self.name, self.dtype, self.shape, self.values)


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
        if tensor.dtype not in STORAGES:
            raise ValueError(f"no torch storage for dtype {tensor.dtype}")
        shape = tensor.shape
        strides = np.cumprod((1, *shape[:0:-1]), dtype=np.int64)[::-1]
        key = str(len(self.storages))
        self.storages.append(tensor)
        persistent_id = (
            b"("
            + self._encode("storage")
            + _global("torch", STORAGES[tensor.dtype])
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
