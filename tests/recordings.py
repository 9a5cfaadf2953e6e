"""Recordings to test with."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
import soundfile

from nightingale.recording import Recording, read_recording


def speech(seconds: float, rate: int, channels: int = 1) -> np.ndarray:
    """[n, channels] float32: a voiced sound of 150 Hz in three syllables a second, peaks at 0.5."""
    time = np.arange(round(seconds * rate))[:, None] / rate
    phases = 2 * np.pi * 150 * time + np.arange(channels)
    voiced = sum(np.sin(k * phases + k * k) / k for k in range(1, 10))
    syllables = 0.55 - 0.45 * np.cos(2 * np.pi * 3 * time)
    return (0.5 * voiced * syllables / 2.5).astype(np.float32)


def assert_same(found: Recording, expected: Recording) -> None:
    np.testing.assert_array_equal(found.at_24k, expected.at_24k)
    np.testing.assert_array_equal(found.at_16k, expected.at_16k)
    assert found.duration == expected.duration


def refusal(kind: type[Exception], source: Any, sample_rate: Any = None) -> str:
    with pytest.raises(kind) as caught:
        read_recording(source, sample_rate)
    assert type(caught.value) is kind
    message = str(caught.value)
    assert "\n" not in message
    return message


def wav_bytes(samples: np.ndarray, rate: int, **settings: str) -> bytes:
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, rate, format="WAV", **settings)
    return buffer.getvalue()
