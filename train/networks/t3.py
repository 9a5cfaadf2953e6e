"""T3, text to speech tokens, in PyTorch with the official tensor names.

A row is [voice | start, text, stop | start of speech | start of speech, speech tokens ...], with
the padding at its end, which a causal network ignores. Packed rows number speech ids after text
ids, and speech positions after text positions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from .speech_tokenizer import CODES, digit_embeddings

HEAD = 64
PERCEIVER_HEADS = 4
NORM_EPS = 1e-5
START_TEXT, STOP_TEXT = 255, 0
START_SPEECH, STOP_SPEECH = CODES, CODES + 1  # ids below are speech
INIT_SCALE = 0.02
THETA, FACTOR, LOW_FREQUENCY, HIGH_FREQUENCY, ORIGINAL_POSITIONS = 5e5, 8.0, 1.0, 4.0, 8192


@dataclass(frozen=True)
class T3Size:
    hidden: int
    layers: int
    ffn: int
    alignment_heads: tuple[tuple[int, int], ...]  # layer and head
    text_vocabulary: int = START_TEXT + 1
    speech_vocabulary: int = STOP_SPEECH + 1
    text_positions: int = 512  # a text segment has at most 400 tokens
    speech_positions: int = 1024  # the default max_tokens is 1000
    speaker: int = 256
    perceiver_queries: int = 32


SIZES = {
    "small": T3Size(hidden=384, layers=8, ffn=896, alignment_heads=((3, 0), (4, 0), (5, 0))),
    # The official size, with the alignment heads of its analyser.
    "full": T3Size(hidden=1024, layers=30, ffn=4096, alignment_heads=((9, 2), (12, 15), (13, 11))),
    "tiny": T3Size(hidden=128, layers=3, ffn=192, alignment_heads=((1, 0), (1, 1))),
}


@dataclass(frozen=True)
class PackedRows:
    """Rows without their voice, int64."""

    tokens: np.ndarray  # [B, T]
    positions: np.ndarray  # [B, T]
    output_positions: (
        np.ndarray
    )  # [B, K]: the k-th speech token is what follows the place ask[b, k]


def pack_rows(
    size: T3Size, texts: Sequence[np.ndarray], speech: Sequence[np.ndarray]
) -> PackedRows:
    """texts: ids without start and stop; speech: the input tokens of each row"""
    rows = list(zip(texts, speech, strict=True))
    counts = np.array([(len(text) + 2, len(spoken) + 1) for text, spoken in rows])
    length = int(counts.sum(1).max()) + 1
    tokens = np.zeros((len(rows), length), np.int64)
    positions = np.zeros((len(rows), length), np.int64)
    for row, (text, spoken) in enumerate(rows):
        first, count = counts[row]
        speech_ids = np.concatenate(([START_SPEECH, START_SPEECH], spoken)) + size.text_vocabulary
        tokens[row, :first] = np.concatenate(([START_TEXT], text, [STOP_TEXT]))
        tokens[row, first : first + 1 + count] = speech_ids
        positions[row, :first] = np.arange(first)
        positions[row, first] = size.text_positions
        positions[row, first + 1 : first + 1 + count] = size.text_positions + np.arange(count)
    output_positions = (
        counts[:, :1] + 1 + np.minimum(np.arange(counts[:, 1].max()), counts[:, 1:] - 1)
    )
    return PackedRows(tokens, positions, output_positions)


@dataclass
class Trace:
    """Activations of the backbone: T positions, including the voice's."""

    hidden: Tensor  # [B, T, hidden], after the final norm
    middle: Tensor  # [B, T, hidden], after the last layer with an alignment head
    queries: Tensor  # [B, alignment heads, T, 64], with rotary embedding
    keys: Tensor  # [B, alignment heads, T, 64], with rotary embedding


