"""The `nightingale` command."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from .._core import Error
from .options import Arguments, one_line, remark

COMMANDS = ("speaking", "voices", "models", "serve", "batch", "bench", "doctor", "validate")


def main(argv: list[str] | None = None) -> int:
    """Runs the command line; errors are one line on standard error and a non-zero exit."""
    return run_command(_parser().parse_args(argv, Arguments()))


def run_command(args: argparse.Namespace) -> int:
    """Calls `args.run(args)`; the exit status."""
    logging.basicConfig(format="nightingale: %(message)s", level=logging.WARNING)
    try:
        with _ended_by_sigterm():
            status = args.run(args)
            if sys.stdout is not None:
                sys.stdout.flush()
        return status or 0
    except BrokenPipeError:
        _drop_output()
        return 128 + signal.SIGPIPE
    except KeyboardInterrupt:
        remark("nightingale: stopped")
        return 128 + signal.SIGINT
    except (Error, ValueError, OSError) as error:
        _drop_output()
        remark(f"nightingale: {one_line(error)}")
    except Exception as error:
        remark(f"nightingale: {_unexpected(error)}")
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="nightingale", description="Text-to-speech on your own machine."
    )
    parser.add_argument("--version", action=_Version, help="print the version and exit")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name in COMMANDS:
        import_module(f".{name}", __name__).add_commands(commands)
    return parser


class _Version(argparse.Action):
    """argparse's own would look the version up for every command."""

    def __init__(self, option_strings: list[str], dest: str, **settings: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, **settings)

    def __call__(self, parser: argparse.ArgumentParser, *rest: Any) -> None:
        from importlib.metadata import version

        print(f"nightingale {version('nightingale-tts')}")
        parser.exit()


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """A request to end unwinds, as Ctrl-C does, so that no half-written file is left."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _drop_output() -> None:
    """What could not be written must not be tried again, and complained of, when Python ends."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except AttributeError:  # there is no standard output
        pass


def _unexpected(error: Exception) -> str:
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{os.path.basename(place.filename)}, line {place.lineno}"
    return f"unexpected {type(error).__name__} ({where}): {one_line(error)}"
