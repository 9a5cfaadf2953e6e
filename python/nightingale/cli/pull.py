"""`pull`: a model from the hub, for later use."""

from __future__ import annotations

import argparse
import json
from typing import Any

from .options import add_json, on_terminal, remark


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
    add_json(pull)
    pull.set_defaults(run=_pull)


def _pull(args: argparse.Namespace) -> None:
    from ..checkpoint import find_checkpoint
    from ..hub import download, is_hub_id, resolve
    from ..quantization import convert_torch_files

    if args.convert:
        folder = resolve(args.id, progress=on_terminal())
    elif is_hub_id(args.id):
        folder = download(args.id, progress=on_terminal())
    else:
        raise ValueError(f"{args.id!r} is not a hub id (owner/name)")
    checkpoint = find_checkpoint(folder)
    if args.convert:
        for path in convert_torch_files(checkpoint):
            remark(f"wrote {path}")
    if not args.json:
        print(folder)
        return
    files = {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
    described = {"model": args.id, "family": checkpoint.family.name, "folder": str(folder)}
    print(json.dumps({**described, "files": files, "bytes": sum(files.values())}))
