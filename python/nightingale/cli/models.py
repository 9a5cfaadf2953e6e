"""`pull` and `quantize`: models from the hub, and in 8 or 4 bits ahead of loading."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..option import options_of
from ..options import BITS, LoadOptions
from .options import Arguments, add_shared, on_terminal, progress_bar, remark


def add_commands(commands: Any) -> None:
    pull = commands.add_parser("pull", help="download a model and print its folder")
    pull.add_argument(
        "id", metavar="HUB_ID",
        help="such as ResembleAI/chatterbox; with --convert also the folder of a model",
    )  # fmt: skip
    pull.add_argument(
        "--convert", action="store_true",
        help="write .safetensors beside .pt files, for programs in C and C++",
    )  # fmt: skip
    pull.add_argument(
        "--list", action="store_true",
        help="print which models the repository holds, the default first, and download nothing",
    )  # fmt: skip
    _add_variant(pull)
    add_shared(pull, model=False)
    pull.set_defaults(run=_pull)

    quantize = commands.add_parser(
        "quantize", help="store a model in 8 or 4 bits and print where it is"
    )
    quantize.add_argument("model", metavar="MODEL", help="a checkpoint's folder or a hub id")
    quantize.add_argument("--bits", type=int, choices=BITS, default=8, help="of T3 (default: 8)")
    quantize.add_argument(
        "-o", "--output", type=Path, metavar="FOLDER",
        help="make a checkpoint of its own there (default: a copy of T3 in the cache, which "
        "--bits then uses)",
    )  # fmt: skip
    quantize.add_argument(
        "--s3gen", action="store_true", help="with -o: S3Gen and the encoders in 8 bits too"
    )
    quantize.add_argument(
        "--tables", action="store_true",
        help="with -o: embeddings and whatever else can be in 8 bits too, for the smallest files",
    )  # fmt: skip
    _add_variant(quantize)
    quantize.add_argument("--force", action="store_true", help="replace files that are there")
    quantize.add_argument("--offline", action="store_true", help="use only what was downloaded")
    add_shared(quantize, model=False)
    quantize.set_defaults(run=_quantize)


def _add_variant(parser: Any) -> None:
    option = next(each for each in options_of(LoadOptions) if each.name == "variant")
    parser.add_argument(option.flag, help=f"{option.help} (default: {option.unset})")


def _pull(args: Arguments) -> None:
    from ..checkpoint import find_checkpoint
    from ..hub import download, is_hub_id, resolve
    from ..quantization import convert_torch_files

    if not args.convert and not is_hub_id(args.id):
        raise ValueError(f"{args.id!r} is not a hub id (owner/name)")
    if args.list:
        _list(args)
        return
    fetch = resolve if args.convert else download
    folder = fetch(args.id, progress=on_terminal(), variant=args.variant)
    checkpoint = find_checkpoint(folder, args.variant)
    if args.convert:
        for path in convert_torch_files(checkpoint):
            remark(f"wrote {path}")
    if not args.json:
        print(folder)
        return
    files = {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
    described = {"model": args.id, "family": checkpoint.family.name, "folder": str(folder)}
    print(json.dumps({**described, "files": files, "bytes": sum(files.values())}))


def _list(args: Arguments) -> None:
    from ..hub import variants

    found = variants(args.id)
    if args.json:
        print(json.dumps({"model": args.id, "variants": found}))
        return
    for variant, name in found.items():
        print(f"{variant:<12} {name}")


def _quantize(args: Arguments) -> None:
    from ..quantization import write_folder
    from ..quantized_cache import cached_path, write_cached

    for option in ("s3gen", "tables"):
        if getattr(args, option) and args.output is None:
            raise ValueError(f"--{option} needs -o FOLDER: the cache holds T3 as it is loaded")
    checkpoint = args.find_checkpoint()
    if args.output is not None:
        chosen = {name: getattr(args, name) for name in ("s3gen", "tables", "force")}
        with _progress() as progress:
            write_folder(checkpoint, args.output, args.bits, progress=progress, **chosen)
        path = args.output
        size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    else:
        path = cached_path(checkpoint.t3, args.bits)
        if path.exists() and not args.force:
            raise ValueError(f"{path} exists; --force makes it again")
        with _progress() as progress:
            path = write_cached(checkpoint.t3, args.bits, progress)
        size = path.stat().st_size
    if args.json:
        print(json.dumps({"path": str(path), "bits": args.bits, "bytes": size}))
    else:
        print(path)
        remark(f"{size / 1e6:.0f} MB in {args.bits} bits")


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    with progress_bar(unit="", unit_scale=True) as bar:

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield progress
