"""Stage 3: the flow, from speech tokens, an x-vector and a prompt to mel frames.

    python -m train.flow CORPUS OUT [--minutes 11]
    python -m train.flow CORPUS OUT --meanflow OUT/flow.safetensors [--minutes 8]
    python -m train.flow CORPUS OUT --distill-share 0.4 [--minutes 19]

The first command trains by conditional flow matching and writes OUT/flow, which is solved in
several guided steps. The second distills it to two steps without guidance (train/meanflow.py) and
writes OUT/meanflow. The third does both, prepares the data once and gives the second the stated
share of the time. With --phoneme-classifier FILE (train/phoneme_classifier.py) the distillation
also has a phoneme loss, and with --adversarial-share a discriminator (train/mel_adversary.py).
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .data import Corpus
from .ema import MovingAverage
from .flow_examples import FlowBatch, Speech, batches, load_speech, truncate
from .flow_validation import Validation
from .masking import masked_mean
from .meanflow import Distillation
from .mel_adversary import MelAdversary
from .nan_guard import guarded_adamw
from .networks.flow import FLOW_SIZES, Flow, FlowSize, cosine_times
from .options import add_batch_seconds, add_training, command_parser
from .phoneme_classifier import load_phoneme_classifier
from .schedule import Schedule
from .state import load_stage, save_stage
from .training import Losses, TrainingStage, check_finite, log, parameter_count

CONSISTENCY_WEIGHT = 0.5  # of the loss between the encodings of a whole row and of its beginning
UNCONDITIONAL_SHARE = 0.2  # of the examples, trained without conditioning for guidance
PEAK_RATE = 1e-3
DISTILLATION_RATE = 4e-4
EMA_DECAY = 0.999
PHONEME_LOSS_WEIGHT = 0.5  # at which both losses have about equal gradients
GUIDED_STEPS = (4, 6, 10)  # of the solutions in a report
MEANFLOW_STEPS = (1, 2, 4)


class FlowMatching:
    """The loss of a plain flow: the velocity on the straight line from noise to mel."""

    def __init__(self, flow: Flow, seed: int, device: str) -> None:
        self.flow = flow
        self.generator = torch.Generator(device).manual_seed(seed)

    def parameters(self) -> list[nn.Parameter]:
        return list(self.flow.parameters())

    def losses(self, batch: FlowBatch, progress: float) -> Losses:
        """By name; the objective is their sum."""
        mean = self.flow.encode(batch.tokens, batch.counts)
        conditioning = self.flow.conditioning(mean, batch.x_vector, batch.prompt_mel)
        conditioned = self._uniform(len(mean)) >= UNCONDITIONAL_SHARE
        noise = torch.randn(batch.mel.shape, device=mean.device, generator=self.generator)
        t = cosine_times(self._stratified_times(len(mean)))
        x = torch.lerp(noise, batch.mel, t[:, None, None])
        conditioning = conditioning * conditioned[:, None, None]
        velocity = self.flow.velocity(x, conditioning, batch.frame_mask, t)
        # Pulls the encoder towards the mel at first; at the end only the estimator trains it.
        difference = (mean.float() - batch.mel).abs()
        square = (velocity - (batch.mel - noise)).square()
        return {
            "flow": masked_mean(square, batch.frame_mask),
            "encoder": (1 - progress) * masked_mean(difference, batch.frame_mask),
            "consistency": CONSISTENCY_WEIGHT * self._inconsistency(batch, mean.detach()),
        }

    def _inconsistency(self, batch: FlowBatch, mean: Tensor) -> Tensor:
        """How far `mean`, the encoding of whole rows, is from the encoding of their beginnings."""
        part = truncate(batch, self._uniform(len(mean)))
        early = self.flow.encode(part.tokens, part.counts)
        return masked_mean((early.float() - mean.float()).abs(), part.frame_mask)

    def _uniform(self, count: int) -> Tensor:
        return torch.rand(count, device=self.generator.device, generator=self.generator)

    def _stratified_times(self, count: int) -> Tensor:
        """[count] in 0..1, one in each of `count` equal intervals: lower variance than
        independent draws."""
        device = self.generator.device
        part = torch.randperm(count, device=device, generator=self.generator)
        return (part + self._uniform(count)) / count


class Stage(TrainingStage):
    """A flow or, with `options.meanflow`, its distillation."""

    # Weights cast where no gradient is needed would have none where it is.
    autocast_cache = False

    def __init__(self, options: argparse.Namespace, speech: dict[str, Speech]) -> None:
        """speech: by part of the corpus"""
        super().__init__(options)
        self.name = "meanflow" if options.meanflow else "flow"
        self.speech = speech["train"]
        self.validations = {
            part: Validation(speech[part], options.device)
            for part in ("valid", "unseen")
            if part in speech
        }
        self.valid = self.validations["valid"]
        if options.phoneme_classifier:
            classifier = load_phoneme_classifier(options.phoneme_classifier).to(options.device)
            for validation in self.validations.values():
                validation.classifier = classifier
        self.flow = self._flow().to(options.device)
        self.ema = MovingAverage(self.flow, EMA_DECAY)

    def _flow(self) -> Flow:
        """A new flow, or one loaded from a file."""
        options = self.options
        if file := options.resume or options.meanflow:
            return load_flow(file, meanflow=bool(options.meanflow))
        flow = Flow(FLOW_SIZES[options.size])
        flow.init_from_mean(self.speech.mean_mel())
        return flow

    def _objective(self) -> FlowMatching | Distillation:
        options = self.options
        if not options.meanflow:
            return FlowMatching(self.flow, options.seed, options.device)
        teacher = load_flow(options.meanflow).to(options.device)
        self.valid.set_teacher(teacher)
        adversary = None
        if options.adversarial_share:
            adversary = MelAdversary(options.adversarial_share, options.device)
        given = (self.flow, teacher, options.seed, options.device)
        return Distillation(*given, self.valid.classifier, options.phoneme_weight, adversary)

    def train(self) -> bool:
        options = self.options
        log(
            f"{self.name}: {parameter_count(self.flow)} parameters, {self.speech.hours:.1f} hours "
            f"of {len(self.speech.rows_of)} voices, including speed-perturbed ones"
        )
        self.objective = self._objective()
        self.parameters = self.objective.parameters()
        self.optimizer = guarded_adamw(self.parameters, self.device)
        self.batches = batches(self.speech, options.batch_seconds, options.seed)
        return super().train()

    def step(self, schedule: Schedule) -> Losses:
        with self.autocast():
            losses = self.objective.losses(next(self.batches), schedule.progress)
        peak = DISTILLATION_RATE if self.options.meanflow else PEAK_RATE
        rate = schedule.learning_rate(peak)
        self.optimizer.step(sum(losses.values()), rate, self.parameters)
        self.ema.update()
        return losses

    def validate(self) -> dict[str, dict[str, float]]:
        few, usual, many = MEANFLOW_STEPS if self.flow.meanflow else GUIDED_STEPS
        solutions = {"valid": (few, usual, many), "unseen": (usual,)}
        with self.autocast():
            return {
                part: validation.evaluate(self.ema.network, solutions[part])
                for part, validation in self.validations.items()
            }

    def figures(self, trained: dict[str, float], validated: dict[str, Any]) -> dict[str, Any]:
        return {"train": trained, **validated}

    def check(self, step: int, trained: dict[str, float], validated: dict[str, Any]) -> None:
        check_finite(step, trained)

    def save(self, schedule: Schedule) -> None:
        """The moving average in float16, as it is shipped."""
        facts = {
            "size": dataclasses.asdict(self.flow.size),
            "meanflow": self.flow.meanflow,
            "parameters": parameter_count(self.flow),
            "steps": schedule.step,
            "hours": self.speech.hours,
            "history": self.history,
        }
        tensors = self.ema.network.official_tensors()
        save_stage(self.options.out, self.name, tensors, facts, torch.float16)


def load_parts(options: argparse.Namespace) -> dict[str, Speech]:
    """The training and validation data, by part of the corpus. Held-out voices may be missing."""
    corpus, models = Corpus(options.corpus, options.device), options.models or options.out
    parts = {part: corpus.part(part) for part in ("train", "valid", "unseen")}
    return {
        part: load_speech(rows, models, part == "train", options.seed)
        for part, rows in parts.items()
        if len(rows.members) or part != "unseen"
    }


def run(options: argparse.Namespace) -> None:
    """Runs one stage or, with `distill_share`, both."""
    speech = load_parts(options)
    if options.distill_share is None:
        Stage(options, speech).train()
        return
    now, end = time.time(), options.deadline
    if end is None:
        end = now + 60 * options.minutes
    first = {"deadline": end - options.distill_share * (end - now)}
    second = {"deadline": end, "meanflow": options.out / "flow.safetensors", "resume": None}
    for changes in (first, second):
        if not Stage(argparse.Namespace(**(vars(options) | changes)), speech).train():
            return


def load_flow(path: str | Path, meanflow: bool = False) -> Flow:
    """Loads the weights that the stage saved; `meanflow` turns a plain flow into a meanflow."""
    tensors, facts = load_stage(path)
    flow = Flow(FlowSize(**facts["size"]), meanflow or facts["meanflow"])
    flow.load_official(tensors)
    return flow.eval()


def main(arguments: list[str]) -> None:
    parser = command_parser("flow", __doc__)
    add_training(parser, 11.0, FLOW_SIZES)
    parser.add_argument(
        "--models", type=Path, help="folder of the tokenizer and speaker encoders; default: OUT"
    )
    parser.add_argument("--meanflow", type=Path, help="a flow.safetensors to distill to two steps")
    parser.add_argument("--distill-share", type=float, help="share of the time for distillation")
    parser.add_argument("--phoneme-classifier", type=Path, help="weights of the phoneme classifier")
    parser.add_argument(
        "--phoneme-weight",
        type=float,
        default=PHONEME_LOSS_WEIGHT,
        help="weight of the phoneme loss in distillation",
    )
    parser.add_argument(
        "--adversarial-share",
        type=float,
        default=0.0,
        help="gradient of the adversarial loss in distillation, relative to the phoneme loss's",
    )
    add_batch_seconds(parser, 600.0)
    options = parser.parse_args(arguments)
    if options.adversarial_share and not (options.phoneme_classifier and options.phoneme_weight):
        parser.error("--adversarial-share needs the phoneme loss of --phoneme-classifier")
    run(options)


if __name__ == "__main__":
    main(sys.argv[1:])
