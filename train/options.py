"""Options that the stages of training share."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

import torch


def add_training(parser: argparse.ArgumentParser, minutes: float, sizes: Iterable[str]) -> None:
    """What is trained on, where to, for how long and how large."""
    parser.add_argument("corpus", type=Path)
    parser.add_argument("out", type=Path, help="a folder")
    parser.add_argument("--minutes", type=float, default=minutes, help="of training")
    parser.add_argument("--steps", type=int, help="at most")
    parser.add_argument("--size", choices=sizes, default="small", help="of a new network")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--resume", type=Path, help="weights of this stage to go on from")
    add_device(parser)


def add_device(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
