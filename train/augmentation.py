"""Augmentation for encoders that should not depend on speaker, room and microphone."""

from __future__ import annotations

import torch
from torch import Tensor

from .data import change_speed
from .features import mel_16k, resample_16k, samples_16k

PITCH_RANGE = 1.18  # pitch and formants go up or down by this factor at most
REVERB = 4000  # samples at 16 kHz
FAST_SIZE = 4096  # FFTs of its multiples are fast


def add_reverb_and_noise(wave: Tensor, generator: torch.Generator) -> Tensor:
    """A random level for every row, light reverberation for half of the rows, noise for half.

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

    size = -(-(length + REVERB) // FAST_SIZE) * FAST_SIZE
    seconds = torch.arange(REVERB, device=wave.device) / 16000
    reverb = torch.randn(batch, REVERB, device=wave.device, generator=generator)
    reverb = reverb * torch.exp(-7 * seconds / draw(0.08, 0.3))
    reverb = reverb / reverb.norm(dim=1, keepdim=True) * decibels(-20, -8) * half()
    spectrum = torch.fft.rfft(wave, size) * (1 + torch.fft.rfft(reverb, size))

    noise = torch.fft.rfft(torch.randn(batch, size, device=wave.device, generator=generator))
    bins = torch.arange(1, noise.shape[1] + 1, device=wave.device)
    noise = noise * bins ** -draw(0, 0.5)  # from white to pink
    loudness = spectrum.abs().square().sum(1, keepdim=True).sqrt()
    level = loudness / noise.abs().square().sum(1, keepdim=True).sqrt()
    noise = noise * level * decibels(-40, -12) * half()
    return torch.fft.irfft(spectrum + noise, size)[:, :length] * decibels(-12, 6)


def mel_of_other_speaker(wave: Tensor, samples: Tensor, generator: torch.Generator) -> Tensor:
    """The speech tokenizer's mel with another pitch, room and noise, aligned with the original.

    wave: [B, N] at 24 kHz; samples: [B]; generator: of the wave's device
    → [B, frames, 128], with the frames of mel_16k of the resampled wave
    """
    exponent = 2 * torch.rand(len(wave), device=wave.device, generator=generator) - 1
    factor = PITCH_RANGE**exponent
    longest = int(wave.shape[1] * PITCH_RANGE) + 1
    changed = add_reverb_and_noise(resample_16k(change_speed(wave, factor, longest)), generator)
    mel = mel_16k(changed, samples_16k((samples / factor).long()))
    # Interpolates back to the original times.
    frames = -(-wave.shape[1] * 2 // 3) // 160
    at = torch.arange(frames, device=wave.device) / factor[:, None]
    before = at.floor().long().clamp_max(mel.shape[1] - 2)
    weight = (at - before).clamp(0, 1)[..., None]
    channels = before[..., None].expand(-1, -1, mel.shape[2])
    return mel.gather(1, channels) * (1 - weight) + mel.gather(1, channels + 1) * weight
