"""A network that tells the mels of recordings from those that a flow made."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .discriminators import DiscriminatorOutput, layer_features, normed_conv
from .phoneme_classifier import MEL_DEVIATION
from .tokenizer_heads import MEAN_MEL


class MelDiscriminator(nn.Module):
    """It sees a mel beside what the flow's encoder expects of it, 0.4 s at a time. Its layers halve
    the bands three times and keep all frames."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            [
                normed_conv(2, channels, (3, 9)),
                *(normed_conv(channels, channels, (5, 5), (1, 2)) for _ in range(3)),
                normed_conv(channels, channels, (5, 3)),
            ]
        )
        self.last = normed_conv(channels, 1, (3, 3))

    def forward(self, mel: Tensor, expected: Tensor, mask: Tensor) -> DiscriminatorOutput:
        """mel, expected: [B, T, 80]; mask: [B, T] bool, false for padding"""
        both = (torch.stack((mel, expected), 1) - MEAN_MEL) / MEL_DEVIATION
        features = layer_features(both * mask[:, None, :, None], self.layers)
        return DiscriminatorOutput(self.last(features[-1]).float(), features)