class T3(nn.Module):
    def __init__(self, size: T3Size, dropout: float = 0.0) -> None:
        super().__init__()
        self.size = size
        self.dropout = dropout
        self.cond_enc = VoiceConditioning(size)
        self.text_emb = nn.Embedding(size.text_vocabulary, size.hidden)
        self.speech_emb = nn.Embedding(size.speech_vocabulary, size.hidden)
        self.text_pos_emb = Positions(size.text_positions, size.hidden)
        self.speech_pos_emb = Positions(size.speech_positions, size.hidden)
        self.tfmr = Backbone(size, dropout)
        self.speech_head = nn.Linear(size.hidden, size.speech_vocabulary, bias=False)
        self.apply(_initialise)
        for table in (self.speech_emb, self.speech_head):
            table.weight.data[:CODES] = INIT_SCALE * digit_embeddings(size.hidden)
        for name, weight in self.named_parameters():
            if name.endswith(("o_proj.weight", "down_proj.weight")):
                nn.init.normal_(weight, std=INIT_SCALE / math.sqrt(2 * size.layers))

    def voice(
        self,
        speaker: Tensor,
        emotion: Tensor,
        prompt: Tensor | None = None,
        prompt_counts: Tensor | None = None,
    ) -> Tensor:
        """speaker: [B, 256]; emotion: [B]; prompt: [B, P] speech tokens → [B, C, hidden]"""
        embedded = known = None
        if prompt is not None:
            at = torch.arange(prompt.shape[1], device=prompt.device)
            embedded = self.speech_emb(prompt) + self.speech_pos_emb.emb(at)
            known = at < prompt_counts[:, None]
        return self.cond_enc(speaker, emotion, embedded, known)

    def embed(self, tokens: Tensor, positions: Tensor, has_text: Tensor) -> Tensor:
        """tokens, positions: of PackedRows; has_text: [B] bool → [B, T, hidden]"""
        words = torch.cat((self.text_emb.weight, self.speech_emb.weight))
        places = torch.cat((self.text_pos_emb.emb.weight, self.speech_pos_emb.emb.weight))
        kept = has_text[:, None] | (tokens >= self.size.text_vocabulary)
        return functional.embedding(tokens, words) * kept[..., None] + functional.embedding(
            positions, places
        )

    def forward(self, voice: Tensor, embedded: Tensor) -> Trace:
        """voice: [B, C, hidden]; embedded: [B, T, hidden]"""
        x = functional.dropout(torch.cat((voice, embedded), 1), self.dropout, self.training)
        at = torch.arange(x.shape[1], device=x.device)
        return self.tfmr(x, at[None])

    def guidance_rows(
        self, voice: Tensor, tokens: Tensor, positions: Tensor, output_positions: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Hidden states at the output positions, with and without the text. tokens, positions,
        output_positions: of PackedRows → [B, K, hidden] twice"""
        has_text = torch.arange(2 * len(voice), device=voice.device) < len(voice)
        embedded = self.embed(tokens.repeat(2, 1), positions.repeat(2, 1), has_text)
        trace = self(voice.repeat(2, 1, 1), embedded)
        conditional, unconditional = gather_positions(
            trace.hidden, output_positions.repeat(2, 1) + voice.shape[1]
        ).chunk(2)
        return conditional, unconditional


class Positions(nn.Module):
    def __init__(self, count: int, hidden: int) -> None:
        super().__init__()
        self.emb = nn.Embedding(count, hidden)


class VoiceConditioning(nn.Module):
    def __init__(self, size: T3Size) -> None:
        super().__init__()
        self.spkr_enc = nn.Linear(size.speaker, size.hidden)
        self.emotion_adv_fc = nn.Linear(1, size.hidden, bias=False)
        self.perceiver = Perceiver(size.hidden, size.perceiver_queries)

    def forward(
        self, speaker: Tensor, emotion: Tensor, prompt: Tensor | None, known: Tensor | None
    ) -> Tensor:
        parts = [self.spkr_enc(speaker)[:, None], self.emotion_adv_fc(emotion[:, None, None])]
        if prompt is not None:
            parts.insert(1, self.perceiver(prompt, known))
        return torch.cat(parts, 1)


class Perceiver(nn.Module):
    def __init__(self, hidden: int, queries: int) -> None:
        super().__init__()
        self.pre_attention_query = nn.Parameter(INIT_SCALE * torch.randn(1, queries, hidden))
        self.attn = PerceiverAttention(hidden)

    def forward(self, prompt: Tensor, known: Tensor) -> Tensor:
        """prompt: [B, P, hidden]; known: [B, P] bool → [B, queries, hidden]"""
        queries = self.pre_attention_query.expand(len(prompt), -1, -1)
        summary = self.attn(queries, prompt, known[:, None, None])
        return self.attn(summary, summary, None)


class PerceiverAttention(nn.Module):
    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(hidden, eps=NORM_EPS)
        self.to_q = nn.Linear(hidden, hidden)
        self.to_k = nn.Linear(hidden, hidden)
        self.to_v = nn.Linear(hidden, hidden)
        self.proj_out = nn.Linear(hidden, hidden)

    def forward(self, x: Tensor, y: Tensor, mask: Tensor | None) -> Tensor:
        read = self.norm(y)
        out = functional.scaled_dot_product_attention(
            _heads(self.to_q(self.norm(x)), PERCEIVER_HEADS),
            _heads(self.to_k(read), PERCEIVER_HEADS),
            _heads(self.to_v(read), PERCEIVER_HEADS),
            attn_mask=mask,
        )
        return x + self.proj_out(out.transpose(1, 2).flatten(2))


# Each layer's keys and values of the previous positions, None before the first.
Cache = list[tuple[Tensor, Tensor] | None]


class Backbone(nn.Module):
    """Llama blocks."""

    def __init__(self, size: T3Size, dropout: float) -> None:
        super().__init__()
        self.alignment_heads = size.alignment_heads
        self.layers = nn.ModuleList(
            Block(size.hidden, size.ffn, dropout) for _ in range(size.layers)
        )
        self.norm = RmsNorm(size.hidden)
        self.register_buffer("frequencies", rotary_frequencies(), persistent=False)

    def forward(
        self,
        x: Tensor,
        at: Tensor,
        mask: Tensor | None = None,
        cache: Cache | None = None,
    ) -> Trace:
        """x: [B, T, hidden] at positions at: [1 or B, T]; mask: [B, 1, T, S] bool, None for causal.

        cache: of the previous positions, extended in place
        """
        angles = at[:, None, :, None] * self.frequencies
        rotary = (angles.cos(), angles.sin())
        queries, keys = [], []
        middle = x
        for number, layer in enumerate(self.layers):
            past = cache[number] if cache is not None else None
            x, q, k, v = layer(x, rotary, mask, past)
            if cache is not None:
                cache[number] = (k, v)
            heads = [head for at_layer, head in self.alignment_heads if at_layer == number]
            if heads:
                queries.append(q[:, heads])
                keys.append(k[:, heads])
                middle = x
        if not queries:
            queries, keys = [q[:, :0]], [k[:, :0]]
        return Trace(self.norm(x), middle, torch.cat(queries, 1), torch.cat(keys, 1))


class Block(nn.Module):
    def __init__(self, hidden: int, ffn: int, dropout: float) -> None:
        super().__init__()
        self.input_layernorm = RmsNorm(hidden)
        self.self_attn = Attention(hidden)
        self.post_attention_layernorm = RmsNorm(hidden)
        self.mlp = SwiGlu(hidden, ffn)
        self.dropout = dropout

    def forward(
        self,
        x: Tensor,
        rotary: tuple[Tensor, Tensor],
        mask: Tensor | None,
        past: tuple[Tensor, Tensor] | None,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        out, q, k, v = self.self_attn(self.input_layernorm(x), rotary, mask, past)
        x = x + functional.dropout(out, self.dropout, self.training)
        out = self.mlp(self.post_attention_layernorm(x))
        return x + functional.dropout(out, self.dropout, self.training), q, k, v


class Attention(nn.Module):
    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.q_proj = nn.Linear(hidden, hidden, bias=False)
        self.k_proj = nn.Linear(hidden, hidden, bias=False)
        self.v_proj = nn.Linear(hidden, hidden, bias=False)
        self.o_proj = nn.Linear(hidden, hidden, bias=False)
        self.heads = hidden // HEAD

    def forward(
        self,
        x: Tensor,
        rotary: tuple[Tensor, Tensor],
        mask: Tensor | None,
        past: tuple[Tensor, Tensor] | None,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """→ out [B, T, hidden], queries [B, heads, T, 64], keys and values of all positions"""
        q = _apply_rotary(_heads(self.q_proj(x), self.heads), *rotary)
        k = _apply_rotary(_heads(self.k_proj(x), self.heads), *rotary)
        v = _heads(self.v_proj(x), self.heads)
        if past is not None:
            k, v = torch.cat((past[0], k), 2), torch.cat((past[1], v), 2)
        out = functional.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, is_causal=mask is None
        )
        return self.o_proj(out.transpose(1, 2).flatten(2)), q, k, v


class SwiGlu(nn.Module):
    def __init__(self, hidden: int, ffn: int) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(hidden, ffn, bias=False)
        self.up_proj = nn.Linear(hidden, ffn, bias=False)
        self.down_proj = nn.Linear(ffn, hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))


class RmsNorm(nn.Module):
    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))

    def forward(self, x: Tensor) -> Tensor:
        return functional.rms_norm(x, self.weight.shape, self.weight, NORM_EPS)


def rotary_frequencies() -> Tensor:
    """Radians per position of each pair of channels, with llama3 scaling: [32] float32"""
    plain = 1.0 / THETA ** (torch.arange(0, HEAD, 2, dtype=torch.float64) / HEAD)
    turns = ORIGINAL_POSITIONS * plain / (2 * math.pi)
    blend = ((turns - LOW_FREQUENCY) / (HIGH_FREQUENCY - LOW_FREQUENCY)).clamp(0, 1)
    return ((1 - blend) * plain / FACTOR + blend * plain).float()


def log_attention(queries: Tensor, keys: Tensor, kept: Tensor) -> Tensor:
    """Log-attention. mask: [B, K, S] bool → [B, heads, K, S]

    queries: [B, heads, K, 64]; keys: [B, heads, S, 64], as a Trace has them
    """
    scores = (queries @ keys.transpose(2, 3)).float() / math.sqrt(HEAD)
    scores = scores.masked_fill(~kept[:, None], -math.inf)
    return scores - scores.logsumexp(-1, keepdim=True)


def text_attention(trace: Trace, output_positions: Tensor, begin: int, count: int) -> Tensor:
    """Log-attention of the alignment heads to the positions [begin, begin + count).

    ask: [B, K], places of the queries, the voice's included → [B, heads, K, count]
    """
    places = output_positions[:, None, :, None].expand(-1, trace.queries.shape[1], -1, HEAD)
    at = torch.arange(trace.keys.shape[2], device=output_positions.device)
    weights = log_attention(
        trace.queries.gather(2, places), trace.keys, at <= output_positions[..., None]
    )
    return weights[..., begin : begin + count]


def gather_positions(x: Tensor, places: Tensor) -> Tensor:
    """x: [B, T, D]; places: [B, K] → [B, K, D]"""
    return x.gather(1, places[..., None].expand(-1, -1, x.shape[-1]))


def _heads(x: Tensor, heads: int) -> Tensor:
    """[B, T, heads · d] → [B, heads, T, d]"""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def _apply_rotary(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Rotates the channel pairs (i, i + 32): [B, heads, T, 64]"""
    first, second = x.chunk(2, -1)
    turned = (first * cosine - second * sine, second * cosine + first * sine)
    return torch.cat(turned, -1).type_as(x)


def _initialise(module: nn.Module) -> None:
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=INIT_SCALE)
        if getattr(module, "bias", None) is not None:
            nn.init.zeros_(module.bias)
