"""Shared by the benchmarks: arguments, alternating rounds, statistics, tables."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from tools.synthetic.checkpoint import MODELS

Results = dict[str, list[dict[str, Any]]]

DTYPES = ("float32", "float16", "bfloat16")
INTEGERS = "int"  # and how many bits


def make_parser(
    description: str, precisions: Sequence[str], on_gpu: Sequence[str] = ()
) -> argparse.ArgumentParser:
    """precisions: those to measure; on_gpu: those to measure there, if it can run there."""
    arguments = argparse.ArgumentParser(description=description)
    arguments.add_argument("--reference", help="Python of the reference's environment")
    arguments.add_argument("--rounds", type=int, help="default: 2 on a CPU, 1 on a GPU")
    arguments.add_argument("--size", choices=("small", "full"), default="full")
    arguments.add_argument("--member", choices=MODELS, default="multilingual", help="of the family")
    arguments.add_argument("--folder", help="a checkpoint; made there if there is none")
    arguments.add_argument("--json", help="also write the results here")
    arguments.add_argument("--measure", help=argparse.SUPPRESS)
    devices = ("cpu", "gpu") if on_gpu else ("cpu",)
    arguments.add_argument("--device", choices=devices, default="cpu")
    known = tuple(dict.fromkeys((*precisions, *on_gpu)))
    arguments.add_argument("--dtypes", nargs="+", choices=known, help="to measure, not all")
    arguments.set_defaults(usual={"cpu": precisions, "gpu": on_gpu}, bits=[])
    return arguments


def add_bits(arguments: argparse.ArgumentParser, model: str, choices: Sequence[int]) -> None:
    arguments.add_argument(
        "--bits", nargs="+", type=int, choices=choices, help=f"integer weights for {model} as well"
    )


def parse(arguments: argparse.ArgumentParser) -> argparse.Namespace:
    args = arguments.parse_args()
    args.precisions = [
        *(args.dtypes or args.usual[args.device]),
        *(f"{INTEGERS}{bits}" for bits in args.bits),
    ]
    if args.rounds is None:
        args.rounds = 1 if args.device == "gpu" else 2
    return args


@contextmanager
def checkpoint(args: argparse.Namespace) -> Iterator[Path]:
    """The folder that was named, or a synthetic checkpoint made for the run."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(args.folder or Path(scratch, "checkpoint")).resolve()
        if not folder.exists():
            from tools.synthetic import write_checkpoint

            write_checkpoint(folder, size=args.size, model=getattr(args, "member", "multilingual"))
        yield folder


def main(
    args: argparse.Namespace,
    measures: dict[str, Callable[[Path, argparse.Namespace], dict[str, Any]]],
    compare: Callable[[Path, argparse.Namespace], Results],
    reports: dict[str, Callable[[Results, argparse.Namespace, Path], None]],
) -> None:
    """A benchmark by device: the whole comparison, or the one measurement that it starts."""
    if args.measure:
        print(json.dumps(measures[args.device](Path(args.folder), args)))
        return
    with checkpoint(args) as folder:
        reports[args.device](compare(folder, args), args, folder)


def load(
    folder: Path, precision: str, device: str, draft: str | None = None, beside: str = "float16"
) -> Any:
    """The model at a precision: a type, or integers of so many bits beside another type."""
    import nightingale

    bits, dtype = None, precision
    if precision.startswith(INTEGERS):
        bits, dtype = int(precision.removeprefix(INTEGERS)), beside
    return nightingale.load(folder, dtype=dtype, bits=bits, draft=draft, device=device)


def run_rounds(
    module: str,
    folder: Path,
    args: argparse.Namespace,
    options: dict[str, Any],
    reference: Callable[[], dict[str, Any]],
) -> Results:
    """Every round measures each precision and then the reference, each in its own process.
    options: of the measuring process; None leaves one out, True gives it without a value."""
    results: Results = {name: [] for name in (*args.precisions, "reference")}
    command = [sys.executable, "-m", module, "--folder", str(folder), "--device", args.device]
    for name, value in options.items():
        if value is None or value is False:
            continue
        values = value if isinstance(value, (list, tuple)) else [value] * (value is not True)
        command += [f"--{name}", *map(str, values)]
    for _ in range(args.rounds):
        for precision in args.precisions:
            done = subprocess.run(
                [*command, "--measure", precision], stdout=subprocess.PIPE, text=True, check=True
            )
            results[precision].append(json.loads(done.stdout))
        if args.reference:
            results["reference"].append(reference())
    write_json(args, results)
    return results


def write_json(args: argparse.Namespace, results: dict[str, Any]) -> None:
    """Where --json asks for it."""
    if args.json:
        found = {"machine": describe_machine(args.device), **results}
        Path(args.json).write_text(json.dumps(found, indent=1))


def describe_machine(device: str) -> dict[str, Any]:
    """What runs the benchmark, as MLX names it."""
    import mlx.core as mx

    about = mx.device_info(mx.Device(mx.gpu if device == "gpu" else mx.cpu))
    return {"device": device, "name": about.get("device_name"), "mlx": mx.__version__}


def time_runs(work: Callable[[], Any], repeats: int, warm_ups: int = 0) -> list[float]:
    """Seconds that each of `repeats` runs took, after the warm-up runs."""
    taken = []
    for _ in range(warm_ups + repeats):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return taken[warm_ups:]


def summarize(values: Sequence[float]) -> dict[str, float]:
    """Median, minimum, maximum and 90th percentile."""
    tenths = quantiles(values, n=10, method="inclusive") if len(values) > 1 else [values[0]]
    return {
        "median": median(values),
        "least": min(values),
        "most": max(values),
        "p90": tenths[-1],
    }


def format_ms(values: dict[str, float], digits: int = 1) -> str:
    """Seconds as milliseconds: median (minimum-maximum)."""
    middle, least, most = (1000 * values[name] for name in ("median", "least", "most"))
    return f"{middle:.{digits}f} ({least:.{digits}f}-{most:.{digits}f})"


def median_of(results: Results, name: str, key: str) -> float:
    return median(run[key] for run in results[name])


def speedup(results: Results, name: str, key: str, other: str = "reference") -> float:
    """The other's seconds over ours: the median of the ratios of each round."""
    pairs = zip(results[other], results[name], strict=True)
    return median(theirs[key] / ours[key] for theirs, ours in pairs)


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Prints a table: the first column aligned to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *others in rows:
        cells = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        print("  ".join([first.ljust(widths[0]), *cells]).rstrip())


def backbone_of(folder: Path) -> str:
    """Of the member that a folder holds: "llama" or "gpt2"."""
    from nightingale.checkpoint import find_checkpoint

    return find_checkpoint(folder).family.backbone


def run_reference(args: argparse.Namespace, job: dict[str, Any]) -> dict[str, Any]:
    """The outputs of one job of tools/reference/jobs.py."""
    from tools.reference import client

    jobs = [{"name": "job", "threads": os.cpu_count(), **job}]
    out = client.run_reference(jobs, python=args.reference)
    return {name.removeprefix("job/"): value for name, value in out.items()}
