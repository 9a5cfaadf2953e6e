"""Clips laid end to end in files of int16 sound, and an index of what is where."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np


def write_shard(folder: Path, name: str, clips: Iterable[tuple[dict, np.ndarray]]) -> list[str]:
    """Puts clips, [n] int16, into the file `name`. → their lines of the index"""
    pieces, lines, start = [np.empty(0, np.int16)], [], 0
    for entry, clip in clips:
        place = {"shard": name, "start": start, "samples": len(clip)}
        lines.append(json.dumps(entry | place, ensure_ascii=False) + "\n")
        pieces.append(clip)
        start += len(clip)
    np.save(folder / name, np.concatenate(pieces))
    return lines


def write_index(folder: Path, lines: Iterable[str]) -> None:
    """Comes last: with it the folder is whole."""
    partial = folder / ".index.jsonl.partial"
    partial.write_text("".join(lines), encoding="utf-8")
    os.replace(partial, folder / "index.jsonl")


def read_index(folder: Path) -> list[dict]:
    """The entries of an index, train.corpus's or the teacher's."""
    with (folder / "index.jsonl").open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
