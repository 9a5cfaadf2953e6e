"""Folders like a checkpoint's."""

from __future__ import annotations

import json
from pathlib import Path

SETTINGS = "nightingale.json"
# Tokens of the voice that S3Gen sees with every chunk. An official voice has 250, on which speech
# would spend most of its time.
SHORT_PROMPT = 25


def without(checkpoint: Path, folder: Path, name: str) -> Path:
    """A folder with the checkpoint's files but one."""
    folder.mkdir(exist_ok=True)
    for file in checkpoint.iterdir():
        if file.name != name:
            (folder / file.name).symlink_to(file)
    return folder


def with_settings(checkpoint: Path, folder: Path, **sections: object) -> Path:
    """A folder like the checkpoint's, of whose settings some sections are others."""
    content = json.loads((checkpoint / SETTINGS).read_text("utf-8")) | sections
    without(checkpoint, folder, SETTINGS)
    (folder / SETTINGS).write_text(json.dumps(content), encoding="utf-8")
    return folder
