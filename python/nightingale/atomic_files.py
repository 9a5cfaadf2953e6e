"""Files that appear under their name whole or not at all."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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
