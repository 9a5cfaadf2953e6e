"""Stage 6: what tells speakers apart: the voice encoder for T3 and the x-vector for the flow.

python -m train.speakers CORPUS OUT [--minutes 5]
python -m train.speakers embed CORPUS OUT/speakers.safetensors OUT/speakers.npz

Both learn to name the speaker of a few seconds among all voices, each as it is and played faster
and slower, in other rooms and with noise.
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

from .augmentation import disturb
from .clock import Clock
from .data import RATE, Corpus
from .descent import Descent
from .features import fbank, resample_16k, samples_16k, voice_mel
from .networks.voice_encoder import (
    PART_FRAMES,
    SPEAKER_SIZE,
    VOICE_ENCODER_SIZES,
    VoiceEncoder,
    VoiceEncoderSize,
)
from .networks.x_vector import X_VECTOR, X_VECTOR_SIZES, XVector, XVectorSize
from .options import add_device, add_training, training_clock
from .passes import one_pass, write_arrays
from .state import load_stage, save_stage

STAGE = "speakers"
PREFIX = "speaker_encoder."

WINDOW = 3.2  # seconds that are drawn
HEARD = 2.6  # seconds of it that are heard, played at whatever rate
X_VECTOR_SECONDS = 10  # that the x-vector is made of

PEAK_RATE = 2e-3
SCALE = 30.0  # of the cosines
MARGIN = 0.2  # radians, once the margin has grown
MARGIN_GROWS = 0.3  # of the run
CALIBRATION_STEPS = 40
MOST_FAILED = 0.01  # of the rows, whose vectors are no numbers

TRIM_HOP = 512
TRIM_SPAN = 4  # hops
QUIETER = 0.01  # of the loudest power: 20 dB


class AngularMargin(nn.Module):
    """Softmax over the cosines to every class, the right one made harder by an angle."""

    def __init__(self, size: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(classes, size))

    def forward(self, x: Tensor, label: Tensor, margin: float) -> Tensor:
        """x: [B, size]; label: [B]; margin: in radians → loss"""
        with torch.autocast(x.device.type, enabled=False):
            cosine = functional.normalize(x.float()) @ functional.normalize(self.weight).T
        right = cosine.gather(1, label[:, None]).clamp(-1 + 1e-6, 1 - 1e-6)
        harder = torch.cos(torch.acos(right) + margin)
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
        """By official name: the voice encoder's have no prefix, CAMPPlus's the one of S3Gen."""
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
    """Each row from its begin to its end, again and again. wave: [B, N] → [B, length]"""
    at = torch.arange(length, device=wave.device) % (end - begin)[:, None]
    return wave.gather(1, begin[:, None] + at)


def loud_part(wave: Tensor, samples: Tensor) -> tuple[Tensor, Tensor]:
    """Where rows begin and end without what is 20 dB below their loudest, as the baker trims.

    wave: [B, N] at 16 kHz, zero past each row's end; samples: [B]
    """
    half = TRIM_SPAN // 2
    frames = wave.shape[1] // TRIM_HOP + 1
    padded = functional.pad(wave, (half * TRIM_HOP, (half + 1) * TRIM_HOP)).square()
    energy = padded.unfold(1, TRIM_HOP, TRIM_HOP).sum(-1)
    power = energy.unfold(1, TRIM_SPAN, 1).sum(-1)[:, :frames] / (TRIM_HOP * TRIM_SPAN)
    power = power.clamp_min(1e-10)
    loud = power > QUIETER * power.amax(1, keepdim=True)
    places = torch.arange(frames, device=wave.device)
    first = torch.where(loud, places, frames).amin(1)
    last = torch.where(loud, places, -1).amax(1)
    return first * TRIM_HOP, torch.minimum((last + 1) * TRIM_HOP, samples)


@torch.inference_mode()
def embed(speakers: Speakers, wave: Tensor, samples: Tensor) -> tuple[Tensor, Tensor]:
    """As the voice baker would; rows shorter than the longest are heard again.

    wave: [B, N] at 24 kHz; samples: [B] → x-vectors [B, 192], speakers [B, 256]
    """
    wave, samples = resample_16k(wave), samples_16k(samples)
    begin, end = loud_part(wave, samples)
    trimmed = repeat_rows(wave, begin, end, int((end - begin).max()))
    speaker = speakers.voice_encoder.embed(voice_mel(trimmed))
    length = min(int(samples.max()), X_VECTOR_SECONDS * 16000)
    whole = repeat_rows(wave, torch.zeros_like(samples), samples.clamp_max(length), length)
    return speakers.x_vector(fbank(whole)), speaker


def equal_error_rate(same: Tensor, different: Tensor) -> float:
    """Where as many of the same are refused as of different ones are taken. 1-D scores."""
    scores = torch.cat([same, different])
    order = scores.argsort()
    is_same = (order < len(same)).double()
    refused = is_same.cumsum(0) / len(same)
    taken = 1 - (1 - is_same).cumsum(0) / len(different)
    return (refused + taken)[(refused - taken).abs().argmin()].item() / 2


class Stage:
    """The networks, what they are trained on, and how far they are."""

    def __init__(self, options: argparse.Namespace) -> None:
        torch.manual_seed(options.seed)
        self.options = options
        self.corpus = Corpus(options.corpus, options.device)
        self.unseen, self.valid = self.corpus.part("unseen"), self.corpus.part("valid")
        self.size = SIZES[options.size]
        self.speakers = Speakers(self.size)
        if options.resume:
            self.speakers.load_tensors(load_stage(options.resume)[0])
        self.speakers.to(options.device)
        classes = self.corpus.varied_voices
        self.heads = nn.ModuleDict(
            {
                "voice_encoder": AngularMargin(SPEAKER_SIZE, classes),
                "x_vector": AngularMargin(X_VECTOR, classes),
            }
        ).to(options.device)
        self.history: list[dict[str, float]] = []

    def varied(self, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Endless batches: sound at 16 kHz, [B, N], and the class of each row, [B]."""
        generator = torch.Generator(self.corpus.device).manual_seed(seed)
        rates = torch.Generator().manual_seed(seed)
        for batch in self.corpus.batches(self.options.seconds, seed, crop=WINDOW):
            played = self.corpus.vary(batch, rates)
            nothing = torch.zeros_like(played.samples)
            sound = repeat_rows(played.wave, nothing, played.samples, int(HEARD * RATE))
            yield disturb(resample_16k(sound), generator), played.voice

    def losses(self, wave: Tensor, label: Tensor, margin: float) -> dict[str, Tensor]:
        mel = voice_mel(wave)
        first = int(torch.randint(mel.shape[1] - PART_FRAMES, ()))
        speaker = self.speakers.voice_encoder(mel[:, first : first + PART_FRAMES])
        x_vector = self.speakers.x_vector(fbank(wave))
        return {
            "voice_encoder": self.heads["voice_encoder"](speaker, label, margin),
            "x_vector": self.heads["x_vector"](x_vector, label, margin),
        }

    def train(self) -> None:
        options, device = self.options, torch.device(self.options.device)
        networks = (self.speakers.voice_encoder, self.speakers.x_vector)
        print(
            f"{STAGE}: {' and '.join(str(count(network)) for network in networks)} parameters, "
            f"{self.corpus.hours:.1f} hours, {self.corpus.varied_voices} classes",
            flush=True,
        )
        parameters = [*self.speakers.parameters(), *self.heads.parameters()]
        optimiser = torch.optim.AdamW(parameters, weight_decay=0.05, fused=device.type == "cuda")
        descent = Descent(optimiser, device)
        apart = [list(network.parameters()) for network in networks]
        batches = self.varied(options.seed)
        clock = training_clock(options)
        while clock.tick():
            self.speakers.train()
            with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                margin = MARGIN * min(1.0, clock.progress / MARGIN_GROWS)
                found = self.losses(*next(batches), margin)
            # Apart: neither network's gradient is to shrink the other's.
            descent.step(sum(found.values()), clock.learning_rate(PEAK_RATE), *apart)
            if clock.step == 1 or clock.due("report", 30):
                self.report(clock, found)
            if clock.due("save", 120):
                self.save(clock)
        self.save(clock)
        self.report(clock, found)
        self.write(clock)

    @torch.no_grad()
    def calibrate(self) -> None:
        """Takes the batch norms' statistics anew, in float32 and of the weights as they are."""
        norms = [
            module
            for module in self.speakers.modules()
            if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d)
        ]
        momentum = norms[0].momentum
        for norm in norms:
            norm.reset_running_stats()
            norm.momentum = None  # the mean over all that follow
        self.speakers.train()
        batches = self.varied(self.options.seed + 1)
        for _ in range(min(CALIBRATION_STEPS, self.options.steps or CALIBRATION_STEPS)):
            self.speakers.x_vector(fbank(next(batches)[0]))
        for norm in norms:
            norm.momentum = momentum

    def report(self, clock: Clock, found: dict[str, Tensor]) -> None:
        self.speakers.eval()
        rates = self.error_rates()
        trained = {name: loss.item() for name, loss in found.items()}
        self.history.append({"step": clock.step, "seconds": clock.seconds, **trained, **rates})
        print(
            f"step {clock.step} {clock.seconds:.0f} s |",
            *(f"{name} {value:.3f}" for name, value in trained.items()),
            "| unseen voices",
            *(f"{name} {value:.1%}" for name, value in rates.items()),
            flush=True,
        )

    def error_rates(self) -> dict[str, float]:
        """Equal error rates of telling two rows of an unseen voice from one of it and any other."""
        voices, vectors = [], []
        for corpus in (self.unseen, self.valid):
            for batch in one_pass(corpus, self.options.seconds):
                voices.append(batch.voice)
                vectors.append(embed(self.speakers, batch.wave, batch.samples))
        voice = torch.cat(voices)
        known = torch.tensor([len(self.unseen.members)], device=voice.device)
        of_unseen = torch.arange(len(voice), device=voice.device) < known
        equal = voice[:, None] == voice
        pairs = torch.ones_like(equal).triu(1) & of_unseen[:, None]
        rates = {}
        for name, rows in zip(
            ("x_vector", "voice_encoder"), zip(*vectors, strict=True), strict=True
        ):
            unit = functional.normalize(torch.cat(rows))
            scores = unit @ unit.T
            rates[f"{name}_eer"] = equal_error_rate(scores[pairs & equal], scores[pairs & ~equal])
        return rates

    def save(self, clock: Clock) -> None:
        self.calibrate()
        self.write(clock)

    def write(self, clock: Clock) -> None:
        """As float16, as it is shipped."""
        facts = {
            **dataclasses.asdict(self.size),
            "parameters": count(self.speakers),
            "steps": clock.step,
            "history": self.history,
        }
        save_stage(self.options.out, STAGE, self.speakers.tensors(), facts, torch.float16)


