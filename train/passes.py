"""Every row of a corpus once, and what was computed of them, kept."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .data import RATE, Batch, Corpus


def one_pass(corpus: Corpus, seconds: float) -> Iterator[Batch]:
    """The corpus's rows from the shortest to the longest, `seconds` of padded sound a batch.

    A row longer than that is a batch of its own.
    """
    order = sorted(corpus.members.tolist(), key=lambda row: corpus.rows[row].samples)
    group: list[int] = []
    for row in order:
        if group and (len(group) + 1) * corpus.rows[row].samples > seconds * RATE:
            yield corpus.row_batch(group)
            group = []
        group.append(row)
    if group:
        yield corpus.row_batch(group)


def write_arrays(path: Path, **arrays: np.ndarray) -> None:
    """An .npz that appears whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    with partial.open("wb") as file:
        np.savez(file, **arrays)
    os.replace(partial, path)
