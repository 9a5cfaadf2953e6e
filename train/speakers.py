"""Stage 6: the speaker encoders: the voice encoder of T3 and the x-vector network of the flow.

    python -m train.speakers CORPUS OUT [--minutes 5]
    python -m train.speakers embed CORPUS OUT/speakers.safetensors OUT/speakers.npz

Both learn to classify the speaker of a few seconds of audio, with speed perturbation (each factor
counts as another speaker), reverberation and noise.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from .augmentation import add_reverb_and_noise
from .data import RATE, Corpus, sorted_batches
from .features import fbank, resample_16k, samples_16k, voice_mel
from .nan_guard import guarded_adamw
from .networks.voice_encoder import (
    PART_FRAMES,
    SPEAKER_SIZE,
    VOICE_ENCODER_SIZES,
    VoiceEncoder,
    VoiceEncoderSize,
)
from .networks.x_vector import X_VECTOR, X_VECTOR_SIZES, XVector, XVectorSize
from .schedule import Schedule
from .state import load_stage, save_stage, write_npz
from .training import EncoderStage, Losses, log, parameter_count, run_encoder_stage

STAGE = "speakers"
PREFIX = "speaker_encoder."

WINDOW = 3.2  # seconds of a training window
CROP = 2.6  # seconds of it that are used after the speed change
X_VECTOR_SECONDS = 10  # of a recording that the x-vector is computed from

PEAK_RATE = 2e-3
SCALE = 30.0  # factor of the cosines before the softmax
MARGIN = 0.2  # radians, at the end of its ramp
MARGIN_RAMP = 0.3  # share of the run
CALIBRATION_STEPS = 40
MAX_FAILED_SHARE = 0.01  # of the rows, whose vectors are not finite

TRIM_HOP = 512
TRIM_SPAN = 4  # hops
TRIM_POWER = 0.01  # of the loudest frame: -20 dB


class AngularMargin(nn.Module):
    """Additive angular margin softmax (AAM, ArcFace)."""

    def __init__(self, size: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(classes, size))

    def forward(self, x: Tensor, label: Tensor, margin: float) -> Tensor:
        """x: [B, size]; label: [B]; margin: in radians → loss"""
        with torch.autocast(x.device.type, enabled=False):
            cosine = functional.normalize(x.float()) @ functional.normalize(self.weight).T
        target = cosine.gather(1, label[:, None]).clamp(-1 + 1e-6, 1 - 1e-6)
        harder = torch.cos(torch.acos(target) + margin)
        return functional.cross_entropy(SCALE * cosine.scatter(1, label[:, None], harder), label)


@dataclasses.dataclass(frozen=True)
class SpeakersSize:
    voice_encoder: VoiceEncoderSize
    x_vector: XVectorSize


SIZES = {
    name: SpeakersSize(VOICE_ENCODER_SIZES[name], X_VECTOR_SIZES[name])
    for name in ("small", "tiny")
}


class Speakers(nn.Module):
    def __init__(self, size: SpeakersSize) -> None:
        super().__init__()
        self.voice_encoder = VoiceEncoder(size.voice_encoder)
        self.x_vector = XVector(size.x_vector)

    def tensors(self) -> dict[str, Tensor]:
        """By official name: the voice encoder's have no prefix, CAMPPlus's have S3Gen's."""
        x_vector = self.x_vector.state_dict()
        return {
            **self.voice_encoder.state_dict(),
            **{PREFIX + name: tensor for name, tensor in x_vector.items()},
        }

    def load_tensors(self, tensors: dict[str, Tensor]) -> None:
        prefixed = {name for name in tensors if name.startswith(PREFIX)}
        self.x_vector.load_state_dict({n.removeprefix(PREFIX): tensors[n] for n in prefixed})
        others = tensors.keys() - prefixed
        self.voice_encoder.load_state_dict({name: tensors[name] for name in others})


def repeat_rows(wave: Tensor, begin: Tensor, end: Tensor, length: int) -> Tensor:
    """Repeats each row from its begin to its end. wave: [B, N] → [B, length]"""
    at = torch.arange(length, device=wave.device) % (end - begin)[:, None]
    return wave.gather(1, begin[:, None] + at)


