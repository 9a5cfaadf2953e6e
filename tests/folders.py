"""Folders like a checkpoint's."""

from __future__ import annotations

from pathlib import Path


def without(checkpoint: Path, folder: Path, name: str) -> Path:
    """A folder with the checkpoint's files but one."""
    folder.mkdir(exist_ok=True)
    for file in checkpoint.iterdir():
        if file.name != name:
            (folder / file.name).symlink_to(file)
    return folder
