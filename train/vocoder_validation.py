"""Validation of the vocoder: on held-out speech, always with the same random inputs."""

from __future__ import annotations

import wave
from pathlib import Path

import torch
from torch import Tensor

from .data import RATE, Corpus
from .f0 import estimate_f0
from .features import MEL_HOP, mel_24k
from .networks.vocoder import VOICED_ABOVE, Vocoder
from .vocoder_examples import SPARE, windows_of
from .vocoder_losses import HighBandLoss

WINDOWS = 16
SECONDS = 2.0
LSD_WINDOW = 2048
MIN_MAGNITUDE = 1e-3  # -97 dB of a full-scale sine
PITCH_TOLERANCE = 0.05  # relative


class Validation:
    """Windows of a corpus, which should be its valid part."""

    def __init__(self, corpus: Corpus, seed: int = 0) -> None:
        frames = round(SECONDS * RATE / MEL_HOP)
        crop = (frames + 2 * SPARE) * MEL_HOP / RATE
        batch = next(corpus.batches(WINDOWS * crop, seed, crop))
        self.true = windows_of(batch.wave)
        self._device = corpus.device
        self._high_bands = HighBandLoss().to(corpus.device)

    @torch.no_grad()
    def synthesize(self, vocoder: Vocoder) -> tuple[Tensor, Tensor]:
        """The vocoder's audio, [16, N], and pitch, [16, T]."""
        mel = self.true.mel
        f0 = vocoder.f0(mel)
        generator = torch.Generator(self._device).manual_seed(0)
        random = vocoder.draw_inputs(*f0.shape, generator)
        return vocoder.synthesize(mel, f0, *random), f0

    def evaluate(self, vocoder: Vocoder) -> dict[str, float]:
        """lsd: log-spectral distance in dB; mel: L1 distance in nepers; high_bands: HighBandLoss;
        f0: predictor's error in Hz where both are voiced; voicing: share of frames where voicing
        agrees; pitch: share of voiced frames whose pitch is found in the synthesized audio."""
        audio, f0 = self.synthesize(vocoder)
        true = self.true
        voiced, found = true.f0 > 0, f0 > VOICED_ABOVE
        found_f0 = estimate_f0(audio)
        near = (found_f0 - true.f0).abs() < PITCH_TOLERANCE * true.f0
        return {
            "lsd": log_spectral_distance(audio, true.wave).item(),
            "mel": (mel_24k(audio) - true.mel).abs().mean().item(),
            "high_bands": self._high_bands(audio, true.wave).item(),
            "f0": share((f0 - true.f0).abs(), voiced & found),
            "voicing": (voiced == found).float().mean().item(),
            "pitch": share(near.float(), voiced),
        }

    def write(self, vocoder: Vocoder, folder: Path) -> None:
        """Writes all windows, recorded and synthesized, as two WAV files."""
        audio, _ = self.synthesize(vocoder)
        write_wav(folder / "vocoder-true.wav", self.true.wave.flatten())
        write_wav(folder / "vocoder-made.wav", audio.flatten())


def share(x: Tensor, mask: Tensor) -> float:
    """The mean over the mask."""
    return (x * mask).sum().item() / max(1, mask.sum().item())


def log_spectral_distance(made: Tensor, true: Tensor) -> Tensor:
    """The RMS over frequencies in dB, averaged over frames."""
    window = torch.hann_window(LSD_WINDOW, device=made.device)

    def decibels(wave: Tensor) -> Tensor:
        spectrum = torch.stft(wave, LSD_WINDOW, MEL_HOP, window=window, return_complex=True)
        return 20 * spectrum.abs().clamp_min(MIN_MAGNITUDE).log10()

    return (decibels(made) - decibels(true)).square().mean(1).sqrt().mean()


def write_wav(path: Path, samples: Tensor) -> None:
    """samples: [n] in [-1, 1]"""
    values = (samples.clamp(-1, 1) * 32767).round().short().cpu().numpy()
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(values.astype("<i2").tobytes())
