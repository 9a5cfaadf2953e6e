"""Pitch salience: the strength of each pitch, without choosing one."""

from __future__ import annotations

import functools
import math

import torch
from torch import Tensor
from torch.nn import functional

LOWEST, HIGHEST = 60.0, 500.0  # Hz
PITCHES = 48  # evenly spaced in logarithms, the highest first
FRAME, HOP, FOURIER = 640, 320, 1024  # samples at 16 kHz
LOW_PITCH_PENALTY = 0.25  # of the lowest pitch against the highest
SILENCE = 1e-3  # energy that is added to every frame


def salience(wave: Tensor) -> Tensor:
    """The normalized autocorrelation at the period of each pitch.

    wave: [B, N] at 16 kHz → [B, N // 320, 48], aligned with the 24 kHz mel
    """
    with torch.autocast(wave.device.type, enabled=False):
        window = torch.hann_window(FRAME, device=wave.device)
        edge = (FRAME - HOP) // 2
        frames = functional.pad(wave.float(), (edge, edge)).unfold(1, FRAME, HOP)
        frames = frames - frames.mean(-1, keepdim=True)
        correlation = _autocorrelation(frames * window)
        # Compensates the window's own autocorrelation.
        fall = _autocorrelation(window)
        level = (correlation[..., :1] + SILENCE) / fall[:1]
        return (correlation / fall / level) @ _periods(wave.device)


def agreement(found: Tensor, true: Tensor, mask: Tensor) -> float:
    """The share of voiced frames whose strongest pitch is found within about a semitone.

    found, true: [B, T, 48]; mask: [B, T]
    """
    strength, place = true.max(-1)
    voiced = mask & (strength > 0.6)
    near = (found.argmax(-1) - place).abs() <= 1
    return (near & voiced).sum().item() / max(1, voiced.sum().item())


def _autocorrelation(x: Tensor) -> Tensor:
    power = torch.fft.rfft(x, FOURIER).abs().square()
    return torch.fft.irfft(power)[..., : math.ceil(16000 / LOWEST) + 1]


@functools.lru_cache
def _periods(device: torch.device) -> Tensor:
    """Interpolates between lags, and gives long periods less weight, because a signal also repeats
    after two periods. → [lags, 48]"""
    steps = torch.linspace(0, 1, PITCHES)
    periods = 16000 / (HIGHEST * (LOWEST / HIGHEST) ** steps)
    lags = torch.arange(math.ceil(16000 / LOWEST) + 1)
    weight = 1 - LOW_PITCH_PENALTY * steps
    return ((1 - (lags[:, None] - periods).abs()).clamp_min(0) * weight).to(device)
