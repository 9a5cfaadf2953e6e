"""`synthetic`: a checkpoint with made-up weights."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ..model_options import DTYPES
from .options import on_terminal, remark


def add_commands(commands: Any) -> None:
    synthetic = commands.add_parser(
        "synthetic", help="make a checkpoint with made-up weights, to try and to test with"
    )
    synthetic.add_argument("folder", type=Path)
    synthetic.add_argument("--size", choices=("small", "full"), default="small")
    synthetic.add_argument(
        "--model",
        choices=("multilingual", "multilingual-v3", "english"),
        default="multilingual",
    )
    synthetic.add_argument("--seed", type=int, default=0)
    synthetic.add_argument("--dtype", choices=DTYPES, default="float32")
    synthetic.set_defaults(run=_synthetic)


def _synthetic(args: argparse.Namespace) -> None:
    from tqdm import tqdm

    from ..synthetic import write_checkpoint

    with tqdm(unit=" weights", unit_scale=True, disable=not on_terminal(), leave=False) as bar:

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        write_checkpoint(
            args.folder, args.size, args.model, args.seed, args.dtype, progress=progress
        )
    remark(f"{args.folder}: a {args.size} {args.model} checkpoint; it speaks noise")
