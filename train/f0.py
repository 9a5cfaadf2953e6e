"""A pitch tracker: the targets of the vocoder's F0 predictor.

Each frame has candidates, the peaks of its autocorrelation and "unvoiced"; the Viterbi algorithm
chooses the strongest sequence with the smallest jumps. Batched, on any device.
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

UNVOICED = 0.45  # strength of the unvoiced candidate, as an autocorrelation from 0 to 1
SILENT = 0.02  # of the row's peak; quieter frames are unvoiced
MIN_PEAK = 0.02  # of full scale, for quiet rows
OCTAVE_BONUS = 0.02  # per octave: half the pitch has the same autocorrelation
OCTAVE_COST = 0.35  # of a jump by an octave between frames
VOICING_COST = 0.14  # of a change between voiced and unvoiced


@torch.no_grad()
def estimate_f0(wave: Tensor) -> Tensor:
    """wave: [B, N] at 24 kHz → [B, N // 480] Hz, 0 if unvoiced; aligned with mel_24k"""
    with torch.autocast(wave.device.type, enabled=False):
        pitch, strength = _candidates(wave.float())
        return pitch.gather(2, _viterbi(pitch, strength)).squeeze(2)


def _candidates(wave: Tensor) -> tuple[Tensor, Tensor]:
    """Pitches, 0 for unvoiced, and their strengths. → [B, T, 1 + CANDIDATES] each"""
    edge = (FRAME - HOP) // 2
    count = wave.shape[1] // HOP
    frames = functional.pad(wave, (edge, edge)).unfold(1, FRAME, HOP)[:, :count]
    frames = frames - frames.mean(-1, keepdim=True)
    correlation = _normalized_autocorrelation(frames)
    before, here, after = correlation[..., :-2], correlation[..., 1:-1], correlation[..., 2:]
    shortest = math.floor(RATE / HIGHEST)
    lag = torch.arange(shortest, shortest + here.shape[-1], device=wave.device)
    # Parabolic interpolation of the peak.
    bend = (before - 2 * here + after).clamp_max(-1e-9)
    offset = (0.5 * (before - after) / bend).clamp(-0.5, 0.5)
    height = here - 0.25 * (before - after) * offset
    hz = RATE / (lag + offset)
    is_peak = (here >= before) & (here > after) & (here > 0)
    strength = (height + OCTAVE_BONUS * torch.log2(hz / LOWEST)).masked_fill(~is_peak, -1.0)
    strength, place = strength.topk(CANDIDATES)

    peak = frames.abs().amax(-1)
    quiet = peak / (SILENT * peak.amax(1, keepdim=True).clamp_min(MIN_PEAK))
    unvoiced = UNVOICED + OCTAVE_BONUS + (1 - quiet).clamp_min(0)
    pitch = functional.pad(hz.gather(-1, place), (1, 0))
    return pitch, torch.cat([unvoiced[..., None], strength], -1)


def _normalized_autocorrelation(frames: Tensor) -> Tensor:
    """The normalized autocorrelation of each frame, 1 for an exact repetition.

    frames: [B, T, 1200] → [B, T, lags], from one below the shortest period to one above the longest
    """
    window = _window(frames.device)
    first, last = math.floor(RATE / HIGHEST) - 1, math.ceil(RATE / LOWEST) + 1
    correlation = _autocorrelation(frames * window)
    # Compensates the window's own autocorrelation.
    fall = _autocorrelation(window)
    level = (correlation[..., :1] + 1e-7) / fall[:1]
    return (correlation / fall / level)[..., first : last + 1]


def _autocorrelation(x: Tensor) -> Tensor:
    power = torch.fft.rfft(x, FOURIER).abs().square()
    return torch.fft.irfft(power)[..., : FOURIER - FRAME]


def _viterbi(pitch: Tensor, strength: Tensor) -> Tensor:
    """The indices of the chosen candidates. → [B, T, 1]"""
    octave = torch.log2(pitch.clamp_min(LOWEST))
    voiced = pitch > 0
    jump = OCTAVE_COST * (octave[:, 1:, :, None] - octave[:, :-1, None]).abs()
    both = voiced[:, 1:, :, None] & voiced[:, :-1, None]
    either = voiced[:, 1:, :, None] ^ voiced[:, :-1, None]
    # For all frames at once; the sequential part below is small.
    costs = (jump * both + VOICING_COST * either).unbind(1)
    total, origins = strength[:, 0], []
    for cost, gain in zip(costs, strength[:, 1:].unbind(1), strict=True):
        best, origin = (total[:, None] - cost).max(2)
        total = best + gain
        origins.append(origin)
    path = [total.argmax(1, keepdim=True)]
    for origin in reversed(origins):
        path.append(origin.gather(1, path[-1]))
    return torch.stack(path[::-1], 1)


@functools.lru_cache
def _window(device: torch.device) -> Tensor:
    return torch.hann_window(FRAME, device=device)
