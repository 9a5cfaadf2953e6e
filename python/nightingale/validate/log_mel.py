"""Log-mel spectrograms at the resolution of S3Gen, and their correlation."""

from functools import cache

import numpy as np

from ..audio import SAMPLE_RATE

WINDOW = 1920
HOP = 480
MELS = 80
HIGHEST = 8000.0  # Hz
FLOOR = 1e-5  # of a band's magnitude
_PAD = (WINDOW - HOP) // 2


def log_mel(samples: np.ndarray) -> np.ndarray:
    """[80, frames] of [n] at 24 kHz; frame i is centred on sample 480 i + 240."""
    padded = np.pad(samples.astype(np.float64), (_PAD, _PAD + (-len(samples)) % HOP))
    frames = np.lib.stride_tricks.sliding_window_view(padded, WINDOW)[::HOP]
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)
    bands = _filters() @ np.abs(np.fft.rfft(frames * window)).T
    return np.asarray(np.log(np.maximum(bands, FLOOR)))


def correlation(one: np.ndarray, other: np.ndarray) -> float:
    """Pearson correlation over all values; for constant arrays, 1 if they are equal, else 0."""
    a, b = one.astype(np.float64).ravel(), other.astype(np.float64).ravel()
    a, b = a - a.mean(), b - b.mean()
    scale = np.sqrt((a @ a) * (b @ b))
    if scale == 0:
        return float(np.array_equal(one, other))
    return float(a @ b / scale)


def hertz_to_band(hertz: float) -> float:
    """Where a frequency lies among the bands, whose centres are 0 to 79."""
    mel = _mel(hertz) if hertz >= _KNEE else hertz / _LINEAR
    return (MELS + 1) * mel / _mel(HIGHEST) - 1


@cache
def _filters() -> np.ndarray:
    """[80, bins] triangles of equal area, even on Slaney's scale: linear to 1 kHz, then log."""
    bins = np.fft.rfftfreq(WINDOW, 1 / SAMPLE_RATE)
    edges = _hertz(np.linspace(0, _mel(HIGHEST), MELS + 2))
    lower, centre, upper = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    rising, falling = (bins - lower) / (centre - lower), (upper - bins) / (upper - centre)
    return np.asarray(np.maximum(0, np.minimum(rising, falling)) * 2 / (upper - lower))


_KNEE, _LINEAR, _LOG = 1000.0, 200 / 3, np.log(6.4) / 27  # Hz, Hz a mel, log of Hz a mel


def _mel(hertz: float) -> float:
    return float(_KNEE / _LINEAR + np.log(hertz / _KNEE) / _LOG)


def _hertz(mel: np.ndarray) -> np.ndarray:
    above = mel - _KNEE / _LINEAR
    return np.where(above < 0, mel * _LINEAR, _KNEE * np.exp(_LOG * np.maximum(above, 0)))
