"""A T3 in fewer channels: those that carry most of what its layers tell each other.

What layers add to and read from is turned to its principal directions, of which the first stay; the
gains of norms, which do not turn, go into what reads behind them. Heads that weigh least are left
out. In as many channels as before, that changes nothing but the perceiver's norm, which takes a
mean over channels.
"""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor, nn

from .draft_objective import guided_logits
from .networks.t3 import HEAD, PERCEIVER_HEADS, T3
from .t3_examples import T3Batch


def check_channels(count: int, hidden: int) -> None:
    if not 0 < count <= hidden or count % HEAD:
        raise SystemExit(
            f"a draft of {count} channels is none of a model that has {hidden}; name a multiple of "
            f"{HEAD} up to that"
        )


@torch.no_grad()
def principal_directions(model: T3, batch: T3Batch, count: int) -> Tensor:
    """Of what reaches the layers while a batch is said: [hidden, count], orthonormal"""
    moments = torch.zeros(model.size.hidden, model.size.hidden, device=batch.tokens.device)

    def add(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        # As the norms see it: every position counts the same.
        x = nn.functional.normalize(inputs[0].flatten(0, 1).float(), dim=-1)
        moments.addmm_(x.T, x)

    readers = [*model.tfmr.layers, model.tfmr.norm]
    hooks = [reader.register_forward_pre_hook(add) for reader in readers]
    guided_logits(model, batch, torch.zeros(1, dtype=torch.int64, device=moments.device), 0.0)
    for hook in hooks:
        hook.remove()
    return torch.linalg.eigh(moments).eigenvectors[:, -count:]


@torch.no_grad()
def narrowed(model: T3, directions: Tensor) -> T3:
    """The model in these directions of its channels: [hidden, a multiple of 64]"""
    hidden, count = directions.shape
    ours = T3(replace(model.size, hidden=count, alignment_heads=())).to(directions.device)
    gain = math.sqrt(hidden / count)  # a norm divides by the mean over fewer

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
    asked = heaviest(old.to_q.weight, old.to_k.weight, PERCEIVER_HEADS, count)
    told = heaviest(old.to_v.weight, old.proj_out.weight.T, PERCEIVER_HEADS, count)
    for name, rows in (("to_q", asked), ("to_k", asked), ("to_v", told)):
        source, to = old.get_submodule(name), new.get_submodule(name)
        read(to, source.weight[rows], old.norm)
        to.bias.copy_((source.weight @ old.norm.bias + source.bias)[rows])
    write(new.proj_out, old.proj_out.weight[:, told], old.proj_out.bias)
    for layer, our_layer in zip(model.tfmr.layers, ours.tfmr.layers, strict=True):
        attention, our_attention = layer.self_attn, our_layer.self_attn
        rows = heaviest_heads(attention.v_proj.weight, attention.o_proj.weight, count // HEAD)
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


def heaviest_heads(values: Tensor, out: Tensor, count: int) -> Tensor:
    """Channels of the heads that add most. values: [hidden, hidden]; out: [hidden, hidden]"""
    weight = values.unflatten(0, (-1, HEAD)).norm(dim=(1, 2))
    weight = weight * out.unflatten(1, (-1, HEAD)).norm(dim=(0, 2))
    heads = weight.topk(count).indices.sort().values
    return (heads[:, None] * HEAD + torch.arange(HEAD, device=heads.device)).flatten()


def heaviest(first: Tensor, second: Tensor, heads: int, count: int) -> Tensor:
    """Of each head as many channels, `count` in all. first, second: [hidden, hidden], by row"""
    weight = (first.norm(dim=1) * second.norm(dim=1)).unflatten(0, (heads, -1))
    chosen = weight.topk(count // heads).indices.sort().values
    begin = torch.arange(heads, device=chosen.device)[:, None] * weight.shape[1]
    return (begin + chosen).flatten()
