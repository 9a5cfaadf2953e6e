"""Command-line options that several commands of `train` share."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from pathlib import Path

from .schedule import Schedule


def command_parser(command: str, doc: str | None, *paths: str) -> argparse.ArgumentParser:
    """The parser of `python -m train.COMMAND`: the module's docstring is its description, `paths`
    are its positional arguments."""
    parser = argparse.ArgumentParser(
        prog=f"python -m train.{command}",
        description=doc,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_paths(parser, *paths)
    return parser


def add_paths(parser: argparse.ArgumentParser, *names: str) -> None:
    for name in names:
        parser.add_argument(name, type=Path)


def parse_commands(
    parser: argparse.ArgumentParser, commands: Iterable[str], arguments: list[str]
) -> argparse.Namespace:
    """Parses the arguments of a parser with subcommands, of which `train` may be left out."""
    if arguments and arguments[0] not in (*commands, "-h", "--help"):
        arguments = ["train", *arguments]
    return parser.parse_args(arguments)


def add_training(parser: argparse.ArgumentParser, minutes: float, sizes: Iterable[str]) -> None:
    """The data, the output folder, the time limit and the network size of a training run."""
    add_paths(parser, "corpus", "out")
    add_time(parser, minutes)
    parser.add_argument("--size", choices=sizes, default="small", help="size of a new network")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--resume", type=Path, help="weights of this stage to continue from")
    add_bfloat16(parser)
    add_device(parser)


def add_time(parser: argparse.ArgumentParser, minutes: float) -> None:
    """The limits that `training_schedule` reads."""
    parser.add_argument("--minutes", type=float, default=minutes, help="maximum wall-clock time")
    parser.add_argument("--deadline", type=float, help="Unix time to end at; replaces --minutes")
    parser.add_argument("--steps", type=int, help="maximum number of training steps")


def add_device(parser: argparse.ArgumentParser) -> None:
    import torch

    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")


def add_bfloat16(parser: argparse.ArgumentParser) -> None:
    """What `TrainingStage.autocast` reads."""
    parser.add_argument(
        "--bfloat16", action="store_true", help="as on a GPU; pays on a CPU that has AMX"
    )


def add_batch_seconds(parser: argparse.ArgumentParser, seconds: float) -> None:
    parser.add_argument(
        "--batch-seconds", type=float, default=seconds, help="seconds of audio in a batch"
    )


def add_t3_batches(parser: argparse.ArgumentParser, positions: int, rate: float) -> None:
    """Options of the stages that train a T3."""
    parser.add_argument(
        "--batch-positions", type=int, default=positions, help="positions in a batch"
    )
    parser.add_argument("--learning-rate", type=float, default=rate)
    parser.add_argument("--compile", action="store_true", help="use torch.compile")


def training_schedule(options: argparse.Namespace) -> Schedule:
    """The schedule of a run that starts now and ends early on SIGTERM."""
    minutes = options.minutes
    if options.deadline is not None:
        minutes = max(options.deadline - time.time(), 1.0) / 60
    return Schedule(minutes, options.steps).stop_on_sigterm()
