"""The vocoder's discriminators: multi-period, and multi-resolution spectral ones with bands."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.parametrizations import weight_norm

from ..parallel_streams import run_parallel

PERIODS = (2, 3, 5, 7, 11)  # samples
RESOLUTIONS = (2048, 1024, 512)  # samples of a window
BANDS = ((0.0, 0.1), (0.1, 0.25), (0.25, 0.5), (0.5, 1.0))  # of the frequencies
SLOPE = 0.1


@dataclass(frozen=True)
class DiscriminatorSize:
    by_period: tuple[int, ...]  # channels of each layer
    by_band: int  # channels


DISCRIMINATOR_SIZES = {
    "small": DiscriminatorSize(by_period=(32, 96, 192, 384, 384), by_band=32),
    "tiny": DiscriminatorSize(by_period=(4, 8, 8), by_band=4),
}


@dataclass(frozen=True, eq=False)
class DiscriminatorOutput:
    """The output of one discriminator."""

    score: Tensor  # [B, ...]: 1 for recorded, 0 for synthesized speech
    features: list[Tensor]  # [B, channels, ...] of each layer

    def split(self, batch: int) -> tuple[DiscriminatorOutput, DiscriminatorOutput]:
        """The first `batch` rows, and the others."""
        first = DiscriminatorOutput(
            self.score[:batch], [feature[:batch] for feature in self.features]
        )
        return first, DiscriminatorOutput(
            self.score[batch:], [feature[batch:] for feature in self.features]
        )


class Discriminators(nn.Module):
    def __init__(self, size: DiscriminatorSize) -> None:
        super().__init__()
        self.size = size
        self.by_period = nn.ModuleList(
            PeriodDiscriminator(period, size.by_period) for period in PERIODS
        )
        self.by_spectrum = nn.ModuleList(
            SpectralDiscriminator(window, size.by_band) for window in RESOLUTIONS
        )

    def forward(self, wave: Tensor) -> list[DiscriminatorOutput]:
        """wave: [B, N]"""
        parts = (*self.by_period, *self.by_spectrum)
        return run_parallel([partial(part, wave) for part in parts], wave)


class PeriodDiscriminator(nn.Module):
    def __init__(self, period: int, channels: tuple[int, ...]) -> None:
        super().__init__()
        self.period = period
        self.layers = nn.ModuleList()
        inputs = 1
        for number, outputs in enumerate(channels, 1):
            stride = 3 if number < len(channels) else 1
            self.layers.append(normed_conv(inputs, outputs, (5, 1), (stride, 1)))
            inputs = outputs
        self.last = normed_conv(inputs, 1, (3, 1))

    def forward(self, wave: Tensor) -> DiscriminatorOutput:
        padded = functional.pad(wave[:, None], (0, -wave.shape[1] % self.period), mode="reflect")
        features = layer_features(padded.unflatten(-1, (-1, self.period)), self.layers)
        return DiscriminatorOutput(self.last(features[-1]).float(), features)


class SpectralDiscriminator(nn.Module):
    def __init__(self, window: int, channels: int) -> None:
        super().__init__()
        self.size = window
        self.bands = nn.ModuleList(band_layers(channels) for _ in BANDS)
        self.last = normed_conv(channels, 1, (3, 3))
        self.register_buffer("window", torch.hann_window(window), persistent=False)

    def forward(self, wave: Tensor) -> DiscriminatorOutput:
        spectrum = self.spectrum(wave)
        bins = spectrum.shape[-1]
        ends, features = [], []
        for (low, high), layers in zip(BANDS, self.bands, strict=True):
            x = spectrum[..., int(low * bins) : int(high * bins)]
            found = layer_features(x, layers)
            ends.append(found[-1])
            features += found
        return DiscriminatorOutput(self.last(torch.cat(ends, -1)).float(), features)

    def spectrum(self, wave: Tensor) -> Tensor:
        """Real and imaginary parts, with compressed magnitudes.
        → [B, 2, frames, bins]"""
        with torch.autocast(wave.device.type, enabled=False):
            wave = wave.float()
            window = self.window
            complex = torch.stft(
                wave, self.size, self.size // 4, window=window, return_complex=True
            )
            parts = torch.view_as_real(complex).permute(0, 3, 2, 1)
            return parts * (parts.square().sum(1, keepdim=True) + 1e-5) ** -0.35


def band_layers(channels: int) -> nn.ModuleList:
    """Convolutions over time and frequency; three of them halve the frequency."""
    return nn.ModuleList(
        [
            normed_conv(2, channels, (3, 9)),
            *(normed_conv(channels, channels, (3, 9), (1, 2)) for _ in range(3)),
            normed_conv(channels, channels, (3, 3)),
        ]
    )


def layer_features(x: Tensor, layers: nn.ModuleList) -> list[Tensor]:
    features = []
    for layer in layers:
        # Tensor cores need channels-last tensors.
        x = x.contiguous(memory_format=torch.channels_last)
        x = functional.leaky_relu(layer(x), SLOPE)
        features.append(x)
    return features


def normed_conv(
    inputs: int, outputs: int, taps: tuple[int, int], stride: tuple[int, int] = (1, 1)
) -> nn.Module:
    padding = (taps[0] // 2, taps[1] // 2)
    return weight_norm(nn.Conv2d(inputs, outputs, taps, stride, padding))
