"""Heads that are only used to train the speech tokenizer. Their input is its rounded digits."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from .speech_tokenizer import CODES, DIGITS, LEVELS, Block

MELS = 80
MEAN_MEL = -6.0  # of speech, roughly


@dataclass(frozen=True)
class HeadsSize:
    width: int
    token_blocks: int  # of the mel decoder, at 25 a second
    frame_blocks: int  # at 50
    text_blocks: int


HEADS_SIZES = {
    "medium": HeadsSize(width=256, token_blocks=3, frame_blocks=5, text_blocks=3),
    "small": HeadsSize(width=256, token_blocks=2, frame_blocks=4, text_blocks=2),
    "tiny": HeadsSize(width=64, token_blocks=1, frame_blocks=1, text_blocks=1),
}


class Upsample(nn.Module):
    """[B, T, C] → [B, 2T, C]"""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, 2 * width)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x).unflatten(-1, (2, -1)).flatten(1, 2)


class ConvBlock(nn.Module):
    """A depthwise convolution and an MLP that is conditioned on the speaker."""

    def __init__(self, width: int, taps: int) -> None:
        super().__init__()
        self.around = nn.Conv1d(width, width, taps, padding=taps // 2, groups=width)
        self.norm = nn.LayerNorm(width)
        self.speaker = nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Tensor, speaker: Tensor, mask: Tensor) -> Tensor:
        """x: [B, T, C]; speaker: [B, 1, C]; mask: [B, T, 1]"""
        y = self.around((x * mask).transpose(1, 2)).transpose(1, 2)
        return x + self.mlp(self.norm(y) + self.speaker(speaker))


class MelDecoder(nn.Module):
    """From digits and speaker to mel and pitch.

    Its receptive field is less than half a second, so that tokens stay aligned with the audio.
    """

    def __init__(self, size: HeadsSize, voices: int, pitches: int) -> None:
        super().__init__()
        self.entry = nn.Linear(DIGITS, size.width)
        self.speaker = nn.Embedding(voices, size.width)
        self.tokens = nn.ModuleList(ConvBlock(size.width, 5) for _ in range(size.token_blocks))
        self.twice = Upsample(size.width)
        self.frames = nn.ModuleList(ConvBlock(size.width, 7) for _ in range(size.frame_blocks))
        self.norm = nn.LayerNorm(size.width)
        self.mel = nn.Linear(size.width, MELS)
        self.pitch = nn.Linear(size.width, pitches)
        nn.init.constant_(self.mel.bias, MEAN_MEL)

    def forward(self, digits: Tensor, mask: Tensor, voice: Tensor) -> tuple[Tensor, Tensor]:
        """digits: [B, T, 8]; mask: [B, T]; voice: [B] → [B, 2T, 80], [B, 2T, pitches]"""
        speaker, mask = self.speaker(voice)[:, None], mask[..., None]
        x = self.entry(digits)
        for block in self.tokens:
            x = block(x, speaker, mask)
        x, mask = self.twice(x), mask.repeat_interleave(2, 1)
        for block in self.frames:
            x = block(x, speaker, mask)
        x = self.norm(x)
        return self.mel(x).float(), self.pitch(x).float()


class TextHead(nn.Module):
    """From digits to letters for CTC, 50 a second; 0 is the blank."""

    def __init__(self, size: HeadsSize, letters: int) -> None:
        super().__init__()
        self.entry = nn.Linear(DIGITS, size.width)
        self.twice = Upsample(size.width)
        self.blocks = nn.ModuleList(Block(size.width) for _ in range(size.text_blocks))
        self.norm = nn.LayerNorm(size.width)
        self.letters = nn.Linear(size.width, 1 + letters)

    def forward(self, digits: Tensor, mask: Tensor) -> Tensor:
        """digits: [B, T, 8]; mask: [B, T] → logits [B, 2T, 1 + letters]"""
        x, mask = self.twice(self.entry(digits)), mask.repeat_interleave(2, 1)
        for block in self.blocks:
            x = block(x, mask)
        return self.letters(self.norm(x)).float()


class PhonemeHead(nn.Module):
    """From the digits of a token and of four on either side to the phonemes of its two frames."""

    def __init__(self, size: HeadsSize, phonemes: int) -> None:
        super().__init__()
        self.entry = nn.Linear(DIGITS, size.width)
        self.convs = nn.ModuleList(
            nn.Conv1d(size.width, size.width, 5, padding=2) for _ in range(2)
        )
        self.twice = Upsample(size.width)
        self.phonemes = nn.Linear(size.width, phonemes)

    def forward(self, digits: Tensor, mask: Tensor) -> Tensor:
        """digits: [B, T, 8]; mask: [B, T] → logits [B, 2T, phonemes]"""
        x = (self.entry(digits) * mask[..., None]).transpose(1, 2)
        for conv in self.convs:
            x = x + functional.gelu(conv(x))
        return self.phonemes(self.twice(x.transpose(1, 2))).float()


class Probe(nn.Module):
    """Predicts each token from the 26 before it: an upper bound of the tokens' entropy."""

    def __init__(self, size: HeadsSize) -> None:
        super().__init__()
        self.entry = nn.Linear(DIGITS, size.width)
        self.convs = nn.ModuleList(
            nn.Conv1d(size.width, size.width, 3, dilation=dilation) for dilation in (1, 3, 9)
        )
        self.tokens = nn.Linear(size.width, CODES)

    def forward(self, digits: Tensor) -> Tensor:
        """digits: [B, T, 8] → logits [B, T - 1, 6561] of the tokens from the second on"""
        x = self.entry(digits[:, :-1].detach()).transpose(1, 2)
        for conv in self.convs:
            x = x + functional.gelu(conv(functional.pad(x, (2 * conv.dilation[0], 0))))
        return self.tokens(x.transpose(1, 2)).float()


