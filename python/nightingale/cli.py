"""The `nightingale` command."""

from __future__ import annotations

import argparse
import json
import logging
import sys
from pathlib import Path

from ._core import Error


def main(argv: list[str] | None = None) -> int:
    """Runs the command line; errors are one line on standard error and a non-zero exit."""
    args = _parser().parse_args(argv)
    logging.basicConfig(format="nightingale: %(message)s", level=logging.WARNING)
    try:
        args.run(args)
    except (Error, ValueError, OSError) as error:
        print(f"nightingale: {_one_line(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("nightingale: stopped", file=sys.stderr)
        return 130
    return 0


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="nightingale", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

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
    synthetic.add_argument("--dtype", choices=("float32", "float16", "bfloat16"), default="float32")
    synthetic.set_defaults(run=_synthetic)

    tokens = commands.add_parser("tokens", help="print the speech tokens of a text")
    tokens.add_argument("text", help="the text, or - to read it from standard input")
    tokens.add_argument("--model", required=True, help="a checkpoint's folder or a hub id")
    tokens.add_argument("--language", default="en")
    tokens.add_argument("--voice", help="a voice file or a voice's name")
    tokens.add_argument("--seed", type=int, default=0)
    tokens.add_argument("--temperature", type=float, default=0.8)
    tokens.add_argument("--max-tokens", type=int, default=1000)
    tokens.add_argument("--dtype", choices=("float32", "float16", "bfloat16"))
    tokens.add_argument("--device", choices=("auto", "cpu", "gpu"), default="auto")
    tokens.add_argument("--threads", type=int)
    tokens.add_argument("--offline", action="store_true")
    tokens.add_argument("--json", action="store_true", help="one JSON list instead of a line")
    tokens.set_defaults(run=_tokens)
    return parser


def _synthetic(args: argparse.Namespace) -> None:
    from tqdm import tqdm

    from .synthetic import write_checkpoint

    with tqdm(unit=" weights", unit_scale=True, disable=None, leave=False) as bar:

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        write_checkpoint(
            args.folder, args.size, args.model, args.seed, args.dtype, progress=progress
        )
    print(f"{args.folder}: a {args.size} {args.model} checkpoint; it speaks noise", file=sys.stderr)


def _tokens(args: argparse.Namespace) -> None:
    from . import load

    text = sys.stdin.read() if args.text == "-" else args.text
    tts = load(
        args.model,
        dtype=args.dtype,
        device=args.device,
        threads=args.threads,
        offline=args.offline,
    )
    stream = tts.iter_speech_tokens(
        text,
        voice=args.voice,
        language=args.language,
        seed=args.seed,
        temperature=args.temperature,
        max_tokens=args.max_tokens,
    )
    if args.json:
        print(json.dumps(list(stream)))
        return
    for token in stream:
        print(token, end=" ", flush=True)
    print()
