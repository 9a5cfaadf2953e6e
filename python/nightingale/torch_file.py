"""Reads checkpoints that torch.save wrote, without torch. Elements are read by the core."""

import os
import struct
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn

from ._core import Error, TensorFile
from .torch_pickle import ITEM_BYTES, Tensor, load_pickle

# Far above any checkpoint; they keep a crafted file from costing memory or time.
MAX_DIRECTORY_BYTES = 64_000_000
MAX_ENTRIES = 200_000
MAX_PICKLE_BYTES = 64_000_000
MAX_NAME_BYTES = 1024
MAX_DEPTH = 64
# Containers may be shared, so walking them can visit more than was built.
MAX_VISITS = 1_000_000

_END = struct.Struct("<4s4H2LH")
_END64 = struct.Struct("<4sQ4x2L4Q")
_LOCATOR64 = struct.Struct("<4sLQL")
_RECORD_LENGTHS = struct.Struct("<28x4H10x")
_LOCAL = struct.Struct("<4s2x2H4x3L2H")
_DESCRIPTOR_FLAG, _UTF8_FLAG = 1 << 3, 1 << 11
_IN_ZIP64 = 0xFFFFFFFF  # a 32-bit field whose value is in the zip64 extra field
_ZIP64_EXTRA = 1


def open_tensors(path: str | Path) -> TensorFile:
    """Opens a safetensors file or a torch archive, told apart by content.

    Nested dictionaries of a torch file become dotted names ("t3.speaker_emb"), plain numbers become
    scalars, None and strings are left out. A {"model": ...} or {"state_dict": ...} around the whole
    is taken off.
    """
    if not str(path).isascii() and any("\ud800" <= c <= "\udfff" for c in str(path)):
        raise Error(f"{str(path)!r} is not a path in UTF-8; give the file another name")
    if not _is_zip(path):
        return TensorFile.open(str(path))
    try:
        with open(path, "rb") as file:
            contents = _Contents(file)
    except (ValueError, OSError) as error:
        raise Error(f"{path}: {' '.join(str(error).split())}") from error
    return TensorFile.open_strided(
        str(path), list(contents.storages.values()), contents.tensors, contents.scalars
    )


def _is_zip(path: str | Path) -> bool:
    try:
        if not os.path.isfile(path):  # opening a named pipe would wait for its writer
            return False
        with open(path, "rb") as file:
            return file.read(4) == b"PK\x03\x04"
    except OSError:
        return False  # the core says why it cannot be opened


class _Entry(NamedTuple):
    """The bytes of a stored file in the archive."""

    name: str
    offset: int
    size: int
    crc: int


class _Contents:
    """Where the tensors of a torch archive are."""

    def __init__(self, file: BinaryIO) -> None:
        self.tensors: list[tuple[str, str, str, int, tuple[int, ...], tuple[int, ...]]] = []
        self.scalars: list[tuple[str, float]] = []
        self.storages: dict[str, _Entry] = {}
        self._entries = read_directory(file)
        self._root = self._find_root()
        self._visits = 0
        order = self._entries.get(f"{self._root}byteorder")
        if order and (text := read_entry(file, order, 16)) != b"little":
            raise ValueError(f"the byte order is {text.decode('latin-1')!r}, expected 'little'")
        name = f"{self._root}data.pkl"
        data = read_entry(file, self._entries[name], MAX_PICKLE_BYTES)
        try:
            tree = load_pickle(data)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
        if not isinstance(tree, dict):
            raise ValueError("expected a dictionary of tensors")
        self._add_items(_unwrap(tree).items(), "", 0)

    def _find_root(self) -> str:
        """torch puts everything into one folder, named after the file."""
        roots = [
            name.removesuffix("data.pkl")
            for name in self._entries
            if name.endswith("/data.pkl") and name.count("/") == 1
        ]
        if not roots:
            raise ValueError(
                "expected a zip archive written by torch.save, found no <name>/data.pkl in it"
            )
        if len(roots) > 1:
            raise ValueError("the zip archive has more than one <name>/data.pkl")
        return roots[0]

    def _add_items(self, items: Iterable[tuple[str, Any]], prefix: str, depth: int) -> None:
        for key, value in items:
            self._visits += 1
            if depth > MAX_DEPTH or self._visits > MAX_VISITS:
                raise ValueError(
                    f"its containers nest deeper than {MAX_DEPTH} levels, contain themselves or "
                    "repeat without end"
                )
            name = f"{prefix}.{key}" if prefix else key
            if len(name.encode()) > MAX_NAME_BYTES:
                raise ValueError(
                    f"a tensor's name is {len(name.encode())} bytes long, "
                    f"expected at most {MAX_NAME_BYTES}"
                )
            if isinstance(value, Tensor):
                self._add_tensor(name, value)
            elif isinstance(value, dict):
                self._add_items(value.items(), name, depth + 1)
            elif type(value) in (list, tuple):
                self._add_items(((str(i), item) for i, item in enumerate(value)), name, depth + 1)
            elif isinstance(value, (int, float)):
                self.scalars.append((name, float(value)))

    def _add_tensor(self, name: str, tensor: Tensor) -> None:
        storage, dtype, offset, shape, strides = tensor
        entry_name = f"{self._root}data/{storage.key}"
        entry = self._entries.get(entry_name)
        if entry is None:
            raise ValueError(f"tensor {name!r} needs zip entry {entry_name!r}, which is missing")
        if entry.size != storage.size * (ITEM_BYTES[storage.dtype] if storage.dtype else 1):
            raise ValueError(
                f"tensor {name!r} needs a storage of {storage.size} elements, zip entry "
                f"{entry_name!r} has {entry.size} bytes"
            )
        self.storages[entry_name] = entry
        self.tensors.append((name, dtype, entry_name, offset, shape, strides))


