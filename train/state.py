"""A stage's weights and what is known of them: STAGE.safetensors with STAGE.json beside it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

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
    """Writes the tensors, floats as `dtype`, and the facts; each file appears whole or not at all.

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
    """The tensors, as they were stored, and the facts of what save_stage wrote at `path`."""
    path = Path(path)
    return load_file(path, device), json.loads(path.with_suffix(".json").read_text("utf-8"))


def write_json(path: Path, content: Any) -> None:
    """Writes JSON that appears whole or not at all."""
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    os.replace(partial, path)
