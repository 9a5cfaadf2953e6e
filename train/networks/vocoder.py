"""HiFT in PyTorch: mel frames to 24 kHz audio, filtered from a harmonic source.

Inside, arrays are [B, channels, 1, rows] with channels last in memory, which is what tensor cores
read. Modules are named so that their tensors have the official names.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.parametrizations import weight_norm

from ..parallel_streams import run_parallel
from .official import OfficialModule

MELS = 80
RATE = 24000
FRAME = 480  # samples of a mel frame
HARMONICS = 9  # the fundamental is the first
VOICED_ABOVE = 10.0  # Hz
HARMONIC_LEVEL, UNVOICED_NOISE, VOICED_NOISE = 0.1, 0.1 / 3, 0.003

STRIDES = (8, 5, 3)
UPSAMPLING_TAPS = (16, 11, 7)
RESIDUAL_TAPS = (3, 7, 11)
SOURCE_TAPS = (7, 7, 11)
DILATIONS = (1, 3, 5)
EDGE_TAPS = 7
PITCH_LAYERS, PITCH_TAPS = 5, 3
SLOPE, LAST_SLOPE = 0.1, 0.01

FOURIER, HOP = 16, 4
BINS = FOURIER // 2 + 1
MAX_LOG_MAGNITUDE = math.log(100.0)  # of a bin
LIMIT = 0.99  # of the samples

PREFIX = "mel2wav."  # of the tensors' official names


@dataclass(frozen=True)
class VocoderSize:
    channels: int  # before upsampling, which halves them three times
    f0: int  # channels of the pitch predictor


VOCODER_SIZES = {
    "small": VocoderSize(channels=192, f0=128),
    "tiny": VocoderSize(channels=32, f0=24),
}


class Vocoder(OfficialModule):
    prefix = PREFIX

    def __init__(self, size: VocoderSize) -> None:
        super().__init__()
        self.size = size
        self.f0_predictor = F0Predictor(size.f0)
        self.m_source = HarmonicSource()
        self.conv_pre = weight_norm(RowConv(MELS, size.channels, EDGE_TAPS, padding=3))
        self.ups = nn.ModuleList()
        self.source_downs = nn.ModuleList()
        self.source_resblocks = nn.ModuleList()
        self.resblocks = nn.ModuleList()
        channels = size.channels
        for stage, (stride, taps) in enumerate(zip(STRIDES, UPSAMPLING_TAPS, strict=True)):
            self.ups.append(upsampling(channels, taps, stride))
            channels //= 2
            step = math.prod(STRIDES[stage + 1 :])  # stride over the source's spectrum
            down = RowConv(2 * BINS, channels, 1 if step == 1 else 2 * step, step, step // 2)
            self.source_downs.append(down)
            self.source_resblocks.append(ResBlock(channels, SOURCE_TAPS[stage]))
            self.resblocks.extend(ResBlock(channels, taps) for taps in RESIDUAL_TAPS)
        self.conv_post = normed_conv(channels, 2 * BINS, EDGE_TAPS, gain=0.5)
        with torch.no_grad():
            # About the level of speech.
            self.conv_post.bias.zero_()[:BINS] = -3.0
        self.register_buffer("window", torch.hann_window(FOURIER), persistent=False)

    @torch.no_grad()
    def init_from_mean(self, mean_mel: Tensor) -> None:
        """Initializes the first layers to subtract the corpus's mean mel, [80]."""
        for first in (self.conv_pre, self.f0_predictor.condnet[0]):
            first.bias.copy_(-first.weight.sum(-1) @ mean_mel)

    def f0(self, mel: Tensor) -> Tensor:
        """The pitch of each frame in Hz, below 10 where unvoiced. mel: [B, T, 80] → [B, T]"""
        return self.f0_predictor(rows(mel))

    def draw_inputs(
        self, batch: int, frames: int, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Random phase and noise for `synthesize`, on the generator's device."""
        device = generator.device
        phase = torch.rand(batch, HARMONICS, device=device, generator=generator)
        phase = (2 * phase - 1) * math.pi
        phase[:, 0] = 0
        shape = (batch, FRAME * frames, HARMONICS)
        return phase, torch.randn(shape, device=device, generator=generator)

    def synthesize(self, mel: Tensor, f0: Tensor, phase: Tensor, noise: Tensor) -> Tensor:
        """The samples, [B, 480 T].

        mel: [B, T, 80]; f0: [B, T] Hz; phase: [B, 9] radians before the first sample; noise:
        [B, 480 T, 9] unit normal
        """
        source = self.spectrum(self.m_source(f0, phase, noise))
        x = self.conv_pre(rows(mel))
        # The stages' inputs from the source are independent of each other.
        sources = run_parallel(
            [partial(self.source_features, stage, source) for stage in range(len(STRIDES))], x
        )
        for stage, up in enumerate(self.ups):
            x = up(functional.leaky_relu(x, SLOPE))
            if stage == len(self.ups) - 1:
                # A spectrum has one frame more than it has hops.
                x = torch.cat([x[..., 1:2], x], -1)
            x = x + sources[stage]
            count = len(RESIDUAL_TAPS)
            blocks = self.resblocks[count * stage : count * (stage + 1)]
            x = sum(run_parallel([partial(block, x) for block in blocks], x)) / count
        x = self.conv_post(functional.leaky_relu(x, LAST_SLOPE)).squeeze(2)
        magnitude = x[:, :BINS].clamp_max(MAX_LOG_MAGNITUDE).exp()
        angle = x[:, BINS:].sin()
        return self.waveform(torch.polar(magnitude, angle)).clamp(-LIMIT, LIMIT)

    def source_features(self, stage: int, source: Tensor) -> Tensor:
        """What a stage adds from the source's spectrum."""
        return self.source_resblocks[stage](self.source_downs[stage](source))

    def spectrum(self, samples: Tensor) -> Tensor:
        """Real, then imaginary parts. samples: [B, n] → [B, 18, 1, n / 4 + 1]"""
        spectrum = torch.stft(samples, FOURIER, HOP, window=self.window, return_complex=True)
        return rows(torch.cat([spectrum.real, spectrum.imag], 1).transpose(1, 2))

    def waveform(self, spectrum: Tensor) -> Tensor:
        """The inverse of a centred transform: [B, 9, n + 1] complex → [B, 4 n].

        torch.istft would check the sum of the windows, with a host sync, every time.
        """
        frames = torch.fft.irfft(spectrum.transpose(1, 2), FOURIER) * self.window
        weight = self.window.square().expand(1, frames.shape[1], -1)
        edge = FOURIER // 2
        return (overlap(frames) / overlap(weight).clamp_min(1e-11))[:, edge:-edge]


class F0Predictor(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for layer in range(PITCH_LAYERS):
            inputs = MELS if layer == 0 else channels
            layers += [normed_conv(inputs, channels, PITCH_TAPS, gain=1.4), nn.ELU()]
        self.condnet = nn.Sequential(*layers)
        self.classifier = nn.Linear(channels, 1)
        # The output is in Hz, the layers' activations are of the order of 1.
        nn.init.normal_(self.classifier.weight, std=100 * channels**-0.5)
        nn.init.constant_(self.classifier.bias, 100.0)

    def forward(self, mel: Tensor) -> Tensor:
        """mel: [B, 80, 1, T] → [B, T]"""
        hidden = self.condnet(mel).squeeze(2).transpose(1, 2)
        return self.classifier(hidden).squeeze(-1).abs()


class HarmonicSource(nn.Module):
    """Sines at multiples of the pitch, and noise, mixed to one signal.

    It has no gradient to the pitch: a sine with the wrong phase would pull it the wrong way.
    """

    def __init__(self) -> None:
        super().__init__()
        self.l_linear = nn.Linear(HARMONICS, 1)
        nn.init.ones_(self.l_linear.weight)
        nn.init.zeros_(self.l_linear.bias)

    def forward(self, f0: Tensor, phase: Tensor, noise: Tensor) -> Tensor:
        """As `Vocoder.synthesize` is given them → [B, 480 T]"""
        return torch.tanh(self.l_linear(harmonics(f0, phase, noise)).squeeze(-1))


@torch.no_grad()
def harmonics(f0: Tensor, phase: Tensor, noise: Tensor) -> Tensor:
    """→ [B, 480 T, 9]"""
    number = torch.arange(1, HARMONICS + 1, device=f0.device)
    step = f0[..., None].double() * number / RATE  # cycles from one sample to the next
    # In double, so that the phase stays exact in long audio.
    start = (FRAME * step).cumsum(1) - FRAME * step + phase[:, None].double() / (2 * math.pi)
    start = (start - start.floor()).float()[:, :, None]
    sample = torch.arange(1, FRAME + 1, device=f0.device)[:, None]
    cycles = start + sample * step.float()[:, :, None]
    sines = torch.sin((cycles - cycles.floor()) * (2 * math.pi))
    voiced = (f0 > VOICED_ABOVE).float()[..., None, None]
    level = voiced * VOICED_NOISE + (1 - voiced) * UNVOICED_NOISE
    return (voiced * HARMONIC_LEVEL * sines).add_(level * noise.view_as(sines)).flatten(1, 2)


def rows(x: Tensor) -> Tensor:
    """[B, T, C] → [B, C, 1, T], channels last in memory"""
    return x.transpose(1, 2)[:, :, None].contiguous(memory_format=torch.channels_last)


class RowConv(nn.Conv1d):
    """A convolution of [B, C, 1, T]; one of [B, C, T] would make channels first in memory."""

    def forward(self, x: Tensor) -> Tensor:
        (stride,), (padding,), (dilation,) = self.stride, self.padding, self.dilation
        weight = self.weight[:, :, None]
        return functional.conv2d(x, weight, self.bias, (1, stride), (0, padding), (1, dilation))


class RowUpsampling(nn.ConvTranspose1d):
    """A transposed convolution of [B, C, 1, T]"""

    def forward(self, x: Tensor) -> Tensor:
        (stride,), (padding,) = self.stride, self.padding
        weight = self.weight[:, :, None]
        return functional.conv_transpose2d(x, weight, self.bias, (1, stride), (0, padding))


class ResBlock(nn.Module):
    def __init__(self, channels: int, taps: int) -> None:
        super().__init__()
        self.activations1 = nn.ModuleList(Snake(channels) for _ in DILATIONS)
        self.convs1 = nn.ModuleList(
            normed_conv(channels, channels, taps, dilation) for dilation in DILATIONS
        )
        self.activations2 = nn.ModuleList(Snake(channels) for _ in DILATIONS)
        self.convs2 = nn.ModuleList(
            normed_conv(channels, channels, taps, gain=0.2) for _ in DILATIONS
        )

    def forward(self, x: Tensor) -> Tensor:
        for i in range(len(DILATIONS)):
            hidden = self.convs1[i](self.activations1[i](x))
            x = x + self.convs2[i](self.activations2[i](hidden))
        return x


class Snake(nn.Module):
    """x + sin²(alpha x) / alpha"""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.ones(channels))

    def forward(self, x: Tensor) -> Tensor:
        return SnakeFunction.apply(x, self.alpha[:, None, None])


class SnakeFunction(torch.autograd.Function):
    """Snake, computed in one kernel on a GPU, and in another with its gradient.

    dy/dx = 1 + sin(2 alpha x); dy/dalpha = (x sin(2 alpha x) + x - y) / alpha
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, alpha: Tensor) -> Tensor:
        """x: [B, C, 1, T]; alpha: [C, 1, 1]"""
        ctx.save_for_backward(x, alpha)
        if x.is_cuda:
            return snake_kernel()(x, alpha)
        return torch.addcmul(x, (x * alpha).sin_().square_(), 1 / (alpha + 1e-9))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        x, alpha = ctx.saved_tensors
        if x.is_cuda:
            of_x, of_alpha = gradient_kernel()(x, alpha, gradient)
        else:
            sine = (x * (2 * alpha)).sin_()
            slope = x * sine - (x * alpha).sin_().square_() / (alpha + 1e-9)
            of_x, of_alpha = torch.addcmul(gradient, gradient, sine), slope * gradient
        return of_x, of_alpha.sum((0, 2, 3))[:, None, None] / (alpha + 1e-9)


@functools.cache
def snake_kernel() -> Callable[[Tensor, Tensor], Tensor]:
    return torch.cuda.jiterator._create_jit_fn(
        """template <typename T> T snake(T x, T alpha) {
            T sine = sin(alpha * x);
            return x + sine * sine / (alpha + T(1e-9));
        }"""
    )


@functools.cache
def gradient_kernel() -> Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]:
    """→ the gradient of x, and alpha times that of alpha for each sample"""
    return torch.cuda.jiterator._create_multi_output_jit_fn(
        """template <typename T>
        void snake_gradient(T x, T alpha, T gradient, T& of_x, T& of_alpha) {
            T sine = sin(alpha * x), twice = 2 * sine * cos(alpha * x);
            of_x = gradient + gradient * twice;
            of_alpha = gradient * (x * twice - sine * sine / (alpha + T(1e-9)));
        }""",
        2,
    )


def normed_conv(
    inputs: int, outputs: int, taps: int, dilation: int = 1, gain: float = 1.0
) -> nn.Module:
    """A weight-normed convolution that keeps the length. gain: initial output scale"""
    conv = RowConv(inputs, outputs, taps, padding=(taps - 1) // 2 * dilation, dilation=dilation)
    nn.init.normal_(conv.weight, std=gain * (inputs * taps) ** -0.5)
    nn.init.zeros_(conv.bias)
    return weight_norm(conv)


def upsampling(channels: int, taps: int, stride: int) -> nn.Module:
    """Upsamples by `stride` and halves the channels."""
    conv = RowUpsampling(channels, channels // 2, taps, stride, (taps - stride) // 2)
    nn.init.normal_(conv.weight, std=(stride / (channels * taps)) ** 0.5)
    nn.init.zeros_(conv.bias)
    return weight_norm(conv)


def overlap(frames: Tensor) -> Tensor:
    """The sum of frames that start 4 samples apart. [B, n, 16] → [B, 4 (n + 3)]"""
    ranges = frames.unflatten(-1, (FOURIER // HOP, HOP))
    last = FOURIER // HOP - 1
    shifted = [functional.pad(ranges[:, :, i], (0, 0, i, last - i)) for i in range(last + 1)]
    return sum(shifted).flatten(1)