def _unwrap(tree: dict[str, Any]) -> dict[str, Any]:
    """The dictionary inside {"model": {...}}, {"model": [{...}]} or {"state_dict": {...}}."""
    for key in ("model", "state_dict"):
        inner = tree.get(key)
        if type(inner) is list and inner:
            inner = inner[0]
        if isinstance(inner, dict):
            return inner
    return tree


def read_entry(file: BinaryIO, entry: _Entry, most: int) -> bytes:
    """The bytes of an entry, which must have at most `most`, checked against their checksum."""
    if entry.size > most:
        raise ValueError(
            f"zip entry {entry.name!r} has {entry.size} bytes, expected at most {most}"
        )
    data = _read(file, entry.offset, entry.size)
    if (crc := zlib.crc32(data)) != entry.crc:
        raise ValueError(
            f"the checksum of zip entry {entry.name!r} is {crc}, expected {entry.crc}; "
            "the file is damaged"
        )
    return data


def read_directory(file: BinaryIO) -> dict[str, _Entry]:
    """The entries of a zip archive (zip64 too) whose files are stored, not compressed, which is how
    torch writes them.

    `zipfile` reads the central directory and trusts it. Here, the local headers and data
    descriptors must agree with it and fill the file from its first byte to its last, so that damage
    to any of these fields is an error.
    """
    start, nbytes, count = _find_directory(file)
    try:
        infos = zipfile.ZipFile(file).infolist()
    except UnicodeDecodeError as error:
        raise ValueError("the name of a zip entry is not valid UTF-8") from error
    except (NotImplementedError, zipfile.BadZipFile, struct.error) as error:
        raise ValueError(f"the zip directory is damaged: {error}") from error
    _check_lengths(infos, _read(file, start, nbytes), count)
    infos.sort(key=lambda info: info.header_offset)
    ends = [*(info.header_offset for info in infos[1:]), start]
    entries: dict[str, _Entry] = {}
    position = 0
    for info, end in zip(infos, ends, strict=True):
        name = info.orig_filename
        if name in entries:
            raise ValueError(f"zip entry {name!r} appears twice")
        if info.header_offset != position or end > start:
            _fail_disagreement(info)
        entries[name] = _Entry(name, _data_offset(file, info, end), info.file_size, info.CRC)
        position = end
    return entries


def _find_directory(file: BinaryIO) -> tuple[int, int, int]:
    """Offset, bytes and entries of the central directory, which the records at the very end of the
    file must agree on."""
    size = os.fstat(file.fileno()).st_size
    tail = _read(file, max(0, size - 98), min(size, 98))
    damaged = ValueError(
        "the zip directory at the end of the file is missing or damaged; the file may be truncated"
    )
    if len(tail) < _END.size:
        raise damaged
    end = size - _END.size
    signature, *disks, disk_count, count, nbytes, start, comment = _END.unpack(tail[-_END.size :])
    if signature != b"PK\x05\x06" or any(disks) or disk_count != count or comment:
        raise damaged
    if len(tail) == 98 and tail[56:60] == b"PK\x06\x07":
        end = size - 98
        narrow = (count, nbytes, start)
        signature, length, *disks, disk_count, count, nbytes, start = _END64.unpack(tail[:56])
        if (
            (signature, length, disks, disk_count) != (b"PK\x06\x06", 44, [0, 0], count)
            or _LOCATOR64.unpack(tail[56:76]) != (b"PK\x06\x07", 0, end, 1)
            or any(
                field not in (value, unknown)
                for field, value, unknown in zip(
                    narrow, (count, nbytes, start), (0xFFFF, _IN_ZIP64, _IN_ZIP64), strict=True
                )
            )
        ):
            raise damaged
    if start + nbytes != end or nbytes > MAX_DIRECTORY_BYTES or count > MAX_ENTRIES:
        raise damaged
    return start, nbytes, count


