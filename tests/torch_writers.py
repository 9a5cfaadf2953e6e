"""Writers of small torch files, byte for byte as torch.save lays them out, with room for the ways
in which a file can be wrong."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence


class PickleWriter:
    """Opcodes of protocol 2, plus `raw` for everything a pickle should not say."""

    def __init__(self) -> None:
        self.data = b""

    def raw(self, data: bytes) -> PickleWriter:
        self.data += data
        return self

    def name(self, module: str, name: str) -> PickleWriter:
        return self.raw(f"c{module}\n{name}\n".encode())

    def text(self, value: str | bytes) -> PickleWriter:
        encoded = value.encode() if isinstance(value, str) else value
        return self.raw(b"X" + struct.pack("<I", len(encoded)) + encoded)

    def integer(self, value: int) -> PickleWriter:
        return self.raw(b"\x8a\x08" + struct.pack("<q", value))

    def integers(self, values: Sequence[int]) -> PickleWriter:
        self.raw(b"(")
        for value in values:
            self.integer(value)
        return self.raw(b"t")

    def storage(self, kind: str, key: str, size: int) -> PickleWriter:
        self.raw(b"(").text("storage").name("torch", kind).text(key).text("cpu")
        return self.integer(size).raw(b"tQ")

    def tensor(
        self,
        kind: str,
        key: str,
        storage_size: int,
        offset: int,
        shape: Sequence[int],
        strides: Sequence[int],
    ) -> PickleWriter:
        self.name("torch._utils", "_rebuild_tensor_v2").raw(b"(")
        self.storage(kind, key, storage_size).integer(offset)
        self.integers(shape).integers(strides).raw(b"\x89")
        return self.name("collections", "OrderedDict").raw(b")RtR")

    def finish(self) -> bytes:
        return b"\x80\x02" + self.data + b"."


class ZipWriter:
    """With descriptors, sums and sizes follow the bytes, as torch writes them; without, they are in
    the local header, as most others do."""

    def __init__(self, descriptors: bool = True) -> None:
        self.descriptors = descriptors
        self.data = b""
        self.directory = b""
        self.count = 0

    def add(self, name: str | bytes, data: bytes, method: int = 0) -> ZipWriter:
        encoded = name.encode() if isinstance(name, str) else name
        sums = struct.pack("<3L", zlib.crc32(data), len(data), len(data))
        common = struct.pack("<2H4x", 0x0808 if self.descriptors else 0x0800, method)
        extra = b"FB\x05\x00ZZZZZ"
        offset = len(self.data)
        self.data += b"PK\x03\x04\x00\x00" + common + (bytes(12) if self.descriptors else sums)
        self.data += struct.pack("<2H", len(encoded), len(extra)) + encoded + extra + data
        if self.descriptors:
            self.data += b"PK\x07\x08" + sums
        self.directory += b"PK\x01\x02" + bytes(4) + common + sums
        self.directory += struct.pack("<H12xL", len(encoded), offset) + encoded
        self.count += 1
        return self

    def finish(self) -> bytes:
        size, offset = len(self.directory), len(self.data)
        end64 = struct.pack(
            "<4sQ4s8x4Q", b"PK\x06\x06", 44, b"\x1e\x03-\x00", self.count, self.count, size, offset
        )
        locator = struct.pack("<4s4xQL", b"PK\x06\x07", offset + size, 1)
        end = struct.pack("<4s4x2H2L2x", b"PK\x05\x06", self.count, self.count, size, offset)
        return self.data + self.directory + end64 + locator + end


def torch_archive(
    pickle: bytes, storages: Mapping[str, bytes] | None = None, descriptors: bool = True
) -> bytes:
    archive = ZipWriter(descriptors)
    archive.add("archive/data.pkl", pickle).add("archive/byteorder", b"little")
    for key, data in (storages or {}).items():
        archive.add(f"archive/data/{key}", data)
    return archive.add("archive/version", b"3\n").finish()
