"""How a draft begins: as some layers of its teacher, between the teacher's embeddings and head."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from .networks.t3 import T3

USUAL_SHARE = 5  # layers of the teacher to one of the draft


def usual_layers(teacher: int) -> int:
    """Six of the official model's thirty."""
    return max(1, round(teacher / USUAL_SHARE))


def begun_from(teacher: T3, layers: int, ffn: int) -> T3:
    """A T3 of `layers` evenly spaced layers of the teacher's, the first and the last among them,
    each with the `ffn` channels that weigh most."""
    size = teacher.size
    if not 1 <= layers <= size.layers or not 1 <= ffn <= size.ffn:
        raise SystemExit(
            f"a draft of {layers} layers of {ffn} channels is none of a model that has "
            f"{size.layers} of {size.ffn}; name as many at most"
        )
    tensors = teacher.state_dict()
    kept = np.linspace(0, size.layers - 1, layers).round().astype(int) if layers > 1 else [0]
    taken = {name: x for name, x in tensors.items() if not name.startswith("tfmr.layers.")}
    for number, layer in enumerate(kept):
        old, new = f"tfmr.layers.{layer}.", f"tfmr.layers.{number}."
        own = {name: x for name, x in tensors.items() if name.startswith(old)}
        own |= heaviest_channels(own, f"{old}mlp.", ffn)
        taken |= {new + name.removeprefix(old): x for name, x in own.items()}
    draft = T3(replace(size, layers=layers, ffn=ffn, alignment_heads=()))
    draft.load_state_dict(taken)
    return draft


def heaviest_channels(tensors: dict[str, Tensor], prefix: str, count: int) -> dict[str, Tensor]:
    """A feed-forward part with `count` of its channels, in their order."""
    gate, up, down = (tensors[f"{prefix}{name}_proj.weight"] for name in ("gate", "up", "down"))
    weight = gate.norm(dim=1) * up.norm(dim=1) * down.norm(dim=0)
    chosen = weight.topk(count).indices.sort().values
    parts = {"gate": gate[chosen], "up": up[chosen], "down": torch.index_select(down, 1, chosen)}
    return {f"{prefix}{name}_proj.weight": x for name, x in parts.items()}
