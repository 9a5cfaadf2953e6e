"""`nightingale validate`: the quality checklist as one command."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def add_command(subparsers: Any) -> None:
    """Adds `validate` to the command line; what it runs is imported when it runs."""
    from ..cli.options import add_json, add_model_options

    command = subparsers.add_parser(
        "validate",
        help="check a model's sound: the same every time, whole in chunks, clean",
        description="Speaks with a model and checks what comes out; exits with 1 where a check "
        "fails. docs/validate.md says what each figure means.",
    )
    command.add_argument(
        "--quick", action="store_true", help="one text, one chunk size, one precision"
    )
    command.add_argument(
        "--runs",
        type=int,
        default=3,
        metavar="N",
        help="that must give the same audio (%(default)s)",
    )
    command.add_argument(
        "--baseline", type=Path, metavar="FILE", help="compare with this file, or make it"
    )
    command.add_argument("--update", action="store_true", help="write the baseline anew")
    command.add_argument(
        "--plot",
        type=Path,
        metavar="FILE",
        help="also draw waveform, mel and F0 (.png, .svg, .pdf)",
    )
    add_json(command)
    add_model_options(command)
    _add_speech(command)
    _add_listening(command)
    command.set_defaults(run=_run)


def _add_speech(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("speech")
    text = group.add_mutually_exclusive_group()
    text.add_argument(
        "--text", action="append", help="what to say; may be given several times (default: our own)"
    )
    text.add_argument("-f", "--file", metavar="FILE", help="a file in UTF-8 with one text a line")
    group.add_argument("--voice", help="a voice of the model or the voice folder, or a voice file")
    group.add_argument("--language", help="code of the language, such as fr (default: en)")
    group.add_argument(
        "--seed", type=int, help="of the readings, and of a page's order (default: 0)"
    )
    group.add_argument("--steps", type=int, help="of the flow (default: the model's)")
    group.add_argument(
        "--max-tokens", type=int, help="speech tokens of a sentence, 25 a second (default: 250)"
    )


def _add_listening(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("listening, instead of checking")
    group.add_argument(
        "--ab",
        nargs=2,
        metavar=("A", "B"),
        help="write a page for blind listening to two models (FOLDER[,setting=value]...), "
        "recordings or folders of recordings",
    )
    group.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="the page (default: listening.html)",
    )


def _run(args: argparse.Namespace) -> int:
    from .command import run

    return run(args)
