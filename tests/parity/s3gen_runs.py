"""Runs of Nightingale's S3Gen with the arguments of the parity cases, and their bounds."""

from __future__ import annotations

from typing import Any

import numpy as np

import nightingale

MEL_BOUND = 1e-3  # of max |difference|
CORRELATION_BOUND = 0.99999
SNR_BOUND = 60.0  # dB
F0_BOUND = 1e-3  # of max F0, and of each F0 that is voiced
VOICED_THRESHOLD = 10.0  # Hz


def mel(tts: nightingale.TTS, case: dict[str, Any]) -> np.ndarray:
    settings = {key: case[key] for key in ("steps", "noise", "finalize")}
    return tts.mel(case["tokens"], voice=voice_of(tts, case), **settings)


def voice_of(tts: nightingale.TTS, case: dict[str, Any]) -> nightingale.Voice | None:
    """The case's prompt as a voice, or None where it takes the checkpoint's."""
    if "prompt_token" not in case:
        return None
    return nightingale.Voice(
        tts._voice(None).speaker_emb,
        prompt_token=case["prompt_token"],
        prompt_feat=case["prompt_feat"],
        embedding=case["embedding"],
    )


def vocode(tts: nightingale.TTS, case: dict[str, Any]) -> np.ndarray:
    return tts.vocode(case["mel"], phase=case["phase"], noise=case["noise"])


def f0(tts: nightingale.TTS, mel: np.ndarray) -> np.ndarray:
    """[T] in Hz."""
    return tts._engine.vocoder.pitch(np.ascontiguousarray(mel.T))


def assert_same_mel(
    found: np.ndarray, expected: np.ndarray, name: str, bound: float = MEL_BOUND
) -> None:
    assert found.dtype == np.float32
    assert found.shape == expected.shape, f"{name}: {found.shape}, expected {expected.shape}"
    error = float(np.abs(found - expected).max())
    correlation = float(np.corrcoef(found.ravel(), expected.ravel())[0, 1])
    figures = f"{name}: max error {error:.2e}, correlation {correlation:.8f}"
    assert error <= bound, figures
    assert correlation >= CORRELATION_BOUND, figures


def assert_same_audio(found: np.ndarray, expected: np.ndarray, name: str) -> None:
    assert found.dtype == np.float32
    assert found.shape == expected.shape, f"{name}: {found.shape}, expected {expected.shape}"
    ratio = snr(found, expected)
    assert ratio >= SNR_BOUND, f"{name}: SNR {ratio:.1f} dB"


def snr(found: np.ndarray, expected: np.ndarray) -> float:
    """Signal over difference in dB."""
    signal = expected.astype(np.float64)
    difference = np.sum((found - signal) ** 2)
    return float(10 * np.log10(np.sum(signal**2) / max(difference, 1e-300)))


def assert_same_f0(found: np.ndarray, expected: np.ndarray, name: str) -> None:
    assert found.dtype == np.float32
    assert found.shape == expected.shape, f"{name}: {found.shape}, expected {expected.shape}"
    error = np.abs(found - expected)
    voiced = expected > VOICED_THRESHOLD
    of_max = float(error.max() / expected.max())
    of_each = float((error[voiced] / expected[voiced]).max(initial=0.0))
    figures = f"{name}: F0 error {of_max:.2e} of the highest, {of_each:.2e} of its own"
    assert max(of_max, of_each) <= F0_BOUND, figures


def assert_varied_f0(f0: np.ndarray, name: str) -> None:
    """A vocoder test needs voiced and unvoiced frames."""
    voiced = float(np.mean((f0 >= 80) & (f0 <= 400)))
    silent = float(np.mean(f0 <= VOICED_THRESHOLD))
    figures = f"{name}: {voiced:.0%} of the frames at 80 to 400 Hz, {silent:.1%} unvoiced"
    assert 0.3 <= voiced <= 0.7, figures
    assert silent > 0, figures
