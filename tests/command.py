"""The `nightingale` command, or another, as a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

COMMAND = [sys.executable, "-m", "nightingale"]
PATIENCE = 300  # seconds that a busy machine may take for what takes one


def run(
    *args: str | Path, command: list[str] = COMMAND, **kwargs: Any
) -> subprocess.CompletedProcess[str]:
    words = [*command, *map(str, args)]
    return subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, **kwargs)


def start(*args: str | Path, command: list[str] = COMMAND, **kwargs: Any) -> subprocess.Popen[str]:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([*command, *map(str, args)], **(pipes | kwargs))


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())
