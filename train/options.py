"""Options that the stages of training share."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from pathlib import Path

import torch

from .clock import Clock

# cuDNN's attention makes a plan for every new shape, and nearly every batch has one.
torch.backends.cuda.enable_cudnn_sdp(False)


def add_training(parser: argparse.ArgumentParser, minutes: float, sizes: Iterable[str]) -> None:
    """What is trained on, where to, for how long and how large."""
    parser.add_argument("corpus", type=Path)
    parser.add_argument("out", type=Path, help="a folder")
    add_time(parser, minutes)
    parser.add_argument("--size", choices=sizes, default="small", help="of a new network")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--resume", type=Path, help="weights of this stage to go on from")
    add_device(parser)


def add_time(parser: argparse.ArgumentParser, minutes: float) -> None:
    """How long `training_clock` runs."""
    parser.add_argument("--minutes", type=float, default=minutes, help="at most")
    parser.add_argument("--until", type=float, help="when to end instead, in seconds since 1970")
    parser.add_argument("--steps", type=int, help="at most")


def add_device(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")


def training_clock(options: argparse.Namespace) -> Clock:
    """Of a run that begins now and heeds termination."""
    minutes = options.minutes
    if options.until is not None:
        minutes = max(options.until - time.time(), 1.0) / 60
    return Clock(minutes, options.steps).heed_termination()
