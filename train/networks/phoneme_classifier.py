"""A network that classifies the phoneme of each mel frame from its neighbourhood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor, nn
from torch.nn import functional

from .tokenizer_heads import MEAN_MEL, MELS

MEL_DEVIATION = 3.0  # of the mels of speech, roughly
TAPS = 7


@dataclass(frozen=True)
class PhonemeClassifierSize:
    width: int
    blocks: int


PHONEME_CLASSIFIER_SIZES = {
    "small": PhonemeClassifierSize(width=320, blocks=5),
    "tiny": PhonemeClassifierSize(width=48, blocks=2),
}


class Prediction(NamedTuple):
    phonemes: Tensor  # [B, T, phonemes] logits
    features: list[Tensor]  # [B, T, width] after every block, with mean 0 and variance 1


class LocalBlock(nn.Module):
    """A depthwise convolution and an MLP, with a residual connection."""

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


class PhonemeClassifier(nn.Module):
    """Its receptive field is a third of a second on either side of a frame. A larger one could
    infer a blurred phoneme from the words around it."""

    def __init__(self, size: PhonemeClassifierSize, phonemes: int) -> None:
        super().__init__()
        self.size = size
        self.entry = nn.Conv1d(MELS, size.width, 5, padding=2)
        self.blocks = nn.ModuleList(LocalBlock(size.width) for _ in range(size.blocks))
        self.norm = nn.LayerNorm(size.width)
        self.phonemes = nn.Linear(size.width, phonemes)

    def forward(self, mel: Tensor, mask: Tensor) -> Prediction:
        """mel: [B, T, 80]; mask: [B, T] bool, false for padding"""
        mask = mask[..., None]
        x = (mel - MEAN_MEL) / MEL_DEVIATION * mask
        x = self.entry(x.transpose(1, 2)).transpose(1, 2)
        features = []
        for block in self.blocks:
            x = block(x, mask)
            features.append(functional.layer_norm(x.float(), x.shape[-1:]))
        return Prediction(self.phonemes(self.norm(x)).float(), features)
