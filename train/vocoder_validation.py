"""How good a vocoder is: on speech it has not seen, always with the same draws."""

from __future__ import annotations

import wave
from pathlib import Path

import torch
from torch import Tensor

from .data import RATE, Corpus
from .f0 import f0_of
from .features import MEL_HOP, mel_24k
from .networks.vocoder import VOICED_ABOVE, Vocoder
from .vocoder_examples import SPARE, windows_of

WINDOWS = 16
SECONDS = 2.0
LSD_WINDOW = 2048
SOFTEST = 1e-3  # of a spectrum's magnitudes: -97 dB of a sine at full scale
NEAR = 0.05  # of a pitch


class Validation:
    """Windows of rows of the corpus, which is to be its valid part."""

    def __init__(self, corpus: Corpus, seed: int = 0) -> None:
        frames = round(SECONDS * RATE / MEL_HOP)
        crop = (frames + 2 * SPARE) * MEL_HOP / RATE
        batch = next(corpus.batches(WINDOWS * crop, seed, crop))
        self.true = windows_of(batch.wave)
        self._device = corpus.device

    @torch.no_grad()
    def made(self, vocoder: Vocoder) -> tuple[Tensor, Tensor]:
        """The vocoder's sound, [16, N], and pitch, [16, T]."""
        mel = self.true.mel
        f0 = vocoder.f0(mel)
        generator = torch.Generator(self._device).manual_seed(0)
        draws = vocoder.draws(*f0.shape, generator)
        return vocoder.sound(mel, f0, *draws), f0

    def judge(self, vocoder: Vocoder) -> dict[str, float]:
        """lsd: log-spectral distance in dB; mel: in nepers; f0: predictor's error in Hz where both
        are voiced; voicing: share of the frames where it agrees; pitch: share of the voiced frames
        whose pitch is heard in the sound that was made."""
        sound, f0 = self.made(vocoder)
        true = self.true
        voiced, found = true.f0 > 0, f0 > VOICED_ABOVE
        heard = f0_of(sound)
        near = (heard - true.f0).abs() < NEAR * true.f0
        return {
            "lsd": log_spectral_distance(sound, true.wave).item(),
            "mel": (mel_24k(sound) - true.mel).abs().mean().item(),
            "f0": share((f0 - true.f0).abs(), voiced & found),
            "voicing": (voiced == found).float().mean().item(),
            "pitch": share(near.float(), voiced),
        }

    def write(self, vocoder: Vocoder, folder: Path) -> None:
        """All windows one after the other: what was said and what the vocoder makes of it."""
        sound, _ = self.made(vocoder)
        write_wav(folder / "vocoder-true.wav", self.true.wave.flatten())
        write_wav(folder / "vocoder-made.wav", sound.flatten())


def share(x: Tensor, mask: Tensor) -> float:
    """The mean where the mask is true."""
    return (x * mask).sum().item() / max(1, mask.sum().item())


def log_spectral_distance(made: Tensor, true: Tensor) -> Tensor:
    """The root of the mean square over frequencies, in dB, on average over frames."""
    window = torch.hann_window(LSD_WINDOW, device=made.device)

    def decibels(wave: Tensor) -> Tensor:
        spectrum = torch.stft(wave, LSD_WINDOW, MEL_HOP, window=window, return_complex=True)
        return 20 * spectrum.abs().clamp_min(SOFTEST).log10()

    return (decibels(made) - decibels(true)).square().mean(1).sqrt().mean()


def write_wav(path: Path, samples: Tensor) -> None:
    """samples: [n] in [-1, 1]"""
    values = (samples.clamp(-1, 1) * 32767).round().short().cpu().numpy()
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(values.astype("<i2").tobytes())
