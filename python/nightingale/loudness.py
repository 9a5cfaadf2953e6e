"""Loudness by ITU-R BS.1770-4, measured as pyloudnorm does, which the reference uses."""

import math

import numpy as np

BLOCK_SECONDS = 0.4
OVERLAP = 0.75
ABSOLUTE_GATE = -70.0  # LUFS; quieter blocks do not count
RELATIVE_GATE = -10.0  # dB below the mean of the blocks that the absolute gate leaves
_OFFSET = -0.691  # dB, of the K-weighting at 1 kHz
# The K-weighting filters ring for less: their impulse responses are below 1e-16 by then.
_RINGING_SECONDS = 0.2


def integrated_loudness(samples: np.ndarray, rate: int) -> float:
    """LUFS of mono samples; -inf where no block of 0.4 s passes the gates.

    ValueError: they are shorter than a block.
    """
    if len(samples) < BLOCK_SECONDS * rate:
        raise ValueError(
            f"loudness is measured over {BLOCK_SECONDS} s at least, not {len(samples) / rate:.3f} s"
        )
    powers = _block_powers(_k_weighted(samples.astype(np.float64), rate), rate)
    counted = powers[_lufs(powers) >= ABSOLUTE_GATE]
    if not len(counted):
        return -math.inf
    gate = max(ABSOLUTE_GATE, float(_lufs(counted.mean())) + RELATIVE_GATE)
    passed = powers[_lufs(powers) > gate]
    return float(_lufs(passed.mean())) if len(passed) else -math.inf


def gain_to(loudness: float, samples: np.ndarray, rate: int) -> float:
    """What samples are multiplied with to have this loudness; 1 where theirs cannot be measured.
    Peaks may then be above 1, as in the reference."""
    if len(samples) < BLOCK_SECONDS * rate:
        return 1.0
    gain = 10.0 ** ((loudness - integrated_loudness(samples, rate)) / 20.0)
    return gain if math.isfinite(gain) and gain > 0 else 1.0


def _lufs(power: np.ndarray | float) -> np.ndarray:
    with np.errstate(divide="ignore"):  # silence
        return _OFFSET + 10.0 * np.log10(power)


def _block_powers(weighted: np.ndarray, rate: int) -> np.ndarray:
    """Mean squares of overlapping blocks; the last one may end after the samples."""
    step = 1.0 - OVERLAP
    seconds = len(weighted) / rate
    count = int(np.round((seconds - BLOCK_SECONDS) / (BLOCK_SECONDS * step)) + 1)
    numbers = np.arange(count)
    begins = (BLOCK_SECONDS * (numbers * step) * rate).astype(int)
    ends = (BLOCK_SECONDS * (numbers * step + 1) * rate).astype(int)
    energy = np.concatenate([[0.0], np.cumsum(np.square(weighted))])
    sums = energy[np.minimum(ends, len(weighted))] - energy[begins]
    powers: np.ndarray = np.maximum(sums, 0.0) / (BLOCK_SECONDS * rate)
    return powers


def _k_weighted(samples: np.ndarray, rate: int) -> np.ndarray:
    """Through both filters of the K-weighting: by their frequency responses, part by part, each of
    which rings on into the next."""
    ringing = math.ceil(_RINGING_SECONDS * rate)
    size = 1 << (4 * ringing).bit_length()
    step = size - ringing
    delay = np.exp(-2j * np.pi * np.arange(size // 2 + 1) / size)  # of one sample
    response = _response(*_high_shelf(rate), delay) * _response(*_high_pass(rate), delay)
    weighted = np.zeros(len(samples) + size)
    for begin in range(0, len(samples), step):
        part = np.fft.rfft(samples[begin : begin + step], size)
        weighted[begin : begin + size] += np.fft.irfft(part * response, size)
    return weighted[: len(samples)]


def _response(b: np.ndarray, a: np.ndarray, delay: np.ndarray) -> np.ndarray:
    """Of a filter with these coefficients of the input and the output."""
    return np.polyval(b[::-1], delay) / np.polyval(a[::-1], delay)


def _high_shelf(rate: int) -> tuple[np.ndarray, np.ndarray]:
    """4 dB more above 1.5 kHz: what a head does. The coefficients are those of the audio EQ
    cookbook by R. Bristow-Johnson, as are those of the high pass."""
    amplitude = 10 ** (4.0 / 40)
    angle = 2 * math.pi * 1500 / rate
    cosine, alpha = math.cos(angle), math.sin(angle) / math.sqrt(2)
    more, less = amplitude + 1, amplitude - 1
    slope = 2 * math.sqrt(amplitude) * alpha
    b = amplitude * np.array(
        [more + less * cosine + slope, -2 * (less + more * cosine), more + less * cosine - slope]
    )
    a = np.array(
        [more - less * cosine + slope, 2 * (less - more * cosine), more - less * cosine - slope]
    )
    return b, a


def _high_pass(rate: int) -> tuple[np.ndarray, np.ndarray]:
    """Below 38 Hz nothing is heard."""
    angle = 2 * math.pi * 38 / rate
    cosine, alpha = math.cos(angle), math.sin(angle)
    b = np.array([(1 + cosine) / 2, -(1 + cosine), (1 + cosine) / 2])
    return b, np.array([1 + alpha, -2 * cosine, 1 - alpha])
