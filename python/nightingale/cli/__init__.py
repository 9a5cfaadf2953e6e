"""The `nightingale` command."""

from __future__ import annotations

import argparse
import atexit
import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from .._core import Error
from .options import Arguments, in_flags, one_line, remark

COMMANDS = (
    "speaking",
    "convert",
    "voices",
    "completion",
    "models",
    "serve",
    "mcp",
    "batch",
    "bench",
    "doctor",
    "validate",
)


def main(argv: list[str] | None = None) -> int:
    """Runs the command line; errors are one line on standard error and a non-zero exit."""
    return run_command(_parser().parse_args(argv, Arguments()))


def run_command(args: argparse.Namespace) -> int:
    """Calls `args.run(args)`; the exit status."""
    logging.basicConfig(format="nightingale: %(message)s", level=logging.WARNING)
    logging.getLogger("nightingale.warm_up").setLevel(logging.INFO)  # why it takes long, once
    try:
        with _ended_by_signals():
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
    except MemoryError:
        remark("nightingale: out of memory")
    except (Error, ValueError, OSError) as error:
        _drop_output()
        remark(f"nightingale: {in_flags(one_line(error))}")
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


class _End:
    """Handles SIGINT and SIGTERM: the first unwinds, so that no half-written file is left. One that
    follows soon is the same wish, and must not cut that short; later ones end the process."""

    SOON = 1.0  # seconds

    def __init__(self) -> None:
        self.asked: float | None = None

    def __call__(self, number: int, _: object) -> None:
        now = time.monotonic()
        if self.asked is None:
            self.asked = now
            raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)
        if now - self.asked > self.SOON:
            os._exit(128 + number)


def _is_ignored(number: int) -> bool:
    """As a shell's background job ignores Ctrl-C."""
    return signal.getsignal(number) == signal.SIG_IGN


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    end = _End()
    heeded = [each for each in (signal.SIGINT, signal.SIGTERM) if not _is_ignored(each)]
    before = {each: signal.signal(each, end) for each in heeded}
    try:
        yield
    finally:
        for each, handler in before.items():
            if end.asked is None:
                signal.signal(each, handler)
            else:  # the process is ending; the last it does must not be cut short either
                atexit.register(signal.signal, each, signal.SIG_IGN)


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