def trim_silence(wave: Tensor, samples: Tensor) -> tuple[Tensor, Tensor]:
    """Where rows begin and end without silence at -20 dB, trimmed as the voice baker does.

    wave: [B, N] at 16 kHz, zero past each row's end; samples: [B]
    """
    half = TRIM_SPAN // 2
    frames = wave.shape[1] // TRIM_HOP + 1
    padded = functional.pad(wave, (half * TRIM_HOP, (half + 1) * TRIM_HOP)).square()
    energy = padded.unfold(1, TRIM_HOP, TRIM_HOP).sum(-1)
    power = energy.unfold(1, TRIM_SPAN, 1).sum(-1)[:, :frames] / (TRIM_HOP * TRIM_SPAN)
    power = power.clamp_min(1e-10)
    loud = power > TRIM_POWER * power.amax(1, keepdim=True)
    places = torch.arange(frames, device=wave.device)
    first = torch.where(loud, places, frames).amin(1)
    last = torch.where(loud, places, -1).amax(1)
    return first * TRIM_HOP, torch.minimum((last + 1) * TRIM_HOP, samples)


@torch.inference_mode()
def embed(speakers: Speakers, wave: Tensor, samples: Tensor) -> tuple[Tensor, Tensor]:
    """Computes the vectors as the voice baker does; short rows are repeated to the longest length.

    wave: [B, N] at 24 kHz; samples: [B] → x-vectors [B, 192], speakers [B, 256]
    """
    wave, samples = resample_16k(wave), samples_16k(samples)
    begin, end = trim_silence(wave, samples)
    trimmed = repeat_rows(wave, begin, end, int((end - begin).max()))
    speaker = speakers.voice_encoder.embed(voice_mel(trimmed))
    length = min(int(samples.max()), X_VECTOR_SECONDS * 16000)
    whole = repeat_rows(wave, torch.zeros_like(samples), samples.clamp_max(length), length)
    return speakers.x_vector(fbank(whole)), speaker


def equal_error_rate(same: Tensor, different: Tensor) -> float:
    """The rate at which false rejections equal false acceptances. same, different: 1-D scores"""
    scores = torch.cat([same, different])
    order = scores.argsort()
    is_same = (order < len(same)).double()
    rejected = is_same.cumsum(0) / len(same)
    accepted = 1 - (1 - is_same).cumsum(0) / len(different)
    return (rejected + accepted)[(rejected - accepted).abs().argmin()].item() / 2


