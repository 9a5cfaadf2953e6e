"""What the benchmarks beside the reference share: rounds in which both sides take turns."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

Results = dict[str, list[dict[str, Any]]]


def parser(description: str, precisions: tuple[str, ...]) -> argparse.ArgumentParser:
    arguments = argparse.ArgumentParser(description=description)
    arguments.add_argument("--reference", help="Python of the reference's environment")
    arguments.add_argument("--rounds", type=int, default=2)
    arguments.add_argument("--size", choices=("small", "full"), default="full")
    arguments.add_argument("--folder", help="a checkpoint to use instead of making one")
    arguments.add_argument("--json", help="also write the results here")
    arguments.add_argument("--measure", choices=precisions, help=argparse.SUPPRESS)
    return arguments


@contextmanager
def checkpoint(args: argparse.Namespace) -> Iterator[Path]:
    """The folder that was named, or a synthetic checkpoint made for the run."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(args.folder) if args.folder else Path(scratch, "checkpoint")
        if not folder.exists():
            from nightingale.synthetic import write_checkpoint

            write_checkpoint(folder, size=args.size)
        yield folder


def take_turns(
    module: str,
    precisions: tuple[str, ...],
    folder: Path,
    args: argparse.Namespace,
    options: dict[str, Any],
    reference: Callable[[], dict[str, Any]],
) -> Results:
    """Every round measures each precision, then the reference, each in a process of its own."""
    results: Results = {name: [] for name in (*precisions, "reference")}
    for _ in range(args.rounds):
        for precision in precisions:
            command = [
                sys.executable,
                "-m",
                module,
                "--measure",
                precision,
                "--folder",
                str(folder),
            ]
            for name, value in options.items():
                command += [f"--{name}", str(value)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            results[precision].append(json.loads(done.stdout))
        if args.reference:
            results["reference"].append(reference())
    if args.json:
        Path(args.json).write_text(json.dumps(results, indent=1))
    return results


def ratio(results: Results, name: str, key: str) -> float:
    """The reference's figure over ours, of measurements next to each other in time."""
    pairs = zip(results["reference"], results[name], strict=True)
    return median(theirs[key] / ours[key] for theirs, ours in pairs)


def run_reference(args: argparse.Namespace, job: dict[str, Any]) -> dict[str, Any]:
    """The outputs of one job of tests/parity/reference.py."""
    os.environ["NIGHTINGALE_REFERENCE_PYTHON"] = args.reference
    from tests.parity import live

    out = live.run_reference([{"name": "job", "threads": os.cpu_count(), **job}])
    return {name.removeprefix("job/"): value for name, value in out.items()}
