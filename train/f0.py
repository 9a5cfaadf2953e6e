"""The pitch of speech, decided for every frame: what the vocoder's predictor learns to tell.

Each frame offers the periods at which it repeats itself best, and to be unvoiced; of these a row
takes the sequence that is strongest and jumps least. All rows at once, on any device.
"""

from __future__ import annotations

import functools
import math

import torch
from torch import Tensor
from torch.nn import functional

RATE, HOP = 24000, 480
LOWEST, HIGHEST = 60.0, 550.0  # Hz
FRAME, FOURIER = 1200, 2048  # samples: three of the longest periods; for lags up to one of them
CANDIDATES = 5

# As strong as a period that repeats itself so well, from 0 to 1.
UNVOICED = 0.45
SILENT = 0.02  # of the row's peak: quieter frames are unvoiced
LEAST_PEAK = 0.02  # of full scale, for rows that are all quiet
HIGHER = 0.02  # an octave higher is better by this: half the pitch repeats itself as well
JUMP = 0.35  # to another octave within a frame
TURN = 0.14  # from voiced to unvoiced and back


@torch.no_grad()
def f0_of(wave: Tensor) -> Tensor:
    """wave: [B, N] at 24 kHz → [B, N // 480] Hz, 0 where unvoiced; frames as mel_24k has them"""
    with torch.autocast(wave.device.type, enabled=False):
        pitch, strength = _offers(wave.float())
        return pitch.gather(2, _best_way(pitch, strength)).squeeze(2)


def _offers(wave: Tensor) -> tuple[Tensor, Tensor]:
    """Pitches, 0 for unvoiced, and how strong they are. → [B, T, 1 + CANDIDATES] each"""
    edge = (FRAME - HOP) // 2
    count = wave.shape[1] // HOP
    frames = functional.pad(wave, (edge, edge)).unfold(1, FRAME, HOP)[:, :count]
    frames = frames - frames.mean(-1, keepdim=True)
    repetition = _repetition(frames)
    before, here, after = repetition[..., :-2], repetition[..., 1:-1], repetition[..., 2:]
    shortest = math.floor(RATE / HIGHEST)
    lag = torch.arange(shortest, shortest + here.shape[-1], device=wave.device)
    # The peak of the parabola through three points.
    bend = (before - 2 * here + after).clamp_max(-1e-9)
    offset = (0.5 * (before - after) / bend).clamp(-0.5, 0.5)
    height = here - 0.25 * (before - after) * offset
    hz = RATE / (lag + offset)
    is_peak = (here >= before) & (here > after) & (here > 0)
    strength = (height + HIGHER * torch.log2(hz / LOWEST)).masked_fill(~is_peak, -1.0)
    strength, place = strength.topk(CANDIDATES)

    peak = frames.abs().amax(-1)
    quiet = peak / (SILENT * peak.amax(1, keepdim=True).clamp_min(LEAST_PEAK))
    unvoiced = UNVOICED + HIGHER + (1 - quiet).clamp_min(0)
    pitch = functional.pad(hz.gather(-1, place), (1, 0))
    return pitch, torch.cat([unvoiced[..., None], strength], -1)


def _repetition(frames: Tensor) -> Tensor:
    """How alike a frame is to itself so many samples later, 1 where equal.

    frames: [B, T, 1200] → [B, T, lags], from one below the shortest period to one above the longest
    """
    window = _window(frames.device)
    first, last = math.floor(RATE / HIGHEST) - 1, math.ceil(RATE / LOWEST) + 1
    correlation = _autocorrelation(frames * window)
    # The window's own share of the fall towards long periods is taken out.
    fall = _autocorrelation(window)
    level = (correlation[..., :1] + 1e-7) / fall[:1]
    return (correlation / fall / level)[..., first : last + 1]


def _autocorrelation(x: Tensor) -> Tensor:
    power = torch.fft.rfft(x, FOURIER).abs().square()
    return torch.fft.irfft(power)[..., : FOURIER - FRAME]


def _best_way(pitch: Tensor, strength: Tensor) -> Tensor:
    """The numbers of the offers taken. → [B, T, 1]"""
    octave = torch.log2(pitch.clamp_min(LOWEST))
    voiced = pitch > 0
    jump = JUMP * (octave[:, 1:, :, None] - octave[:, :-1, None]).abs()
    both = voiced[:, 1:, :, None] & voiced[:, :-1, None]
    either = voiced[:, 1:, :, None] ^ voiced[:, :-1, None]
    # Of all frames at once: what is left to do one after the other is little.
    costs = (jump * both + TURN * either).unbind(1)
    total, origins = strength[:, 0], []
    for cost, gain in zip(costs, strength[:, 1:].unbind(1), strict=True):
        best, origin = (total[:, None] - cost).max(2)
        total = best + gain
        origins.append(origin)
    way = [total.argmax(1, keepdim=True)]
    for origin in reversed(origins):
        way.append(origin.gather(1, way[-1]))
    return torch.stack(way[::-1], 1)


@functools.lru_cache
def _window(device: torch.device) -> Tensor:
    return torch.hann_window(FRAME, device=device)
