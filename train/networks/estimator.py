"""The flow's estimator: the velocity from noise to mel, by a causal U-Net with attention.

Arrays of frames are [B, T, channels]. Modules are named so that their tensors have the official
names. Convolutions are causal, so padding needs a mask in the attention only.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from .conformer import HEAD

MELS = 80
INPUTS = 4 * MELS
STATE_GAIN = 5.0  # initial scale of the state inside the network, above other activations
STATE_SHARE = 0.9  # of the state that the initial output subtracts


class Estimator(nn.Module):
    """Velocity at x; with `meanflow`, the mean velocity from the time t to the time r."""

    def __init__(
        self,
        channels: int,
        heads: int,
        ffn: int,
        blocks: int,
        mid_levels: int,
        time_channels: int,
        meanflow: bool,
    ) -> None:
        super().__init__()

        def level(inputs: int) -> list[nn.Module]:
            transformers = [Transformer(channels, heads, ffn) for _ in range(blocks)]
            resnet = Resnet(inputs, channels, time_channels)
            return [resnet, nn.ModuleList(transformers)]

        self.time_mlp = TimeEmbedding(time_channels)
        self.down_blocks = nn.ModuleList([Level([*level(INPUTS), CausalConv(channels, channels)])])
        self.mid_blocks = nn.ModuleList(Level(level(channels)) for _ in range(mid_levels))
        up = [*level(2 * channels), CausalConv(channels, channels)]
        self.up_blocks = nn.ModuleList([Level(up)])
        self.final_block = CausalBlock(channels, channels)
        self.final_proj = PointConv(channels, MELS)
        self.time_embed_mixer = None
        if meanflow:
            self.time_embed_mixer = nn.Linear(2 * time_channels, time_channels, bias=False)
            # Initially the end time has no effect: the network equals the plain flow.
            with torch.no_grad():
                eye = torch.eye(time_channels)
                self.time_embed_mixer.weight.copy_(torch.cat([eye, torch.zeros_like(eye)], 1))

    @torch.no_grad()
    def init_negative_state(self) -> None:
        """Initializes the output to minus the state, the velocity's dependence on pure noise.

        The state passes through the skip connection to the last projection with both signs, because
        Mish(x) - Mish(-x) is nearly x. Training alone takes thousands of steps to find this path
        through seven layers.
        """
        first, last = self.down_blocks[0], self.up_blocks[0]
        channels = self.final_proj.in_channels
        count = min(MELS, channels // 2)
        eye = torch.eye(count)
        both = torch.cat([eye, -eye])
        own, skipped = slice(0, 2 * count), slice(channels, channels + 2 * count)
        for conv in (first[0].res_conv, last[0].res_conv, last[2], self.final_block.block[0]):
            conv.weight[own] = 0
            conv.bias[own] = 0
        first[0].res_conv.weight[own, :count, 0] = STATE_GAIN * both
        last[0].res_conv.weight[own, skipped, 0] = torch.eye(2 * count)
        for conv in (last[2], self.final_block.block[0]):
            conv.weight[own, own, -1] = torch.eye(2 * count)
        self.final_proj.weight[:count, own, 0] -= STATE_SHARE * both.T

    def forward(self, x: Tensor, frame_mask: Tensor, t: Tensor, r: Tensor | None = None) -> Tensor:
        """The velocity, [B, T, 80].

        x: [B, T, 320], state, encoder's mean, speaker and prompt mel; frame_mask: [B, T] bool;
        t: [B]; r: [B], of a meanflow
        """
        time = self.time_mlp(t)
        if self.time_embed_mixer is not None:
            assert r is not None, "a meanflow needs the end time of the step"
            time = self.time_embed_mixer(torch.cat([time, self.time_mlp(r)], -1))
        mask = frame_mask[:, None, None]
        skip = self.down_blocks[0](x, time, mask)
        x = self.down_blocks[0][2](skip)
        for level in self.mid_blocks:
            x = level(x, time, mask)
        x = self.up_blocks[0](torch.cat([x, skip], -1), time, mask)
        x = self.up_blocks[0][2](x)
        return self.final_proj(self.final_block(x))


class TimeEmbedding(nn.Module):
    """[B] times in 0..1 → [B, time_channels]"""

    def __init__(self, time_channels: int) -> None:
        super().__init__()
        self.linear_1 = nn.Linear(INPUTS, time_channels)
        self.linear_2 = nn.Linear(time_channels, time_channels)

    def forward(self, t: Tensor) -> Tensor:
        half = INPUTS // 2
        index = torch.arange(half, device=t.device, dtype=torch.float32)
        angle = 1000.0 * t[:, None] * torch.exp(index * (-math.log(10000.0) / (half - 1)))
        waves = torch.cat([angle.sin(), angle.cos()], -1)
        return self.linear_2(functional.silu(self.linear_1(waves)))


class Level(nn.ModuleList):
    """A residual convolution and transformers; a following convolution is called separately."""

    def forward(self, x: Tensor, time: Tensor, mask: Tensor) -> Tensor:
        x = self[0](x, time)
        for transformer in self[1]:
            x = transformer(x, mask)
        return x


class CausalConv(nn.Conv1d):
    """A convolution over a frame and the two before it."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, 3)

    def forward(self, x: Tensor) -> Tensor:
        frames = x.shape[1]
        x = functional.pad(x, (0, 0, 2, 0))
        taps = torch.cat([x[:, tap : tap + frames] for tap in range(3)], -1)
        return functional.linear(taps, self.weight.transpose(1, 2).flatten(1), self.bias)