def count(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


def load_speakers(path: str | Path, device: str = "cpu") -> Speakers:
    """What the stage wrote."""
    tensors, facts = load_stage(path)
    size = SpeakersSize(
        VoiceEncoderSize(**facts["voice_encoder"]), XVectorSize(**facts["x_vector"])
    )
    speakers = Speakers(size)
    speakers.load_tensors(tensors)
    return speakers.to(device).eval()


def write_embeddings(options: argparse.Namespace) -> None:
    """Of every row of a corpus, in its order: x_vector [rows, 192], speaker [rows, 256] float16."""
    corpus = Corpus(options.corpus, options.device, "all")
    speakers = load_speakers(options.speakers, options.device)
    x_vector = np.zeros((len(corpus.rows), X_VECTOR), np.float16)
    speaker = np.zeros((len(corpus.rows), SPEAKER_SIZE), np.float16)
    for batch in one_pass(corpus, options.seconds):
        rows = batch.row.cpu().numpy()
        found = embed(speakers, batch.wave, batch.samples)
        x_vector[rows], speaker[rows] = (x.half().cpu().numpy() for x in found)
    failed = ~(np.isfinite(x_vector).all(1) & np.isfinite(speaker).all(1))
    if failed.mean() > MOST_FAILED:
        raise FloatingPointError(f"the vectors of {failed.sum()} rows are no numbers")
    x_vector[failed], speaker[failed] = 0, 0
    write_arrays(Path(options.out), x_vector=x_vector, speaker=speaker)
    print(f"{len(corpus.rows)} rows in {options.out}, {failed.sum()} without vectors", flush=True)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m train.speakers")
    commands = parser.add_subparsers(required=True)
    train = commands.add_parser("train", help="the command where none is named")
    add_training(train, 5.0, SIZES)
    train.set_defaults(run=lambda options: Stage(options).train())
    embedding = commands.add_parser("embed", help="computes the vectors of a corpus")
    embedding.add_argument("corpus")
    embedding.add_argument("speakers")
    embedding.add_argument("out", help="an .npz file")
    embedding.set_defaults(run=write_embeddings)
    add_device(embedding)
    for command in (train, embedding):
        command.add_argument("--seconds", type=float, default=800.0, help="of sound a batch")
    if arguments and arguments[0] not in (*commands.choices, "-h", "--help"):
        arguments = ["train", *arguments]
    options = parser.parse_args(arguments)
    torch.backends.cudnn.allow_tf32 = False  # ten bits are too few for what is heard
    options.run(options)


if __name__ == "__main__":
    main(sys.argv[1:])
