"""`quantize`: quantizes a model to 8 or 4 bits, ahead of loading."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..options import BITS
from .options import add_json, on_terminal, remark


def add_commands(commands: Any) -> None:
    quantize = commands.add_parser(
        "quantize", help="store a model in 8 or 4 bits and print where it is"
    )
    quantize.add_argument("model", metavar="MODEL", help="a checkpoint's folder or a hub id")
    quantize.add_argument("--bits", type=int, choices=BITS, default=8, help="of T3 (default: 8)")
    quantize.add_argument(
        "-o", "--output", type=Path, metavar="FOLDER",
        help="make a checkpoint of its own there (default: a copy of T3 in the cache, which "
        "--bits and load(bits=) then use)",
    )  # fmt: skip
    quantize.add_argument(
        "--s3gen", action="store_true", help="with -o: S3Gen and the encoders in 8 bits too"
    )
    quantize.add_argument(
        "--tables", action="store_true",
        help="with -o: embeddings and whatever else can be in 8 bits too, for the smallest files",
    )  # fmt: skip
    quantize.add_argument("--force", action="store_true", help="replace files that are there")
    quantize.add_argument("--offline", action="store_true", help="use only what was downloaded")
    add_json(quantize)
    quantize.set_defaults(run=_quantize)


def _quantize(args: argparse.Namespace) -> None:
    from ..checkpoint import find_checkpoint
    from ..hub import resolve
    from ..quantization import write_folder
    from ..quantized_cache import cached_path, write_cached

    for option in ("s3gen", "tables"):
        if getattr(args, option) and args.output is None:
            raise ValueError(f"--{option} needs -o FOLDER: the cache holds T3 as it is loaded")
    checkpoint = find_checkpoint(resolve(args.model, args.offline, on_terminal()))
    if args.output is not None:
        with _progress() as progress:
            write_folder(
                checkpoint,
                args.output,
                args.bits,
                s3gen=args.s3gen,
                tables=args.tables,
                force=args.force,
                progress=progress,
            )
        files = [path for path in sorted(args.output.rglob("*")) if path.is_file()]
        _report(args, args.output, sum(path.stat().st_size for path in files))
        return
    cached = cached_path(checkpoint.t3, args.bits)
    if cached.exists() and not args.force:
        raise ValueError(f"{cached} exists; --force makes it again")
    with _progress() as progress:
        cached = write_cached(checkpoint.t3, args.bits, progress)
    _report(args, cached, cached.stat().st_size)


@contextmanager
def _progress() -> Iterator[Any]:
    from tqdm import tqdm

    with tqdm(unit="", unit_scale=True, disable=not on_terminal(), leave=False) as bar:

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield progress


def _report(args: argparse.Namespace, path: Path, size: int) -> None:
    if args.json:
        print(json.dumps({"path": str(path), "bits": args.bits, "bytes": size}))
        return
    print(path)
    remark(f"{size / 1e6:.0f} MB in {args.bits} bits")
