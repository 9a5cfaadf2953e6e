"""The flow's token encoder: a conformer with relative attention, two frames for each speech token.

Modules are named so that their tensors have the official names. Results do not depend on the
padding of a batch.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..masking import length_mask

HEAD = 64
LOOKAHEAD_TOKENS = 3
FRAMES_PER_TOKEN = 2


class TokenEncoder(nn.Module):
    """[B, T, width] embedded tokens → [B, 2 T, width] frames."""

    def __init__(self, width: int, ffn: int, layers: int, upper_layers: int) -> None:
        super().__init__()
        self.embed = Entry(width)
        self.pre_lookahead_layer = LookAhead(width)
        self.encoders = nn.ModuleList(Layer(width, ffn) for _ in range(layers))
        self.up_layer = Upsampling(width)
        self.up_embed = Entry(width)
        self.up_encoders = nn.ModuleList(Layer(width, ffn) for _ in range(upper_layers))
        self.after_norm = nn.LayerNorm(width)

    def forward(self, x: Tensor, counts: Tensor) -> Tensor:
        """counts: [B] tokens of each row"""
        frame_mask = length_mask(counts, x.shape[1])
        x = self.pre_lookahead_layer(self.embed(x) * frame_mask[..., None])
        x = run(self.encoders, x, frame_mask)
        x = self.up_embed(self.up_layer(x))
        x = run(self.up_encoders, x, frame_mask.repeat_interleave(FRAMES_PER_TOKEN, 1))
        return self.after_norm(x)


class Entry(nn.Module):
    """A projection to the scale of the residual stream."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.out = nn.Sequential(nn.Linear(width, width), nn.LayerNorm(width))
        self.scale = math.sqrt(width)

    def forward(self, x: Tensor) -> Tensor:
        return self.scale * self.out(x)


class LookAhead(nn.Module):
    """Adds a convolution over the next three tokens; the padding must be zeros."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv1d(width, width, LOOKAHEAD_TOKENS + 1)
        self.conv2 = nn.Conv1d(width, width, 3)

    def forward(self, x: Tensor) -> Tensor:
        y = functional.pad(x.transpose(1, 2), (0, LOOKAHEAD_TOKENS))
        y = functional.leaky_relu(self.conv1(y))
        y = self.conv2(functional.pad(y, (2, 0)))
        return x + y.transpose(1, 2)


class Upsampling(nn.Module):
    """Two frames for each token."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv = nn.Conv1d(width, width, 2 * FRAMES_PER_TOKEN + 1)

    def forward(self, x: Tensor) -> Tensor:
        frames = x.repeat_interleave(FRAMES_PER_TOKEN, 1).transpose(1, 2)
        return self.conv(functional.pad(frames, (2 * FRAMES_PER_TOKEN, 0))).transpose(1, 2)


class Layer(nn.Module):
    def __init__(self, width: int, ffn: int) -> None:
        super().__init__()
        self.norm_mha = nn.LayerNorm(width, eps=1e-12)
        self.self_attn = RelativeAttention(width)
        self.norm_ff = nn.LayerNorm(width, eps=1e-12)
        self.feed_forward = FeedForward(width, ffn)

    def forward(self, x: Tensor, distance: Tensor, frame_mask: Tensor) -> Tensor:
        x = x + self.self_attn(self.norm_mha(x), distance, frame_mask)
        return x + self.feed_forward(self.norm_ff(x))


class FeedForward(nn.Module):
    def __init__(self, width: int, ffn: int) -> None:
        super().__init__()
        self.w_1 = nn.Linear(width, ffn)
        self.w_2 = nn.Linear(ffn, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.w_2(functional.silu(self.w_1(x)))


class RelativeAttention(nn.Module):
    """Scores are (q + u) · k + (q + v) · p, where p encodes the distance of key and query."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear_q = nn.Linear(width, width)
        self.linear_k = nn.Linear(width, width)
        self.linear_v = nn.Linear(width, width)
        self.linear_out = nn.Linear(width, width)
        self.linear_pos = nn.Linear(width, width, bias=False)
        heads = width // HEAD
        self.pos_bias_u = nn.Parameter(nn.init.xavier_uniform_(torch.empty(heads, HEAD)))
        self.pos_bias_v = nn.Parameter(nn.init.xavier_uniform_(torch.empty(heads, HEAD)))

    def forward(self, x: Tensor, distance: Tensor, frame_mask: Tensor) -> Tensor:
        """x: [B, T, width]; distance: [2 T - 1, width]; frame_mask: [B, T] bool"""
        q, k, v = (
            projection(x).unflatten(-1, (-1, HEAD))
            for projection in (self.linear_q, self.linear_k, self.linear_v)
        )
        p = self.linear_pos(distance).unflatten(-1, (-1, HEAD))
        by_distance = torch.einsum("bthd,rhd->bhtr", q + self.pos_bias_v.to(q.dtype), p)
        bias = shift_to_keys(by_distance) / math.sqrt(HEAD)
        bias = bias.masked_fill(~frame_mask[:, None, None], torch.finfo(bias.dtype).min)
        y = functional.scaled_dot_product_attention(
            (q + self.pos_bias_u.to(q.dtype)).transpose(1, 2),
            k.transpose(1, 2),
            v.transpose(1, 2),
            attn_mask=bias,
        )
        return self.linear_out(y.transpose(1, 2).flatten(2))


def shift_to_keys(x: Tensor) -> Tensor:
    """[..., T, 2 T - 1] by distance → [..., T, T]: query i and key j take entry T - 1 - i + j."""
    length = x.shape[-2]
    # One more column shifts every row by one entry against the row before it.
    rows = functional.pad(x, (1, 0)).flatten(-2).unflatten(-1, (2 * length, length))
    return rows[..., 1:, :].flatten(-2).unflatten(-1, (length, 2 * length - 1))[..., :length]


def run(layers: nn.ModuleList, x: Tensor, frame_mask: Tensor) -> Tensor:
    distance = distances(x.shape[1], x.shape[2], x.device)
    for layer in layers:
        x = layer(x, distance, frame_mask)
    return x


def distances(length: int, width: int, device: torch.device) -> Tensor:
    """Sines and cosines of the distances length - 1 … 1 - length: [2 length - 1, width]"""
    distance = torch.arange(length - 1, -length, -1, device=device, dtype=torch.float32)
    even = torch.arange(0, width, 2, device=device, dtype=torch.float32)
    angle = distance[:, None] * torch.exp(even * (-math.log(10000.0) / width))
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)
