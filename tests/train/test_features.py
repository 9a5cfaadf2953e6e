from __future__ import annotations

import numpy as np
import pytest

import nightingale

from ..recordings import speech

torch = pytest.importorskip("torch")

from train import features  # noqa: E402


@pytest.fixture(scope="module")
def wave() -> torch.Tensor:
    """[1, 60077]: 2.5 s at 24 kHz, no whole number of frames."""
    sound = speech(2.6, 24000)[:60077, 0]
    noise = np.random.default_rng(0).standard_normal(len(sound)).astype(np.float32)
    return torch.from_numpy(sound + 0.01 * noise)[None]


@pytest.fixture(scope="module")
def wave_16k(wave: torch.Tensor) -> torch.Tensor:
    return features.resample_16k(wave)


def power(frames: np.ndarray, window: np.ndarray, size: int) -> np.ndarray:
    return np.abs(np.fft.rfft(frames * window, size)) ** 2


def frames_of(samples: np.ndarray, size: int, hop: int) -> np.ndarray:
    return np.lib.stride_tricks.sliding_window_view(samples, size)[::hop]


def hann(size: int, period: int) -> np.ndarray:
    return 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / period)


def test_mel_24k_is_the_mel_that_the_core_bakes(wave: torch.Tensor, tts: nightingale.TTS) -> None:
    baked = tts.bake_voice(wave[0].numpy(), sample_rate=24000).prompt_feat
    found = features.mel_24k(wave)[0].numpy()
    assert found.shape == (60077 // 480, 80)
    np.testing.assert_allclose(found, baked.reshape(-1, 80), rtol=0, atol=2e-5)


def test_resampling_keeps_a_tone_and_drops_what_16_khz_cannot_hold() -> None:
    time = torch.arange(24000) / 24000
    heard = features.resample_16k(torch.sin(2 * np.pi * 440 * time)[None])[0]
    expected = torch.sin(2 * np.pi * 440 * torch.arange(16000) / 16000)
    assert heard.shape == (16000,)
    assert (heard - expected)[50:-50].abs().max() < 1e-3
    too_high = features.resample_16k(torch.sin(2 * np.pi * 11000 * time)[None])[0]
    assert too_high[50:-50].abs().max() < 1e-2
    assert features.samples_16k(torch.tensor([60077])) == len(
        features.resample_16k(torch.zeros(1, 60077))[0]
    )


def test_mel_16k_is_80_db_of_128_bands(wave_16k: torch.Tensor) -> None:
    samples = wave_16k[0].double().numpy()
    padded = np.pad(samples, 200, mode="reflect")
    filters = features.slaney_filters(16000, 400, 128, torch.device("cpu")).double().numpy()
    mel = power(frames_of(padded, 400, 160), hann(400, 400), 400)[: len(samples) // 160] @ filters
    log = np.log10(np.maximum(mel, 1e-10))
    expected = (np.maximum(log, log.max() - 8) + 4) / 4
    np.testing.assert_allclose(features.mel_16k(wave_16k)[0], expected, rtol=0, atol=1e-4)


def test_voice_mel_is_the_power_of_40_bands(wave_16k: torch.Tensor) -> None:
    padded = np.pad(wave_16k[0].double().numpy(), 200, mode="reflect")
    filters = features.slaney_filters(16000, 400, 40, torch.device("cpu")).double().numpy()
    expected = power(frames_of(padded, 400, 160), hann(400, 400), 400) @ filters
    np.testing.assert_allclose(
        features.voice_mel(wave_16k)[0], expected, rtol=1e-4, atol=1e-5 * expected.max()
    )


def test_fbank_is_kaldis(wave_16k: torch.Tensor) -> None:
    frames = frames_of(wave_16k[0].double().numpy(), 400, 160)
    frames = frames - frames.mean(1, keepdims=True)
    emphasised = frames - 0.97 * np.concatenate([frames[:, :1], frames[:, :-1]], 1)
    filters = features.kaldi_filters(16000, 512, 80, torch.device("cpu")).double().numpy()
    mel = power(emphasised, hann(400, 399) ** 0.85, 512) @ filters
    log = np.log(np.maximum(mel, np.finfo(np.float32).eps))
    expected = log - log.mean(0)
    np.testing.assert_allclose(features.fbank(wave_16k)[0], expected, rtol=0, atol=1e-3)


@pytest.mark.parametrize("name", ["mel_24k", "mel_16k", "voice_mel", "fbank"])
def test_features_do_not_depend_on_padding(name: str, wave: torch.Tensor) -> None:
    feature = getattr(features, name)
    alone = feature(wave[:, :30000])
    rows = torch.stack([wave[0, :30000], wave[0, 20000:50000]])
    padded = torch.nn.functional.pad(rows, (0, 9000))
    found = feature(padded, torch.tensor([30000, 30000]))
    assert (found[:1, : alone.shape[1]] - alone).abs().max() < 1e-5


def test_a_loss_on_the_mel_reaches_the_wave_even_under_autocast(wave: torch.Tensor) -> None:
    heard = wave.clone().requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mel = features.mel_24k(heard)
    assert mel.dtype == torch.float32
    torch.testing.assert_close(mel.detach(), features.mel_24k(wave), rtol=0, atol=0)
    mel.sum().backward()
    assert heard.grad.abs().sum() > 0


def test_constants_made_in_inference_mode_work_in_training() -> None:
    features._hann.cache_clear()
    with torch.inference_mode():
        features.mel_24k(torch.zeros(1, 4800))
    heard = torch.zeros(1, 4800, requires_grad=True)
    features.mel_24k(heard).sum().backward()
    assert heard.grad is not None
