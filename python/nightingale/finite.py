"""Why a model gave values that are not finite."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .torch_file import open_tensors

MOST_NAMES = 3  # in a message


def not_finite(stage: str, path: Path, prefix: str) -> str:
    """What to say of a stage that gave NaN or infinity: which of its tensors, whose names begin
    with the prefix, hold such values."""
    names = list(_bad_tensors(path, prefix))
    listed = ", ".join(names[:MOST_NAMES])
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    reason = (
        f"in {path} these weights are not finite: {listed}{more}; get the file again"
        if names
        else f"though the weights in {path} are finite; try dtype='float32' and another seed"
    )
    return f"the {stage} gave values that are not finite: {reason}"


def _bad_tensors(path: Path, prefix: str) -> Iterator[str]:
    file = open_tensors(path)
    for name in file.names():
        is_float = "float" in file.dtype(name)
        if name.startswith(prefix) and is_float and not np.isfinite(file.read(name)).all():
            yield name
