"""Speech as other speakers, rooms and microphones would give it, for what must not hear them."""

from __future__ import annotations

import torch
from torch import Tensor

from .data import play_at
from .features import mel_16k, resample_16k, samples_16k

PITCH_RANGE = 1.18  # pitch and formants go up or down by this factor at most
ECHO = 4000  # samples at 16 kHz
EASY = 4096  # transforms of its multiples are fast


def disturb(wave: Tensor, generator: torch.Generator) -> Tensor:
    """Another level for every row, a light reverberation for half of them, noise for half.

    wave: [B, N] at 16 kHz; generator: of the wave's device
    """
    batch, length = wave.shape

    def draw(low: float, high: float) -> Tensor:
        u = torch.rand(batch, 1, device=wave.device, generator=generator)
        return low + (high - low) * u

    def half() -> Tensor:
        return (draw(0, 1) < 0.5).float()

    def decibels(low: float, high: float) -> Tensor:
        return 10 ** (draw(low, high) / 20)

    size = -(-(length + ECHO) // EASY) * EASY
    seconds = torch.arange(ECHO, device=wave.device) / 16000
    echo = torch.randn(batch, ECHO, device=wave.device, generator=generator)
    echo = echo * torch.exp(-7 * seconds / draw(0.08, 0.3))
    echo = echo / echo.norm(dim=1, keepdim=True) * decibels(-20, -8) * half()
    spectrum = torch.fft.rfft(wave, size) * (1 + torch.fft.rfft(echo, size))

    noise = torch.fft.rfft(torch.randn(batch, size, device=wave.device, generator=generator))
    bins = torch.arange(1, noise.shape[1] + 1, device=wave.device)
    noise = noise * bins ** -draw(0, 0.5)  # from white to pink
    loudness = spectrum.abs().square().sum(1, keepdim=True).sqrt()
    level = loudness / noise.abs().square().sum(1, keepdim=True).sqrt()
    noise = noise * level * decibels(-40, -12) * half()
    return torch.fft.irfft(spectrum + noise, size)[:, :length] * decibels(-12, 6)


def as_another_speaker(wave: Tensor, samples: Tensor, generator: torch.Generator) -> Tensor:
    """The speech tokenizer's mel of the same words at the same times, higher or lower, disturbed.

    wave: [B, N] at 24 kHz; samples: [B]; generator: of the wave's device
    → [B, frames, 128], frames as mel_16k of the resampled wave has
    """
    exponent = 2 * torch.rand(len(wave), device=wave.device, generator=generator) - 1
    factor = PITCH_RANGE**exponent
    longest = int(wave.shape[1] * PITCH_RANGE) + 1
    varied = disturb(resample_16k(play_at(wave, factor, longest)), generator)
    mel = mel_16k(varied, samples_16k((samples / factor).long()))
    # Played so much faster, a moment is there so much sooner.
    frames = -(-wave.shape[1] * 2 // 3) // 160
    at = torch.arange(frames, device=wave.device) / factor[:, None]
    before = at.floor().long().clamp_max(mel.shape[1] - 2)
    weight = (at - before).clamp(0, 1)[..., None]
    channels = before[..., None].expand(-1, -1, mel.shape[2])
    return mel.gather(1, channels) * (1 - weight) + mel.gather(1, channels + 1) * weight
