"""Reads the tensors of a checkpoint for the reference's models."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file

Arrays = dict[str, np.ndarray]
State = dict[str, torch.Tensor]

HEAD_SIZE = 64


def load_tensors(checkpoint: str | Path, names: Sequence[str]) -> State:
    """The tensors of a file, or of the first of these files in a folder; floats as float32."""
    path = Path(checkpoint)
    if path.is_dir():
        path = next(path / name for name in names if (path / name).exists())
    state = torch.load(path, "cpu", weights_only=True) if path.suffix == ".pt" else load_file(path)
    if "model" in state:  # a training checkpoint
        state = state["model"][0]
    return {
        name: tensor.float() if tensor.is_floating_point() else tensor
        for name, tensor in state.items()
    }


def count(state: State, prefix: str) -> int:
    """How many numbered modules there are behind a prefix."""
    return len({name[len(prefix) :].split(".")[0] for name in state if name.startswith(prefix)})
