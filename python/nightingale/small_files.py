"""Reading small files that others may have put in place of what was there."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ._core import Error


def read_small(path: Path, most: int) -> bytes:
    """What a regular file of at most `most` bytes holds. A named pipe would be waited for, and a
    device may never end."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise Error(f"{path} is not a regular file")
            content = file.read(most + 1)
    except OSError as error:
        raise Error(f"cannot read {path}: {error.strerror}") from error
    if len(content) > most:
        raise Error(f"{path} is longer than {most} bytes, which is the most that is read")
    return content