class PointConv(nn.Conv1d):
    """A convolution over one frame."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, 1)

    def forward(self, x: Tensor) -> Tensor:
        return functional.linear(x, self.weight.squeeze(-1), self.bias)


class CausalBlock(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        norm = nn.LayerNorm(outputs)
        self.block = nn.Sequential(CausalConv(inputs, outputs), nn.Identity(), norm, nn.Mish())

    def forward(self, x: Tensor) -> Tensor:
        return self.block(x)


class Resnet(nn.Module):
    def __init__(self, inputs: int, channels: int, time_channels: int) -> None:
        super().__init__()
        self.mlp = nn.Sequential(nn.Mish(), nn.Linear(time_channels, channels))
        self.block1 = CausalBlock(inputs, channels)
        self.block2 = CausalBlock(channels, channels)
        self.res_conv = PointConv(inputs, channels)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        y = self.block1(x) + self.mlp(time)[:, None]
        return self.block2(y) + self.res_conv(x)


class Transformer(nn.Module):
    def __init__(self, channels: int, heads: int, ffn: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(channels)
        self.attn1 = Attention(channels, heads)
        self.norm3 = nn.LayerNorm(channels)
        self.ff = FeedForward(channels, ffn)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = x + self.attn1(self.norm1(x), mask)
        return x + self.ff(self.norm3(x))


class Attention(nn.Module):
    """Full attention over the frames of a row."""

    def __init__(self, channels: int, heads: int) -> None:
        super().__init__()
        inner = HEAD * heads
        self.to_q = nn.Linear(channels, inner, bias=False)
        self.to_k = nn.Linear(channels, inner, bias=False)
        self.to_v = nn.Linear(channels, inner, bias=False)
        self.to_out = nn.ModuleList([nn.Linear(inner, channels)])

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        q, k, v = (
            projection(x).unflatten(-1, (-1, HEAD)).transpose(1, 2)
            for projection in (self.to_q, self.to_k, self.to_v)
        )
        y = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.to_out[0](y.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self, channels: int, ffn: int) -> None:
        super().__init__()
        self.net = nn.Sequential(
            GeluProjection(channels, ffn), nn.Identity(), nn.Linear(ffn, channels)
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)


class GeluProjection(nn.Module):
    def __init__(self, channels: int, ffn: int) -> None:
        super().__init__()
        self.proj = nn.Linear(channels, ffn)

    def forward(self, x: Tensor) -> Tensor:
        return functional.gelu(self.proj(x))
