"""Losses of the vocoder: multi-resolution spectra, high bands, and the adversarial ones."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from .data import RATE
from .networks.discriminators import DiscriminatorOutput
from .parallel_streams import run_parallel

WINDOWS = {2048: 160, 1024: 100, 512: 60, 256: 30, 128: 16}  # samples: bands
MIN_MAGNITUDE = 1e-5  # of full scale
HIGH_EDGES = (3000, 3700, 4500, 5200, 6000, 7000, 8000, 10000, 12000)  # Hz
HIGH_WINDOWS = (2048, 1024)  # samples; the longer one for low voices, the shorter for glides


class SpectralLoss(nn.Module):
    """The mean L1 distance of log mel magnitudes over all frequencies, in nepers."""

    def __init__(self) -> None:
        super().__init__()
        for size, bands in WINDOWS.items():
            self.register_buffer(f"window_{size}", unit_window(size))
            self.register_buffer(f"filters_{size}", mel_filters(size, bands))

    def forward(self, made: Tensor, true: Tensor) -> Tensor:
        """made, true: [B, N]"""
        with torch.autocast(made.device.type, enabled=False):
            given = made.float(), true.float()
            distances = run_parallel(
                [partial(self.distance, *given, size) for size in WINDOWS], made
            )
            return torch.stack(distances).mean()

    def distance(self, made: Tensor, true: Tensor, size: int) -> Tensor:
        with torch.no_grad():
            target = self.log_mel(true, size)
        return (self.log_mel(made, size) - target).abs().mean()

    def log_mel(self, wave: Tensor, size: int) -> Tensor:
        """→ [B, frames, bands]"""
        # The square root has no finite gradient at 0.
        magnitude = floored_power(wave, self.get_buffer(f"window_{size}")).sqrt()
        return (magnitude @ self.get_buffer(f"filters_{size}")).log()


class HighBandLoss(nn.Module):
    """The mean L1 distance of level and peakiness of the bands above 3 kHz, in nepers.

    Mel bands are wider there than the distance of harmonics, so that SpectralLoss takes noise for
    harmonics. Peakiness, by how much the mean power exceeds the geometric mean, tells them apart,
    and does not depend on the noise itself as the distance of single bins does.
    """

    def __init__(self) -> None:
        super().__init__()
        for size in HIGH_WINDOWS:
            self.register_buffer(f"window_{size}", unit_window(size))
            self.register_buffer(f"bands_{size}", band_means(size))

    def forward(self, made: Tensor, true: Tensor) -> Tensor:
        """made, true: [B, N]"""
        with torch.autocast(made.device.type, enabled=False):
            given = made.float(), true.float()
            distances = run_parallel(
                [partial(self.distance, *given, size) for size in HIGH_WINDOWS], made
            )
            return torch.stack(distances).mean()

    def distance(self, made: Tensor, true: Tensor, size: int) -> Tensor:
        with torch.no_grad():
            target = self.level_and_peakiness(true, size)
        return (self.level_and_peakiness(made, size) - target).abs().mean()

    def level_and_peakiness(self, wave: Tensor, size: int) -> Tensor:
        """→ [2, B, frames, bands]"""
        power = floored_power(wave, self.get_buffer(f"window_{size}"))
        means = self.get_buffer(f"bands_{size}")
        level = (power @ means).log() / 2
        return torch.stack([level, level - power.log() @ means / 2])


def unit_window(size: int) -> Tensor:
    """With it a full-scale sine has magnitude 1."""
    window = torch.hann_window(size)
    return window * (2 / window.sum())


def floored_power(wave: Tensor, window: Tensor) -> Tensor:
    """[B, N] → [B, frames, bins]"""
    size = len(window)
    spectrum = torch.stft(wave, size, size // 4, window=window, return_complex=True)
    return torch.view_as_real(spectrum).square().sum(-1).transpose(1, 2) + MIN_MAGNITUDE**2


def band_means(size: int) -> Tensor:
    """The weights of the bins in the means of the high bands. → [size // 2 + 1, bands]"""
    hz = torch.arange(size // 2 + 1)[:, None] * (RATE / size)
    edges = torch.tensor(HIGH_EDGES)
    inside = ((hz >= edges[:-1]) & (hz < edges[1:])).float()
    return inside / inside.sum(0)


def mel_filters(size: int, bands: int) -> Tensor:
    """Triangles of sum 1, evenly spaced in mel. → [size // 2 + 1, bands]"""
    top = 2595 * math.log10(1 + RATE / 2 / 700)
    edges = 700 * (10 ** (torch.linspace(0, top, bands + 2, dtype=torch.float64) / 2595) - 1)
    spacing = RATE / size
    # A band that is narrower than the bins still covers the two nearest ones.
    left = torch.minimum(edges[:-2], edges[1:-1] - spacing)
    right = torch.maximum(edges[2:], edges[1:-1] + spacing)
    bins = torch.arange(size // 2 + 1, dtype=torch.float64)[:, None] * spacing
    up = (bins - left) / (edges[1:-1] - left)
    down = (right - bins) / (right - edges[1:-1])
    triangles = torch.minimum(up, down).clamp_min(0)
    return (triangles / triangles.sum(0)).float()


def discriminator_loss(true: list[DiscriminatorOutput], made: list[DiscriminatorOutput]) -> Tensor:
    """Least squares: recorded speech should score 1, synthesized 0."""
    pairs = zip(true, made, strict=True)
    return mean((1 - t.score).square().mean() + m.score.square().mean() for t, m in pairs)


def adversarial_loss(made: list[DiscriminatorOutput]) -> Tensor:
    """Least squares: synthesized speech should score 1."""
    return mean((1 - output.score).square().mean() for output in made)


def feature_loss(true: list[DiscriminatorOutput], made: list[DiscriminatorOutput]) -> Tensor:
    """The distance of the discriminators' features, relative to the magnitude of the true ones."""
    layers = [len(output.features) for output in true]
    of_true, of_made = ([x for each in both for x in each.features] for both in (true, made))
    shares = RelativeDifferences.apply(len(of_true), *of_true, *of_made)
    return mean(of_one.mean() for of_one in shares.split(layers))


class RelativeDifferences(torch.autograd.Function):
    """Mean absolute differences of two lists of tensors, relative to the first's magnitudes.

    Computed in a few kernels for all tensors, because launches would take most of the time. Only
    the second list gets gradients.
    """

    @staticmethod
    def forward(ctx: Any, count: int, *tensors: Tensor) -> Tensor:
        """count: of either list → [count]"""
        true, made = tensors[:count], tensors[count:]
        difference = torch._foreach_sub(made, true)
        ctx.magnitude = _mean_magnitudes(true) + 1e-3
        ctx.signs = torch._foreach_sign(difference)
        return _mean_magnitudes(difference) / ctx.magnitude

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        scales = torch._foreach_div(
            (gradient / ctx.magnitude).unbind(), [float(sign.numel()) for sign in ctx.signs]
        )
        return (None, *(None for _ in ctx.signs), *torch._foreach_mul(ctx.signs, scales))


def _mean_magnitudes(tensors: Sequence[Tensor]) -> Tensor:
    """Of each tensor, summed in float32."""
    sums = torch._foreach_norm(tensors, 1, dtype=torch.float32)
    return torch.stack(torch._foreach_div(sums, [float(tensor.numel()) for tensor in tensors]))


def mean(losses: Iterable[Tensor]) -> Tensor:
    return torch.stack(list(losses)).mean()
