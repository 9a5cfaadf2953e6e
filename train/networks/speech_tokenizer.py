"""S3TokenizerV2 in PyTorch: 25 speech tokens a second, each of eight ternary digits (FSQ)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..masking import length_mask

MELS = 128
HEAD = 64  # channels of an attention head
MEMORY = 31  # taps
DIGITS = 8
LEVELS = 3
CODES = LEVELS**DIGITS
CODE_RANGE = 0.999  # of a digit before it is rounded
FRAMES_PER_TOKEN = 4


@dataclass(frozen=True)
class TokenizerSize:
    width: int  # a multiple of the head size
    layers: int


MAIN_DIRECTIONS = 24
INITIAL_DEVIATION = 1.2  # of an activation; its tanh then rounds to each level about equally often

TOKENIZER_SIZES = {
    "medium": TokenizerSize(width=384, layers=6),
    "small": TokenizerSize(width=256, layers=4),
    "tiny": TokenizerSize(width=64, layers=1),
}


class Code(NamedTuple):
    """The digits of the tokens before rounding, and the mask of positions that are not padding."""

    digits: Tensor  # [B, T, 8] in (-1, 1)
    mask: Tensor  # [B, T] bool
    activations: Tensor  # [B, T, 8], of which the digits are the tanh


def apply_rotary(x: Tensor) -> Tensor:
    """Rotary embedding of the channel pairs (i, i + 32) of every head. x: [B, H, T, 64]"""
    half = HEAD // 2
    powers = 2 * torch.arange(half, device=x.device, dtype=torch.float32) / HEAD
    positions = torch.arange(x.shape[2], device=x.device, dtype=torch.float32)
    angles = positions[:, None] * (1 / 10000.0**powers)
    cosine, sine = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    first, second = x[..., :half], x[..., half:]
    return torch.cat([first * cosine - second * sine, second * cosine + first * sine], -1)


class Attention(nn.Module):
    """Rotary attention plus FSMN memory: a depthwise convolution of the values over time."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width, bias=False)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)
        self.fsmn_block = nn.Conv1d(
            width, width, MEMORY, padding=MEMORY // 2, groups=width, bias=False
        )

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """x: [B, T, C]; mask: [B, T]"""
        value = self.value(x) * mask[..., None]
        heads = [
            y.unflatten(-1, (-1, HEAD)).transpose(1, 2) for y in (self.query(x), self.key(x), value)
        ]
        attended = functional.scaled_dot_product_attention(
            apply_rotary(heads[0]), apply_rotary(heads[1]), heads[2], attn_mask=mask[:, None, None]
        )
        memory = self.fsmn_block(value.transpose(1, 2)).transpose(1, 2) + value
        return self.out(attended.transpose(1, 2).flatten(2)) + memory


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.attn = Attention(width)
        self.attn_ln = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )
        self.mlp_ln = nn.LayerNorm(width)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = x + self.attn(self.attn_ln(x), mask)
        return x + self.mlp(self.mlp_ln(x))


class Encoder(nn.Module):
    def __init__(self, size: TokenizerSize) -> None:
        super().__init__()
        self.conv1 = nn.Conv1d(MELS, size.width, 3, stride=2, padding=1)
        self.conv2 = nn.Conv1d(size.width, size.width, 3, stride=2, padding=1)
        self.blocks = nn.ModuleList(Block(size.width) for _ in range(size.layers))

    def forward(self, mel: Tensor, frames: Tensor) -> tuple[Tensor, Tensor]:
        x = mel.transpose(1, 2)
        for conv in (self.conv1, self.conv2):
            # Zeros in the padding, as for a row without padding.
            x = functional.gelu(conv(x * length_mask(frames, x.shape[2])[:, None]))
            frames = (frames + 1) // 2
        x, mask = x.transpose(1, 2), length_mask(frames, x.shape[2])
        for block in self.blocks:
            x = block(x, mask)
        return x, mask


class Codebook(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.project_down = nn.Linear(width, DIGITS)


class Quantizer(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self._codebook = Codebook(width)

    def forward(self, x: Tensor) -> Tensor:
        return self._codebook.project_down(x).float()

    @torch.no_grad()
    def spread(self, x: Tensor) -> None:
        """Initializes the projection so that the digits of these encodings use all levels: random
        mixtures of their main directions, centred. x: [N, width]"""
        mean = x.mean(0)
        directions = torch.pca_lowrank(x - mean, min(MAIN_DIRECTIONS, *x.shape))[2]
        mixed = directions @ torch.randn(directions.shape[1], DIGITS, device=x.device)
        scaled = mixed * INITIAL_DEVIATION / ((x - mean) @ mixed).std(0)
        self._codebook.project_down.weight.copy_(scaled.T)
        self._codebook.project_down.bias.copy_(-mean @ scaled)


class SpeechTokenizer(nn.Module):
    """Results do not depend on the padding of a batch."""

    def __init__(self, size: TokenizerSize) -> None:
        super().__init__()
        self.encoder = Encoder(size)
        self.quantizer = Quantizer(size.width)

    def forward(self, mel: Tensor, frames: Tensor) -> Code:
        """mel: [B, F, 128], 100 frames a second; frames: [B] of each row"""
        x, mask = self.encoder(mel, frames)
        activations = self.quantizer(x)
        return Code(CODE_RANGE * activations.tanh(), mask, activations)

    def spread(self, mel: Tensor, frames: Tensor) -> None:
        """Initializes the digits by a batch of speech; see `Quantizer.spread`."""
        x, mask = self.encoder(mel, frames)
        self.quantizer.spread(x[mask].float())


def quantize(digits: Tensor) -> Tensor:
    """Rounds digits to -1, 0 or 1, with a straight-through gradient."""
    return digits + (digits.round() - digits).detach()


def digit_embeddings(width: int, own: float = 0.1) -> Tensor:
    """Initial token embeddings of variance 1 that are as similar as the digits of the tokens, so
    that training generalizes to similar tokens. own: the share that is independent for each token

    → [6561, width]
    """
    of_levels = torch.randn(DIGITS, LEVELS, width) / DIGITS**0.5
    ids = torch.arange(CODES)
    shared = sum(of_levels[digit][ids // LEVELS**digit % LEVELS] for digit in range(DIGITS))
    return (1 - own**2) ** 0.5 * shared + own * torch.randn(CODES, width)


def token_ids(digits: Tensor) -> Tensor:
    """[..., 8] digits, rounded or not → [...] int64 below 6561; the first digit is the lowest."""
    powers = LEVELS ** torch.arange(DIGITS, device=digits.device)
    return ((digits.round().long() + 1) * powers).sum(-1)
