"""How a draft is initialized: by pruning its teacher in depth, feed-forward size and hidden size.

The hidden size is reduced by PCA: the residual stream is rotated to its principal directions, of
which the first are kept. Norm gains, which do not commute with a rotation, are folded into the
matrices behind them. Heads with the smallest weights are removed. Without a reduction the rotation
changes nothing but the perceiver's layer norm, which subtracts a mean over channels.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from .draft_objective import guided_logits
from .networks.t3 import HEAD, PERCEIVER_HEADS, T3
from .t3_examples import T3Batch

LAYERS_PER_DRAFT_LAYER = 5


def default_layers(teacher: int) -> int:
    """6 for the 30 layers of the official model."""
    return max(1, round(teacher / LAYERS_PER_DRAFT_LAYER))


def prune_layers(teacher: T3, layers: int, ffn: int) -> T3:
    """A T3 of `layers` evenly spaced layers of the teacher, including the first and the last, each
    with the `ffn` feed-forward channels of the largest weights."""
    size = teacher.size
    if not 1 <= layers <= size.layers or not 1 <= ffn <= size.ffn:
        raise SystemExit(
            f"a draft cannot have {layers} layers of {ffn} channels; the model has {size.layers} "
            f"of {size.ffn}"
        )
    tensors = teacher.state_dict()
    kept = np.linspace(0, size.layers - 1, layers).round().astype(int) if layers > 1 else [0]
    tensors_kept = {name: x for name, x in tensors.items() if not name.startswith("tfmr.layers.")}
    for number, layer in enumerate(kept):
        old, new = f"tfmr.layers.{layer}.", f"tfmr.layers.{number}."
        own = {name: x for name, x in tensors.items() if name.startswith(old)}
        own |= largest_ffn_channels(own, f"{old}mlp.", ffn)
        tensors_kept |= {new + name.removeprefix(old): x for name, x in own.items()}
    draft = T3(replace(size, layers=layers, ffn=ffn, alignment_heads=()))
    draft.load_state_dict(tensors_kept)
    return draft


def largest_ffn_channels(tensors: dict[str, Tensor], prefix: str, count: int) -> dict[str, Tensor]:
    """A feed-forward block with `count` of its channels, in their order."""
    gate, up, down = (tensors[f"{prefix}{name}_proj.weight"] for name in ("gate", "up", "down"))
    weight = gate.norm(dim=1) * up.norm(dim=1) * down.norm(dim=0)
    chosen = weight.topk(count).indices.sort().values
    parts = {"gate": gate[chosen], "up": up[chosen], "down": torch.index_select(down, 1, chosen)}
    return {f"{prefix}{name}_proj.weight": x for name, x in parts.items()}


def check_channels(count: int, hidden: int) -> None:
    if not 0 < count <= hidden or count % HEAD:
        raise SystemExit(
            f"a draft cannot have {count} channels; expected a multiple of {HEAD} up to {hidden}"
        )


@torch.no_grad()
def principal_directions(model: T3, batch: T3Batch, count: int) -> Tensor:
    """The principal directions of the layers' inputs over a batch: [hidden, count], orthonormal"""
    moments = torch.zeros(model.size.hidden, model.size.hidden, device=batch.tokens.device)

    def add(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        # Normalized, as the layers read it: every position has the same weight.
        x = nn.functional.normalize(inputs[0].flatten(0, 1).float(), dim=-1)
        moments.addmm_(x.T, x)

    readers = [*model.tfmr.layers, model.tfmr.norm]
    hooks = [reader.register_forward_pre_hook(add) for reader in readers]
    guided_logits(model, batch, torch.zeros(1, dtype=torch.int64, device=moments.device), 0.0)
    for hook in hooks:
        hook.remove()
    return torch.linalg.eigh(moments).eigenvectors[:, -count:]


@torch.no_grad()
def reduce_width(model: T3, directions: Tensor) -> T3:
    """The model in these directions of its hidden space: [hidden, a multiple of 64]"""
    hidden, count = directions.shape
    ours = T3(replace(model.size, hidden=count, alignment_heads=())).to(directions.device)
    gain = math.sqrt(hidden / count)  # RMS norm divides by the mean over fewer channels

    def write(to: nn.Module, weight: Tensor, bias: Tensor | None = None) -> None:
        """weight: [hidden, inputs]"""
        to.weight.copy_(directions.T @ weight)
        if bias is not None:
            to.bias.copy_(directions.T @ bias)

    def read(to: nn.Module, weight: Tensor, norm: nn.Module) -> None:
        """weight: [outputs, hidden], behind the norm"""
        to.weight.copy_(weight * norm.weight @ directions * gain)

    for name in ("text_emb", "speech_emb", "text_pos_emb.emb", "speech_pos_emb.emb"):
        ours.get_submodule(name).weight.copy_(model.get_submodule(name).weight @ directions)
    voice, our_voice = model.cond_enc, ours.cond_enc
    write(our_voice.spkr_enc, voice.spkr_enc.weight, voice.spkr_enc.bias)
    write(our_voice.emotion_adv_fc, voice.emotion_adv_fc.weight)
    query = voice.perceiver.pre_attention_query
    our_voice.perceiver.pre_attention_query.copy_(query @ directions)
    old, new = voice.perceiver.attn, our_voice.perceiver.attn
    query_channels = largest_channels(old.to_q.weight, old.to_k.weight, PERCEIVER_HEADS, count)
    value_channels = largest_channels(
        old.to_v.weight, old.proj_out.weight.T, PERCEIVER_HEADS, count
    )
    for name, rows in (
        ("to_q", query_channels),
        ("to_k", query_channels),
        ("to_v", value_channels),
    ):
        source, to = old.get_submodule(name), new.get_submodule(name)
        read(to, source.weight[rows], old.norm)
        to.bias.copy_((source.weight @ old.norm.bias + source.bias)[rows])
    write(new.proj_out, old.proj_out.weight[:, value_channels], old.proj_out.bias)
    for layer, our_layer in zip(model.tfmr.layers, ours.tfmr.layers, strict=True):
        attention, our_attention = layer.self_attn, our_layer.self_attn
        rows = largest_heads(attention.v_proj.weight, attention.o_proj.weight, count // HEAD)
        for name in ("q_proj", "k_proj", "v_proj"):
            weight = attention.get_submodule(name).weight[rows]
            read(our_attention.get_submodule(name), weight, layer.input_layernorm)
        write(our_attention.o_proj, attention.o_proj.weight[:, rows])
        for name in ("gate_proj", "up_proj"):
            weight = layer.mlp.get_submodule(name).weight
            read(our_layer.mlp.get_submodule(name), weight, layer.post_attention_layernorm)
        write(our_layer.mlp.down_proj, layer.mlp.down_proj.weight)
    read(ours.speech_head, model.speech_head.weight, model.tfmr.norm)
    return ours


def largest_heads(values: Tensor, out: Tensor, count: int) -> Tensor:
    """Channels of the heads with the largest weights. values, out: [hidden, hidden]"""
    weight = values.unflatten(0, (-1, HEAD)).norm(dim=(1, 2))
    weight = weight * out.unflatten(1, (-1, HEAD)).norm(dim=(0, 2))
    heads = weight.topk(count).indices.sort().values
    return (heads[:, None] * HEAD + torch.arange(HEAD, device=heads.device)).flatten()


def largest_channels(first: Tensor, second: Tensor, heads: int, count: int) -> Tensor:
    """As many channels of each head, `count` in total. first, second: [hidden, hidden]"""
    weight = (first.norm(dim=1) * second.norm(dim=1)).unflatten(0, (heads, -1))
    chosen = weight.topk(count // heads).indices.sort().values
    begin = torch.arange(heads, device=chosen.device)[:, None] * weight.shape[1]
    return (begin + chosen).flatten()
