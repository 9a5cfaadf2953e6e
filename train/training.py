"""The training loop that all stages share."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from .options import (
    add_batch_seconds,
    add_device,
    add_paths,
    add_training,
    command_parser,
    parse_commands,
    training_schedule,
)
from .schedule import Schedule

# cuDNN's attention makes a plan for every new shape, and nearly every batch has a new one.
torch.backends.cuda.enable_cudnn_sdp(False)

Losses = dict[str, Tensor]
Encode = Callable[[argparse.Namespace], None]


class TrainingStage:
    """One training run. A stage implements `step`, `validate` and `save`."""

    report_seconds = 30.0
    save_seconds = 120.0
    report_first_step = True
    autocast_cache = True

    def __init__(self, options: argparse.Namespace) -> None:
        torch.manual_seed(options.seed)
        self.options = options
        self.device = torch.device(options.device)
        self.history: list[dict[str, Any]] = []

    def step(self, schedule: Schedule) -> Losses:
        """Takes one optimizer step and returns the losses by name."""
        raise NotImplementedError

    def validate(self) -> dict[str, Any]:
        """The validation figures by name."""
        raise NotImplementedError

    def save(self, schedule: Schedule) -> None:
        """Writes the weights and what is known of them."""
        raise NotImplementedError

    def autocast(self) -> torch.autocast:
        """bfloat16 on a GPU, and where the options ask for it."""
        kind, cache = self.device.type, self.autocast_cache
        rounds = kind == "cuda" or self.options.bfloat16
        return torch.autocast(kind, torch.bfloat16, rounds, cache_enabled=cache)

    def train(self) -> bool:
        """Trains until the schedule ends. Returns whether it ran to its end."""
        schedule = training_schedule(self.options)
        losses: Losses = {}
        while schedule.next_step():
            losses = self.step(schedule)
            first = self.report_first_step and schedule.step == 1
            if first or schedule.due("report", self.report_seconds):
                self.report(schedule, losses)
            if schedule.due("save", self.save_seconds):
                self.save(schedule)
        self.finish(schedule, losses)
        return not schedule.terminated

    def finish(self, schedule: Schedule, losses: Losses) -> None:
        self.save(schedule)  # first, because validation may be cut off
        self.report(schedule, losses)
        self.save(schedule)

    def report(self, schedule: Schedule, losses: Losses) -> None:
        """Validates, prints a line and adds the figures to the history."""
        trained = {name: loss.item() for name, loss in losses.items()}
        validated = self.validate()
        figures = self.figures(trained, validated)
        self.history.append({"step": schedule.step, "seconds": schedule.seconds, **figures})
        log(f"step {schedule.step} {schedule.seconds:.0f} s: {format_figures(figures)}")
        self.check(schedule.step, trained, validated)

    def figures(self, trained: dict[str, float], validated: dict[str, Any]) -> dict[str, Any]:
        """What the history keeps of a report."""
        return {**trained, **validated}

    def check(self, step: int, trained: dict[str, float], validated: dict[str, Any]) -> None:
        """Raises FloatingPointError if training has diverged."""


class EncoderStage(TrainingStage):
    """A stage that trains an encoder, which can then be applied to a corpus."""

    name: str
    minutes: float
    sizes: Mapping[str, Any]
    batch_seconds: float


def format_figures(figures: Mapping[str, Any]) -> str:
    words = []
    for name, value in figures.items():
        nested = isinstance(value, Mapping)
        words.append(f"| {name} {format_figures(value)}" if nested else f"{name} {value:.4g}")
    return " ".join(words)


def check_finite(step: int, figures: dict[str, float]) -> None:
    if not all(map(math.isfinite, figures.values())):
        raise FloatingPointError(f"not finite after {step} steps: {figures}")


def parameter_count(*networks: nn.Module) -> int:
    return sum(weight.numel() for network in networks for weight in network.parameters())


def log(line: str) -> None:
    print(line, flush=True)


def run_encoder_stage(
    stage: type[EncoderStage], command: str, encode: Encode, arguments: list[str]
) -> None:
    """The command line of an encoder stage; the subcommand `command` calls `encode` with corpus,
    weights and out."""
    parser = command_parser(stage.name, sys.modules[stage.__module__].__doc__)
    commands = parser.add_subparsers(required=True)
    train = commands.add_parser("train", help="the default command")
    add_training(train, stage.minutes, stage.sizes)
    train.set_defaults(run=lambda options: stage(options).train())
    encoding = commands.add_parser(command, help=encode.__doc__)
    add_paths(encoding, "corpus", "weights", "out")
    add_device(encoding)
    encoding.set_defaults(run=encode)
    for each in (train, encoding):
        add_batch_seconds(each, stage.batch_seconds)
    options = parse_commands(parser, commands.choices, arguments)
    # TF32 has 10 bits of mantissa: too few for quiet audio and for digits near a rounding edge.
    torch.backends.cudnn.allow_tf32 = False
    options.run(options)
