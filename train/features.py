"""Spectral features of the models, batched and differentiable, in PyTorch on any device.

They equal the features of the C++ core's voice baker. Every function takes wave: [B, N] float in
[-1, 1] and optionally samples: [B], each row's length, so that results do not depend on padding.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from .masking import length_mask

MEL_FRAME, MEL_HOP, MELS = 1920, 480, 80  # of 24 kHz
FRAME, HOP = 400, 160  # of 16 kHz
TOKENIZER_MELS = 128
VOICE_MELS = 40
FBANK_FOURIER, FBANK_MELS = 512, 80
HIGHEST = 8000.0  # Hz
LOWEST_FBANK = 20.0

FROM, TO = 3, 2  # samples: 24 kHz to 16 kHz
CUTOFF = 0.99 * TO
ZERO_CROSSINGS = 6
REACH = math.ceil(ZERO_CROSSINGS * FROM / CUTOFF)


def _in_float32(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Also under autocast: bfloat16 would lose a quiet band beside a loud one."""

    @functools.wraps(function)
    def inner(wave: Tensor, *arguments: Any, **named: Any) -> Tensor:
        with torch.autocast(wave.device.type, enabled=False):
            return function(wave.float(), *arguments, **named)

    return inner


def _constant(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Computed once for each device; usable in training even if first called in inference mode."""
    return functools.lru_cache(torch.inference_mode(False)(function))


@_in_float32
def mel_24k(wave: Tensor, samples: Tensor | None = None) -> Tensor:
    """S3Gen's mel of 24 kHz sound: natural logarithm of magnitudes. → [B, N // 480, 80]"""
    padded = _reflect(wave, (MEL_FRAME - MEL_HOP) // 2, samples)
    power = _power(padded, MEL_FRAME, MEL_HOP, _hann(MEL_FRAME, wave.device))
    magnitude = (power[:, : wave.shape[1] // MEL_HOP] + 1e-9).sqrt()
    mel = magnitude @ slaney_filters(24000, MEL_FRAME, MELS, wave.device)
    return mel.clamp_min(1e-5).log()


@_in_float32
def mel_16k(wave: Tensor, samples: Tensor | None = None) -> Tensor:
    """The speech tokenizer's input: scaled log power, 80 dB deep below a row's loudest.
    → [B, N // 160, 128]"""
    power = _centred_power(wave, samples)[:, : wave.shape[1] // HOP]
    mel = power @ slaney_filters(16000, FRAME, TOKENIZER_MELS, wave.device)
    log = mel.clamp_min(1e-10).log10()
    valid = log
    if samples is not None:
        valid = log.masked_fill(~length_mask(samples // HOP, log.shape[1])[..., None], -10.0)
    floor = valid.amax((1, 2), keepdim=True) - 8.0
    return (torch.maximum(log, floor) + 4.0) / 4.0


@_in_float32
def voice_mel(wave: Tensor, samples: Tensor | None = None) -> Tensor:
    """The voice encoder's input: mel power. → [B, N // 160 + 1, 40]"""
    return _centred_power(wave, samples) @ slaney_filters(16000, FRAME, VOICE_MELS, wave.device)


@_in_float32
def fbank(wave: Tensor, samples: Tensor | None = None) -> Tensor:
    """CAMPPlus's input, as Kaldi makes it: log mel power less each channel's mean.
    → [B, (N - 400) // 160 + 1, 80]"""
    frames = wave.unfold(1, FRAME, HOP)
    frames = frames - frames.mean(-1, keepdim=True)
    before = torch.cat([frames[..., :1], frames[..., :-1]], -1)
    window = _hann(FRAME, wave.device, FRAME - 1) ** 0.85  # Povey's
    windowed = (frames - 0.97 * before) * window
    power = torch.fft.rfft(windowed, FBANK_FOURIER).abs().square()
    mel = power @ kaldi_filters(16000, FBANK_FOURIER, FBANK_MELS, wave.device)
    log = mel.clamp_min(torch.finfo(torch.float32).eps).log()
    if samples is None:
        return log - log.mean(1, keepdim=True)
    count = (samples - FRAME) // HOP + 1
    mask = length_mask(count, log.shape[1])[..., None]
    return log - (log * mask).sum(1, keepdim=True) / count.clamp_min(1)[:, None, None]


@_in_float32
def resample_16k(wave: Tensor) -> Tensor:
    """24 kHz sound at 16 kHz, under torchaudio's default filter. → [B, ceil(N · 2 / 3)]"""
    padded = functional.pad(wave[:, None], (REACH, REACH + FROM))
    pairs = functional.conv1d(padded, _sinc_filters(wave.device), stride=FROM)
    length = -(-wave.shape[1] * TO // FROM)
    return pairs.transpose(1, 2).flatten(1)[:, :length]


def samples_16k(samples: Tensor) -> Tensor:
    """The lengths of rows after resample_16k. samples: [B], at 24 kHz"""
    return (samples * TO + FROM - 1) // FROM


def _reflect(wave: Tensor, pad: int, samples: Tensor | None) -> Tensor:
    """Reflection padding by `pad` samples at both ends of each row."""
    if samples is None:
        return functional.pad(wave[:, None], (pad, pad), mode="reflect")[:, 0]
    last = samples[:, None] - 1
    at = torch.arange(-pad, wave.shape[1] + pad, device=wave.device).abs()[None]
    mirrored = torch.where(at > last, 2 * last - at, at)
    found = wave.gather(1, mirrored.clamp(0, wave.shape[1] - 1))
    return found.masked_fill(at > last + pad, 0.0)


def _power(wave: Tensor, frame: int, hop: int, window: Tensor) -> Tensor:
    """→ [B, frames, frame // 2 + 1]"""
    spectrum = torch.stft(wave, frame, hop, window=window, center=False, return_complex=True)
    return torch.view_as_real(spectrum).square().sum(-1).transpose(1, 2)


def _centred_power(wave: Tensor, samples: Tensor | None) -> Tensor:
    """The power of the frames around every 10 ms. → [B, N // 160 + 1, 201]"""
    return _power(_reflect(wave, FRAME // 2, samples), FRAME, HOP, _hann(FRAME, wave.device))


@_constant
def _hann(size: int, device: torch.device, period: int | None = None) -> Tensor:
    # In float32, as in the reference: quiet bins show the difference.
    step = torch.tensor(2 * math.pi / (period or size))
    return (0.5 - 0.5 * torch.cos(torch.arange(size, dtype=torch.float32) * step)).to(device)


@_constant
def slaney_filters(rate: int, size: int, mels: int, device: torch.device) -> Tensor:
    """Triangles of area 1 over Hz, evenly spaced on Slaney's mel scale. → [size // 2 + 1, mels]"""
    linear_top, step = 15.0, math.log(6.4) / 27.0  # mels at 1 kHz; Hz per mel above, in logarithms
    top = linear_top + math.log(HIGHEST / 1000.0) / step
    edges = torch.linspace(0, top, mels + 2, dtype=torch.float64)
    above = 1000.0 * torch.exp((edges - linear_top) * step)
    hz = torch.where(edges < linear_top, edges * (1000.0 / linear_top), above)
    left, centre, right = hz[:-2], hz[1:-1], hz[2:]
    bins = torch.arange(size // 2 + 1, dtype=torch.float64)[:, None] * rate / size
    up, down = (bins - left) / (centre - left), (right - bins) / (right - centre)
    height = 2 / (right - left)
    return (height * torch.minimum(up, down).clamp_min(0)).float().to(device)


@_constant
def kaldi_filters(rate: int, size: int, mels: int, device: torch.device) -> Tensor:
    """Triangles of height 1 on Kaldi's mel scale; the last bin has weight 0.
    → [size // 2 + 1, mels]"""
    low, high = (1127.0 * math.log(1 + hz / 700) for hz in (LOWEST_FBANK, HIGHEST))
    # In float32, as in torchaudio: whether a triangle's foot reaches a bin depends on the rounding.
    edges = low + torch.arange(mels + 2, dtype=torch.float32) * ((high - low) / (mels + 1))
    left, centre, right = edges[:-2], edges[1:-1], edges[2:]
    hz = torch.arange(size // 2 + 1, dtype=torch.float32)[:, None] * (rate / size)
    mel = 1127.0 * torch.log(1.0 + hz / 700.0)
    up, down = (mel - left) / (centre - left), (right - mel) / (right - centre)
    filters = torch.minimum(up, down).clamp_min(0)
    filters[-1] = 0
    return filters.to(device)


@_constant
def _sinc_filters(device: torch.device) -> Tensor:
    """A filter for each of the two samples that replace three. → [2, 1, taps]"""
    taps = torch.arange(2 * REACH + FROM, dtype=torch.float64)
    phases = torch.arange(TO, dtype=torch.float64)[:, None]
    distance = (taps - REACH) / FROM - phases / TO
    t = (distance * CUTOFF).clamp(-ZERO_CROSSINGS, ZERO_CROSSINGS)
    window = torch.cos(t * math.pi / ZERO_CROSSINGS / 2) ** 2
    return (torch.sinc(t) * window * (CUTOFF / FROM))[:, None].float().to(device)
