"""Files that training writes: a stage's weights with their facts, JSON and arrays.

Each file appears whole or not at all.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor


def save_stage(
    folder: str | Path,
    stage: str,
    tensors: Mapping[str, Tensor],
    facts: Mapping[str, Any],
    dtype: torch.dtype = torch.float32,
) -> Path:
    """Writes STAGE.safetensors, floats as `dtype`, and STAGE.json with the facts.

    Returns the path of the tensors, which is what `--resume` takes.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    kept = {}
    for name, tensor in tensors.items():
        tensor = tensor.detach()
        if tensor.is_floating_point():
            tensor = tensor.to(dtype)
        # A copy: safetensors refuses tensors that share memory.
        kept[name] = tensor.cpu().clone(memory_format=torch.contiguous_format)
    path = folder / f"{stage}.safetensors"
    partial = folder / f".{stage}.safetensors.partial"
    save_file(kept, partial)
    os.replace(partial, path)
    write_json(path.with_suffix(".json"), facts)
    return path


def load_stage(path: str | Path, device: str = "cpu") -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors, in the stored type, and the facts that save_stage wrote at `path`."""
    path = Path(path)
    return load_file(path, device), json.loads(path.with_suffix(".json").read_text("utf-8"))


def write_json(path: Path, content: Any) -> None:
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    os.replace(partial, path)


def write_npz(path: Path, **arrays: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    with partial.open("wb") as file:
        np.savez(file, **arrays)
    os.replace(partial, path)
