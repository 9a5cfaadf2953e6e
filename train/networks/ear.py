"""What is said in mel frames: phonemes, by what is heard close by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor, nn
from torch.nn import functional

from .tokenizer_heads import MEAN_MEL, MELS

SPREAD = 3.0  # of mels of speech, roughly
TAPS = 7


@dataclass(frozen=True)
class EarSize:
    width: int
    blocks: int


EAR_SIZES = {
    "small": EarSize(width=320, blocks=5),
    "tiny": EarSize(width=48, blocks=2),
}


class Heard(NamedTuple):
    phonemes: Tensor  # [B, T, phonemes] logits
    features: list[Tensor]  # after every block, [B, T, width], of mean 0 and variance 1


class NearBy(nn.Module):
    """A few frames around each, then each by itself."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.around = nn.Conv1d(width, width, TAPS, padding=TAPS // 2, groups=width)
        self.norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 3 * width), nn.GELU(), nn.Linear(3 * width, width)
        )

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """x: [B, T, C]; mask: [B, T, 1]"""
        y = self.around((x * mask).transpose(1, 2)).transpose(1, 2)
        return x + self.mlp(self.norm(y))


class Ear(nn.Module):
    """It hears a third of a second on either side of a frame. One that heard more would guess a
    blurred sound from its words, and not mind."""

    def __init__(self, size: EarSize, phonemes: int) -> None:
        super().__init__()
        self.size = size
        self.entry = nn.Conv1d(MELS, size.width, 5, padding=2)
        self.blocks = nn.ModuleList(NearBy(size.width) for _ in range(size.blocks))
        self.norm = nn.LayerNorm(size.width)
        self.phonemes = nn.Linear(size.width, phonemes)

    def forward(self, mel: Tensor, mask: Tensor) -> Heard:
        """mel: [B, T, 80]; mask: [B, T] bool, frames that are sound"""
        mask = mask[..., None]
        x = (mel - MEAN_MEL) / SPREAD * mask
        x = self.entry(x.transpose(1, 2)).transpose(1, 2)
        features = []
        for block in self.blocks:
            x = block(x, mask)
            features.append(functional.layer_norm(x.float(), x.shape[-1:]))
        return Heard(self.phonemes(self.norm(x)).float(), features)
