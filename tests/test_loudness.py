"""Loudness by ITU-R BS.1770-4. The figures are those of pyloudnorm 0.2.0, the reference's meter."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nightingale.loudness import gain_to, integrated_loudness

from .recordings import speech

BOUND = 1e-4  # dB


def sine(rate: int) -> np.ndarray:
    return np.sin(2 * np.pi * 997 * np.arange(5 * rate) / rate)


def with_pause(rate: int) -> np.ndarray:
    """Speech, silence as long, and speech that the relative gate leaves out."""
    spoken = speech(7.0, rate)[:, 0]
    quiet = spoken[: round(1.5 * rate)] * np.float32(0.01)
    return np.concatenate([spoken, np.zeros(7 * rate, np.float32), quiet])


@pytest.mark.parametrize(
    ("rate", "of_sine", "of_speech", "of_pause"),
    [
        (16_000, -3.0832274971, -20.0575703415, -20.1499484393),
        (24_000, -3.0634663112, -20.0558247278, -20.1482032646),
        (48_000, -3.0516897727, -20.0547746605, -20.1471536320),
    ],
)
def test_loudness_is_that_of_the_reference_s_meter(
    rate: int, of_sine: float, of_speech: float, of_pause: float
) -> None:
    found = [
        integrated_loudness(samples, rate)
        for samples in (sine(rate), speech(7.0, rate)[:, 0], with_pause(rate))
    ]
    np.testing.assert_allclose(found, [of_sine, of_speech, of_pause], atol=BOUND, rtol=0)


def test_samples_have_the_loudness_asked_for() -> None:
    samples = speech(7.0, 24_000)[:, 0]
    louder = samples * gain_to(-27.0, samples, 24_000)
    assert integrated_loudness(louder, 24_000) == pytest.approx(-27.0, abs=BOUND)
    assert gain_to(-14.0, samples, 24_000) == pytest.approx(10 ** (6.0558247278 / 20), rel=1e-5)


def test_nothing_is_clipped() -> None:
    """One click in quiet noise stays where it is above the rest."""
    samples = 1e-3 * np.random.default_rng(0).standard_normal(5 * 24_000)
    samples[60_000] = 1.0
    assert np.abs(samples * gain_to(-27.0, samples, 24_000)).max() > 3


def test_silence_and_what_is_below_the_absolute_gate_have_no_loudness() -> None:
    hum = np.full(24_000, 1e-6) * sine(24_000)[:24_000]
    for samples in (np.zeros(24_000), hum):
        assert integrated_loudness(samples, 24_000) == -math.inf
        assert gain_to(-27.0, samples, 24_000) == 1.0


def test_less_than_a_block_is_not_measured() -> None:
    samples = speech(0.4, 24_000)[:, 0]
    assert math.isfinite(integrated_loudness(samples, 24_000))
    with pytest.raises(ValueError, match=r"0\.4 s at least, not 0\.400 s"):
        integrated_loudness(samples[:-1], 24_000)
    assert gain_to(-27.0, samples[:-1], 24_000) == 1.0