class Stage(EncoderStage):
    name, minutes, sizes, batch_seconds = STAGE, 5.0, SIZES, 800.0

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        self.corpus = Corpus(options.corpus, options.device)
        self.unseen, self.valid = self.corpus.part("unseen"), self.corpus.part("valid")
        self.size = SIZES[options.size]
        self.speakers = Speakers(self.size)
        if options.resume:
            self.speakers.load_tensors(load_stage(options.resume)[0])
        self.speakers.to(options.device)
        classes = self.corpus.perturbed_voices
        self.heads = nn.ModuleDict(
            {
                "voice_encoder": AngularMargin(SPEAKER_SIZE, classes),
                "x_vector": AngularMargin(X_VECTOR, classes),
            }
        ).to(options.device)
        networks = (self.speakers.voice_encoder, self.speakers.x_vector)
        # Clipped separately, so that neither gradient shrinks the other.
        self.groups = [list(network.parameters()) for network in networks]
        parameters = [*self.speakers.parameters(), *self.heads.parameters()]
        self.optimizer = guarded_adamw(parameters, self.device, (0.9, 0.999), 0.05)
        self.batches = self.augmented(options.seed)
        self._calibrated_at = -1
        log(
            f"{STAGE}: {' and '.join(str(parameter_count(each)) for each in networks)} parameters, "
            f"{self.corpus.hours:.1f} hours, {classes} classes"
        )

    def augmented(self, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Endless batches: audio at 16 kHz, [B, N], and the class of each row, [B]."""
        generator = torch.Generator(self.corpus.device).manual_seed(seed)
        rates = torch.Generator().manual_seed(seed)
        for batch in self.corpus.batches(self.options.batch_seconds, seed, crop=WINDOW):
            perturbed = self.corpus.perturb_speed(batch, rates)
            begin = torch.zeros_like(perturbed.samples)
            wave = repeat_rows(perturbed.wave, begin, perturbed.samples, int(CROP * RATE))
            yield add_reverb_and_noise(resample_16k(wave), generator), perturbed.voice

    def losses(self, wave: Tensor, label: Tensor, margin: float) -> Losses:
        mel = voice_mel(wave)
        first = int(torch.randint(mel.shape[1] - PART_FRAMES, ()))
        speaker = self.speakers.voice_encoder(mel[:, first : first + PART_FRAMES])
        x_vector = self.speakers.x_vector(fbank(wave))
        return {
            "voice_encoder": self.heads["voice_encoder"](speaker, label, margin),
            "x_vector": self.heads["x_vector"](x_vector, label, margin),
        }

    def step(self, schedule: Schedule) -> Losses:
        self.speakers.train()
        with self.autocast():
            margin = MARGIN * min(1.0, schedule.progress / MARGIN_RAMP)
            losses = self.losses(*next(self.batches), margin)
        rate = schedule.learning_rate(PEAK_RATE)
        self.optimizer.step(sum(losses.values()), rate, *self.groups)
        return losses

    @torch.no_grad()
    def calibrate(self) -> None:
        """Recomputes the batch norm statistics in float32 with the current weights."""
        norms = [
            module
            for module in self.speakers.modules()
            if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d)
        ]
        momentum = norms[0].momentum
        for norm in norms:
            norm.reset_running_stats()
            norm.momentum = None  # a plain mean over all batches
        self.speakers.train()
        batches = self.augmented(self.options.seed + 1)
        for _ in range(min(CALIBRATION_STEPS, self.options.steps or CALIBRATION_STEPS)):
            self.speakers.x_vector(fbank(next(batches)[0]))
        for norm in norms:
            norm.momentum = momentum

    def validate(self) -> dict[str, float]:
        """Equal error rates of verifying the held-out voices against each other and all others."""
        self.speakers.eval()
        voices, vectors = [], []
        for corpus in (self.unseen, self.valid):
            for batch in sorted_batches(corpus, self.options.batch_seconds):
                voices.append(batch.voice)
                vectors.append(embed(self.speakers, batch.wave, batch.samples))
        voice = torch.cat(voices)
        unseen = torch.tensor([len(self.unseen.members)], device=voice.device)
        is_unseen = torch.arange(len(voice), device=voice.device) < unseen
        equal = voice[:, None] == voice
        pairs = torch.ones_like(equal).triu(1) & is_unseen[:, None]
        rates = {}
        for name, rows in zip(
            ("x_vector", "voice_encoder"), zip(*vectors, strict=True), strict=True
        ):
            unit = functional.normalize(torch.cat(rows))
            scores = unit @ unit.T
            rates[f"{name}_eer"] = equal_error_rate(scores[pairs & equal], scores[pairs & ~equal])
        return rates

    def save(self, schedule: Schedule) -> None:
        """In float16, as it is shipped."""
        if self._calibrated_at != schedule.step:
            self.calibrate()
            self._calibrated_at = schedule.step
        facts = {
            **dataclasses.asdict(self.size),
            "parameters": parameter_count(self.speakers),
            "steps": schedule.step,
            "history": self.history,
        }
        save_stage(self.options.out, STAGE, self.speakers.tensors(), facts, torch.float16)


def load_speakers(path: str | Path, device: str = "cpu") -> Speakers:
    """Loads the weights that the stage saved."""
    tensors, facts = load_stage(path)
    size = SpeakersSize(
        VoiceEncoderSize(**facts["voice_encoder"]), XVectorSize(**facts["x_vector"])
    )
    speakers = Speakers(size)
    speakers.load_tensors(tensors)
    return speakers.to(device).eval()


def write_embeddings(options: argparse.Namespace) -> None:
    """computes the vectors of all rows of a corpus"""
    corpus = Corpus(options.corpus, options.device, "all")
    speakers = load_speakers(options.weights, options.device)
    x_vector = np.zeros((len(corpus.rows), X_VECTOR), np.float16)
    speaker = np.zeros((len(corpus.rows), SPEAKER_SIZE), np.float16)
    for batch in sorted_batches(corpus, options.batch_seconds):
        rows = batch.row.cpu().numpy()
        found = embed(speakers, batch.wave, batch.samples)
        x_vector[rows], speaker[rows] = (x.half().cpu().numpy() for x in found)
    failed = ~(np.isfinite(x_vector).all(1) & np.isfinite(speaker).all(1))
    if failed.mean() > MAX_FAILED_SHARE:
        raise FloatingPointError(f"the vectors of {failed.sum()} rows are not finite")
    x_vector[failed], speaker[failed] = 0, 0
    write_npz(options.out, x_vector=x_vector, speaker=speaker)
    log(f"{len(corpus.rows)} rows in {options.out}, {failed.sum()} without vectors")


def main(arguments: list[str]) -> None:
    run_encoder_stage(Stage, "embed", write_embeddings, arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