def _check_lengths(infos: list[zipfile.ZipInfo], directory: bytes, count: int) -> None:
    """`zipfile` takes what is there where a record says that it is longer."""
    position = 0
    for info in infos:
        expected = (len(_name_bytes(info)), len(info.extra), len(info.comment), 0)
        if _RECORD_LENGTHS.unpack_from(directory, position) != expected:
            _fail_disagreement(info)
        position += _RECORD_LENGTHS.size + sum(expected)
    if len(infos) != count or position != len(directory):
        raise ValueError(
            f"the zip directory is damaged: it announces {count} entries and holds {len(infos)}"
        )


def _data_offset(file: BinaryIO, info: zipfile.ZipInfo, end: int) -> int:
    """Where an entry's bytes begin, once its local header and what follows the bytes agree with the
    directory. end: where the next entry begins"""
    name, size = info.orig_filename, info.file_size
    if info.compress_type != zipfile.ZIP_STORED:
        raise ValueError(
            f"zip entry {name!r} is compressed (method {info.compress_type}), "
            "expected stored bytes as torch.save writes them"
        )
    if info.flag_bits & ~(_DESCRIPTOR_FLAG | _UTF8_FLAG):
        raise ValueError(
            f"zip entry {name!r} has flags {info.flag_bits} (encrypted, or not written by "
            "torch.save)"
        )
    header = _read(file, info.header_offset, _LOCAL.size)
    signature, flags, method, *sums, name_length, extra_length = _LOCAL.unpack(header)
    rest = _read(file, info.header_offset + _LOCAL.size, name_length + extra_length)
    offset = info.header_offset + _LOCAL.size + len(rest)
    has_descriptor = bool(flags & _DESCRIPTOR_FLAG)
    gap = end - offset - size
    if (
        info.compress_size != size
        or (signature, flags, method) != (b"PK\x03\x04", info.flag_bits, 0)
        or rest[:name_length] != _name_bytes(info)
        or not 0 <= gap <= 24
    ):
        _fail_disagreement(info)
    wide = _zip64_sizes(name, rest[name_length:])
    if sums[1:] == [_IN_ZIP64, _IN_ZIP64]:
        sums[1:] = wide
    # A writer that streams does not know them yet and leaves zeros.
    if sums != [info.CRC, size, size] and not (has_descriptor and sums == [0, 0, 0]):
        _fail_disagreement(info)
    if _read(file, offset + size, gap) not in (_descriptors(info) if has_descriptor else (b"",)):
        _fail_disagreement(info)
    return offset


def _zip64_sizes(name: str, extra: bytes) -> list[int]:
    """The two sizes that a local header's extra field holds in 64 bits; none where it does not."""
    sizes: list[int] = []
    while extra:
        kind, length = struct.unpack_from("<2H", extra) if len(extra) >= 4 else (0, len(extra))
        if len(extra) < 4 + length:
            raise ValueError(f"zip entry {name!r} has a damaged extra field")
        if kind == _ZIP64_EXTRA and length >= 16:
            sizes = list(struct.unpack_from("<2Q", extra, 4))
        extra = extra[4 + length :]
    return sizes


def _descriptors(info: zipfile.ZipInfo) -> list[bytes]:
    """What may follow an entry's bytes: checksum and sizes in 32 or 64 bits, with or without a
    signature."""
    values = (info.CRC, info.file_size, info.file_size)
    bodies = [struct.pack("<LQQ", *values)]
    if info.file_size <= _IN_ZIP64:
        bodies.append(struct.pack("<LLL", *values))
    return [signature + body for signature in (b"", b"PK\x07\x08") for body in bodies]


def _name_bytes(info: zipfile.ZipInfo) -> bytes:
    return info.orig_filename.encode("utf-8" if info.flag_bits & _UTF8_FLAG else "cp437")


def _fail_disagreement(info: zipfile.ZipInfo) -> NoReturn:
    raise ValueError(
        f"zip entry {info.orig_filename!r}: its sizes, place or checksum disagree between the zip "
        "directory and the entry itself; the file is damaged"
    )


def _read(file: BinaryIO, offset: int, size: int) -> bytes:
    data = os.pread(file.fileno(), size, offset)
    if len(data) != size:
        raise ValueError(
            f"file is truncated: bytes {offset}..{offset + size} are needed, "
            f"file has {os.fstat(file.fileno()).st_size}"
        )
    return data
