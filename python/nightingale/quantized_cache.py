"""Quantised copies of T3 files, kept so that loading them is only reading."""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from . import _core
from ._core import Error
from .atomic_files import unfinished_files
from .mlx_files import T3, is_conversion, open_part
from .options import LoadOptions
from .quantization import Progress, notes_of, t3_bits, write_quantized
from .torch_file import open_tensors
from .user_folders import user_folder

logger = logging.getLogger(__name__)

SAMPLES = 64  # blocks that are hashed, spread evenly from the first byte to the last
SAMPLE_BYTES = 1 << 16
ENTRY = re.compile(r".+-[0-9a-f]{16}-int[48]\.safetensors")  # as _path_of names them


def cache_folder() -> Path:
    """Where quantised files are kept; all of it can be made again."""
    return user_folder("Caches", "XDG_CACHE_HOME", ".cache") / "quantized"


def source_identity(path: Path) -> dict[str, Any]:
    """What tells a file from any other without reading all of it: name, size, time of its last
    change, and a hash of 64 blocks of 64 KiB, the first of which holds the header or some of it."""
    status = path.stat()
    blake = hashlib.blake2b(digest_size=16)
    last = max(status.st_size - SAMPLE_BYTES, 0)
    with open(path, "rb") as file:
        for i in range(SAMPLES):
            file.seek(last * i // (SAMPLES - 1))
            blake.update(file.read(SAMPLE_BYTES))
    return {
        "name": path.name,
        "size": status.st_size,
        "mtime_ns": status.st_mtime_ns,
        "sample": blake.hexdigest(),
    }


def cached_path(source: Path, bits: int) -> Path:
    """Where the copy of `source` in `bits` is, or would be."""
    return _path_of(source, source_identity(source), bits)


def _path_of(source: Path, identity: dict[str, Any], bits: int) -> Path:
    key = hashlib.blake2b(repr(sorted(identity.items())).encode(), digest_size=8).hexdigest()
    return cache_folder() / f"{source.stem}-{key}-int{bits}.safetensors"


def write_cached(source: Path, bits: int, progress: Progress | None = None) -> Path:
    """Quantises a T3 file into the cache, where what serves nobody any more is removed first, and
    gives the copy's path."""
    identity = source_identity(source)
    target = _path_of(source, identity, bits)
    # Not resolved: in the hub's cache a file has its name by a link.
    notes = {"bits": bits, "source": identity, "path": os.path.abspath(source)}
    with _writing(target.parent):
        write_quantized(source, target, t3_bits(bits), notes, progress)
    return target


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Tidies a cache up if nobody writes to it, then keeps others from doing so. Its lock ends with
    the process, however it ends: that tells a file being written from one left behind."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise Error(f"cannot make {folder}: {error.strerror}") from error
    try:
        if _locks(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB):
            _tidy(folder)
        _locks(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


def _locks(descriptor: int, how: int) -> bool:
    """False where others write, or where the file system has no locks and nothing is tidied."""
    try:
        fcntl.flock(descriptor, how)
    except OSError:
        return False
    return True


def _tidy(folder: Path) -> None:
    """Removes what killed processes were writing, and copies of files that are gone or changed."""
    left = [file for file, name in unfinished_files(folder) if ENTRY.fullmatch(name)]
    entries = [file for file in folder.iterdir() if ENTRY.fullmatch(file.name)]
    for file in [*left, *(entry for entry in entries if not _is_current(entry))]:
        try:
            file.unlink()
        except OSError as error:
            logger.warning("cannot remove %s: %s", file, error.strerror)
        else:
            logger.info("removed %s", file)


def _is_current(entry: Path) -> bool:
    """Whether the file that a copy was made of is where it was, as it was."""
    try:
        notes = notes_of(entry) or {}
        return cached_path(Path(notes["path"]), notes["bits"]) == entry
    except (Error, OSError, ValueError, KeyError, TypeError):
        return False


def load_t3(
    source: Path, options: LoadOptions, settings_of: Path | None = None
) -> tuple[_core.T3, list[str]]:
    """T3 and the names of tensors it does not know. With `bits` the cached copy is taken where
    there is one; a damaged one is made again. settings_of: the path whose name tells its settings,
    where that is not the file's own"""
    if options.bits is not None and not is_conversion(source):
        identity = source_identity(source)
        cached = _path_of(source, identity, options.bits)
        remedies = ("it is made again", f"{source.name} is quantised in memory")
        for remedy in remedies if cached.is_file() else ():
            try:
                if remedy != remedies[0]:
                    write_cached(source, options.bits)
                _check_source(cached, source, identity)
                return _core.T3.load(open_tensors(cached), options, str(source))
            except Error as error:
                logger.warning("%s; %s", error, remedy)
    return _core.T3.load(open_part(source, T3), options, str(settings_of or source))


def _check_source(cached: Path, source: Path, identity: dict[str, Any]) -> None:
    """An Error where a copy is not one of this file."""
    notes = notes_of(cached) or {}
    # By which path does not matter, as long as it leads to such a file: else the next tidying up
    # would remove the copy.
    same_path = notes.get("path") == os.path.abspath(source)
    if notes.get("source") != identity or not (same_path or _is_current(cached)):
        raise Error(f"{cached} does not say that it was made of {source}")
