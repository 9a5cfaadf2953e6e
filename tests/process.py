"""What Linux tells of a process."""

from __future__ import annotations

import re
from pathlib import Path


def descriptors(pid: int) -> int:
    """Files and connections that it has open."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def threads(pid: int) -> int:
    return _status(pid, "Threads")


def resident(pid: int) -> int:
    """Bytes of memory."""
    return 1024 * _status(pid, "VmRSS")


def anonymous(pid: int) -> int:
    """Bytes of memory that are no pages of files, such as the code of libraries."""
    return 1024 * _status(pid, "RssAnon")


def peak_resident(pid: int) -> int:
    """The most bytes of memory that it has had."""
    return 1024 * _status(pid, "VmHWM")


def _status(pid: int, name: str) -> int:
    text = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(rf"^{name}:\s+(\d+)", text, re.MULTILINE)[1])
