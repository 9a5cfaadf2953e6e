"""Checks level and spectrum against bounds that do not depend on what is spoken."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from ..audio import SAMPLE_RATE
from .report import Result

BAND_EDGES = (300, 3400, 8000)  # Hz
WINDOW = 2048
LARGEST_BAND = 0.995  # of the energy: a hum, a hiss or a tone holds more in one
NEAR_LIMIT = 0.985  # the vocoder stops at 0.99
MOST_NEAR_LIMIT = 0.001  # of the samples
LARGEST_DC = 0.1  # made-up weights of full size have 0.06; a trained model should have none
LEVELS = (-50.0, -6.0)  # dBFS
FRAME = 480  # 20 ms
SILENT = 1e-3  # RMS of a frame, -60 dBFS
MOST_SILENT = 0.6  # of the frames


def clipping(clips: Sequence[np.ndarray]) -> Result:
    """Samples at the vocoder's limit, beyond full scale or not numbers at all."""
    samples = np.abs(np.concatenate(clips))
    finite = samples[np.isfinite(samples)]
    share = float(np.mean(finite >= NEAR_LIMIT)) if len(finite) else 1.0
    beyond, lost = int(np.sum(finite > 1)), len(samples) - len(finite)
    peak = float(finite.max(initial=0))
    figure = f"{share:.3%} near the limit, {beyond} beyond 1, {lost} not finite; peak {peak:.3f}"
    bound = f"<= {MOST_NEAR_LIMIT:.1%} at {NEAR_LIMIT} or more, 0, 0"
    passed = share <= MOST_NEAR_LIMIT and not beyond and not lost
    values = {"near_limit_share": share, "beyond_1": beyond, "not_finite": lost, "peak": peak}
    return Result("clipping", figure, bound, passed, values)


def dc_offset(clips: Sequence[np.ndarray]) -> Result:
    """The mean of the clip whose mean is farthest from 0."""
    worst = max((float(_finite(clip).mean()) for clip in clips), key=abs)
    passed = abs(worst) <= LARGEST_DC
    return Result("DC offset", f"{worst:+.4f}", f"within {LARGEST_DC}", passed, {"dc": worst})


def level(clips: Sequence[np.ndarray]) -> Result:
    """RMS about the mean, in dB of full scale."""
    samples = np.concatenate([_centred(clip) for clip in clips])
    rms = float(10 * np.log10(np.mean(samples**2) + 1e-20))
    low, high = LEVELS
    bound = f"{low:.0f} to {high:.0f} dBFS"
    return Result("level", f"{rms:.1f} dBFS", bound, low <= rms <= high, {"rms_dbfs": rms})


def silence(clips: Sequence[np.ndarray]) -> Result:
    """The share of 20 ms frames below -60 dBFS."""
    levels = np.concatenate([_frame_levels(clip) for clip in clips])
    share = float(np.mean(levels < SILENT))
    figure, bound = f"{share:.1%} of the time", f"<= {MOST_SILENT:.0%}"
    return Result("silence", figure, bound, share <= MOST_SILENT, {"silent_share": share})


def bands(clips: Sequence[np.ndarray]) -> Result:
    """How the energy about the mean is split between bands."""
    power = np.sum([_power(clip) for clip in clips], axis=0)
    edges = np.searchsorted(np.fft.rfftfreq(WINDOW, 1 / SAMPLE_RATE), BAND_EDGES)
    energies = [float(band.sum()) for band in np.split(power, edges)]
    limits = pairwise((0, *BAND_EDGES, SAMPLE_RATE // 2))
    shares = {
        f"{low}-{high}": energy / (sum(energies) or 1.0)
        for (low, high), energy in zip(limits, energies, strict=True)
    }
    figure = ", ".join(f"{name} {share:.1%}" for name, share in shares.items())
    passed = 0 < max(shares.values()) <= LARGEST_BAND
    values = {f"{name} Hz": share for name, share in shares.items()}
    return Result("bands in Hz", figure, f"none above {LARGEST_BAND:.1%}", passed, values)


def _power(clip: np.ndarray) -> np.ndarray:
    """[bins] power, summed over windows that overlap by half."""
    samples = _centred(clip)
    hop = WINDOW // 2
    padded = np.pad(samples, (0, max(WINDOW - len(samples), -len(samples) % hop)))
    frames = np.lib.stride_tricks.sliding_window_view(padded, WINDOW)[::hop]
    spectra = np.fft.rfft(frames * np.hanning(WINDOW))
    return np.asarray(np.sum(np.abs(spectra) ** 2, axis=0))


def _frame_levels(clip: np.ndarray) -> np.ndarray:
    """RMS of each whole frame, or of what there is."""
    samples = _centred(clip)
    count = len(samples) // FRAME * FRAME
    frames = samples[:count].reshape(-1, FRAME) if count else samples[None]
    return np.asarray(np.sqrt(np.mean(frames**2, axis=1)))


def _centred(clip: np.ndarray) -> np.ndarray:
    samples = _finite(clip)
    return np.asarray(samples - samples.mean())


def _finite(clip: np.ndarray) -> np.ndarray:
    """Replaces values that are not finite, which `clipping` reports, with 0."""
    return np.nan_to_num(clip.astype(np.float64), nan=0, posinf=0, neginf=0)
