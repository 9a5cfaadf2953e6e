"""Loads a T3 from a model folder, official or our own, with its text tokenizer."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from .networks.t3 import HEAD, T3, T3Size
from .text_tokenizer import TextTokenizer

SETTINGS_FILE = "nightingale.json"
# The core's defaults by file name; a settings file in the folder overrides them.
MULTILINGUAL = {
    "tokenizer": "grapheme_mtl_merged_expanded_v1.json",
    "alignment_heads": [[12, 15], [13, 11], [9, 2]],
    "repetition_penalty": 2.0,
}
ENGLISH = {"tokenizer": "tokenizer.json", "alignment_heads": [], "repetition_penalty": 1.2}
V3 = MULTILINGUAL | {"repetition_penalty": 1.2}
FAMILIES = {"t3_mtl23ls_v2": MULTILINGUAL, "t3_mtl23ls_v3": V3, "t3_cfg": ENGLISH}
UNUSED = ("text_head.", "tfmr.embed_tokens.")


@dataclass(frozen=True)
class T3Checkpoint:
    name: str  # of its file, without the suffix
    model: T3
    tokenizer: TextTokenizer
    repetition_penalty: float


def load_checkpoint(folder: Path) -> T3Checkpoint:
    """The first T3 of the folder, in the core's order, in float32."""
    named = [(name, folder / (name + end)) for name in FAMILIES for end in (".safetensors", ".pt")]
    found = next(((name, path) for name, path in named if path.is_file()), None)
    if found is None:
        raise SystemExit(f"{folder} has no T3; expected one of {', '.join(FAMILIES)}")
    name, path = found
    family = FAMILIES[name]
    if not (folder / family["tokenizer"]).is_file():
        raise SystemExit(f"{folder} has {path.name} but not its tokenizer, {family['tokenizer']}")
    beside = folder / SETTINGS_FILE
    overrides = _read_json(beside).get("t3", {}) if beside.is_file() else {}
    settings: dict[str, Any] = family | overrides
    tokenizer = TextTokenizer(_read_json(folder / family["tokenizer"]), family is not ENGLISH)
    model = load_t3(path, settings["alignment_heads"])
    return T3Checkpoint(name, model, tokenizer, settings["repetition_penalty"])


def load_t3(path: Path, alignment_heads: list[list[int]] | None = None) -> T3:
    """Loads a file with the official tensor names, of any size."""
    tensors = load_file(path) if path.suffix == ".safetensors" else _load_torch(path)
    tensors = {name: x for name, x in tensors.items() if not name.startswith(UNUSED)}
    if not all(x.is_floating_point() for x in tensors.values()):
        raise SystemExit(f"{path} has quantized weights; name the file that it was made from")
    size = size_of(tensors, path, tuple((layer, head) for layer, head in alignment_heads or []))
    model = T3(size)
    try:
        model.load_state_dict({name: x.float() for name, x in tensors.items()})
    except RuntimeError as error:
        raise SystemExit(f"{path} is not a T3 checkpoint: {error}") from error
    return model.eval().requires_grad_(False)


def size_of(
    tensors: dict[str, Tensor], path: Path, alignment_heads: tuple[tuple[int, int], ...] = ()
) -> T3Size:
    """Reads the sizes from the tensors."""

    def shape(name: str) -> torch.Size:
        if name not in tensors:
            raise SystemExit(f"{path} is not a T3 checkpoint: it has no {name}")
        return tensors[name].shape

    vocabulary, hidden = shape("speech_emb.weight")
    places = [name.split(".")[2] for name in tensors if name.startswith("tfmr.layers.")]
    layers = 1 + max(map(int, places), default=-1)
    for layer, head in alignment_heads:
        if layer >= layers or head >= hidden // HEAD:
            raise SystemExit(
                f"{path} has {layers} layers of {hidden // HEAD} heads and no alignment head "
                f"[{layer}, {head}]; set t3.alignment_heads in {SETTINGS_FILE} beside it"
            )
    return T3Size(
        hidden=hidden,
        layers=layers,
        ffn=shape("tfmr.layers.0.mlp.gate_proj.weight")[0],
        alignment_heads=alignment_heads,
        text_vocabulary=shape("text_emb.weight")[0],
        speech_vocabulary=vocabulary,
        text_positions=shape("text_pos_emb.emb.weight")[0],
        speech_positions=shape("speech_pos_emb.emb.weight")[0],
        speaker=shape("cond_enc.spkr_enc.weight")[1],
        perceiver_queries=shape("cond_enc.perceiver.pre_attention_query")[1],
    )


def _load_torch(path: Path) -> dict[str, Tensor]:
    """A file of torch.save: the tensors, or a list or dictionary of them under "model"."""
    stored = torch.load(path, map_location="cpu", weights_only=True)
    stored = stored.get("model", stored)
    return stored[0] if isinstance(stored, list) else stored


def _read_json(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text("utf-8"))