class Heads(nn.Module):
    def __init__(
        self, size: HeadsSize, voices: int, letters: int, phonemes: int, pitches: int
    ) -> None:
        super().__init__()
        self.mel = MelDecoder(size, voices, pitches)
        self.text = TextHead(size, letters)
        self.phonemes = PhonemeHead(size, phonemes)
        self.probe = Probe(size)


def disagreement(own: Tensor, other: Tensor, mask: Tensor) -> Tensor:
    """The squared distance of two sets of digits relative to their variance: 0 if equal, about 1 if
    unrelated. Relative, because the plain distance is smallest when all digits are 0.

    own, other: [B, T, 8] before they are rounded; mask: [B, T]
    """
    variance = sum(covariance(x, mask).diagonal() for x in (own, other))
    distance = ((own - other).square() * mask[..., None]).sum((0, 1)) / mask.sum().clamp_min(1)
    return (distance / (variance + 1e-3)).mean()


def redundancy(digits: Tensor, mask: Tensor) -> Tensor:
    """The mean square of the correlations between digits."""
    shared = covariance(digits, mask)
    deviation = (shared.diagonal() + 1e-3).sqrt()
    correlation = shared / (deviation[:, None] * deviation)
    return correlation.square().mean() - correlation.diagonal().square().mean() / DIGITS


def covariance(x: Tensor, mask: Tensor) -> Tensor:
    """x: [B, T, C]; mask: [B, T] → [C, C]"""
    weight = mask.flatten()[:, None] / mask.sum().clamp_min(1)
    x = x.flatten(0, 1).float()
    x = x - (x * weight).sum(0)
    with torch.autocast(x.device.type, enabled=False):
        return x.T @ (x * weight)


def level_usage(digits: Tensor, mask: Tensor) -> Tensor:
    """The entropy of each digit's three levels, at most 1, differentiable.

    digits: [B, T, 8] before they are rounded; mask: [B, T] → [8]
    """
    near = level_shares(digits, 0.3)
    share = (near * mask[..., None, None]).sum((0, 1)) / mask.sum().clamp_min(1)
    return entropy(share) / math.log(LEVELS)


def code_usage(digits: Tensor, mask: Tensor) -> Tensor:
    """The entropy of the tokens over the positions of the mask, at most 1, differentiable.

    digits: [B, T, 8] before they are rounded; mask: [B, T]
    """
    with torch.autocast(digits.device.type, enabled=False):
        near = level_shares(digits.float(), 0.1).flatten(0, 1)
        first, second = (joint_shares(half) for half in near.chunk(2, 1))
        count = mask.sum().clamp_min(1)
        share = (first * mask.flatten()[:, None]).T @ second / count  # [81, 81]
        return entropy(share.flatten()) / math.log(CODES)


def level_shares(digits: Tensor, blur: float) -> Tensor:
    """How near each digit is to its levels, with sum 1. [...] → [..., 3]"""
    levels = torch.arange(-1, 2, device=digits.device)
    return torch.softmax(-(digits[..., None] - levels).square() / blur, -1)


def joint_shares(shares: Tensor) -> Tensor:
    """The shares of all combinations of levels. [N, digits, 3] → [N, 3 ** digits]"""
    joint = shares[:, 0]
    for digit in shares[:, 1:].unbind(1):
        joint = (joint[:, :, None] * digit[:, None]).flatten(1)
    return joint


def entropy(share: Tensor) -> Tensor:
    """Of the last dimension, in nats."""
    return -(share * share.clamp_min(1e-6).log()).sum(-1)
