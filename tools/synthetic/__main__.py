"""Writes a checkpoint with synthetic weights.

python -m tools.synthetic FOLDER [--size full] [--model english] [--seed 1] [--dtype float16]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tqdm import tqdm

from nightingale.cli import run_command
from nightingale.options import DTYPES

from .checkpoint import MODELS, write_checkpoint
from .t3 import T3_SIZES


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tools.synthetic", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", choices=T3_SIZES, default="small")
    parser.add_argument("--model", choices=MODELS, default="multilingual")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dtype", choices=DTYPES, default="float32")
    parser.set_defaults(run=_write)
    return run_command(parser.parse_args(argv))


def _write(args: argparse.Namespace) -> None:
    with tqdm(unit=" weights", unit_scale=True, disable=None, leave=False) as bar:

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        write_checkpoint(
            args.folder, args.size, args.model, args.seed, args.dtype, progress=progress
        )
    line = f"{args.folder}: a {args.size} {args.model} checkpoint; its audio is noise"
    print(line, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
