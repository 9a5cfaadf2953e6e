"""Baking a voice of 10 s of sound: Nightingale beside the PyTorch reference, from one run.

    python -m bench.bake [--reference PYTHON] [--rounds 2] [--json FILE]

Full-size synthetic weights, from the audio file to the voice, models loaded. Every measurement is a
process of its own, and the sides take turns.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from . import harness

PRECISIONS = ("float32",)


def main() -> None:
    harness.main(_arguments(), {"cpu": measure}, run, {"cpu": print_table})


def _arguments() -> argparse.Namespace:
    arguments = harness.make_parser(__doc__.splitlines()[0], PRECISIONS)
    arguments.add_argument("--recording", help=argparse.SUPPRESS)
    return harness.parse(arguments)


def recording(folder: Path) -> Path:
    from tests.parity.voice_cases import MadeUp

    return MadeUp("bench", seconds=10.0, rate=24000, channels=1, pitch=140.0).write(folder)


def measure(folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Seconds of the first baking, which loads the models, and of two more."""
    tts = harness.load(folder, args.measure, "cpu")
    seconds = harness.time_runs(lambda: tts.bake_voice(args.recording), 3)
    return {"first_s": seconds[0], "bake_s": median(seconds[1:])}


def run(folder: Path, args: argparse.Namespace) -> harness.Results:
    with tempfile.TemporaryDirectory() as scratch:
        path = recording(Path(scratch))

        def reference() -> dict[str, Any]:
            job = {"kind": "time_bake", "folder": str(folder), "recording": str(path)}
            return {"bake_s": float(median(harness.run_reference(args, job)["bake_s"]))}

        return harness.run_rounds("bench.bake", folder, args, {"recording": path}, reference)


def print_table(results: harness.Results, args: argparse.Namespace, folder: Path) -> None:
    ours = results["float32"]
    first, baked = (median(run[key] for run in ours) for key in ("first_s", "bake_s"))
    print(f"nightingale: {baked:.2f} s, the first time, models loaded too, {first:.2f} s")
    if results["reference"]:
        seconds = median(run["bake_s"] for run in results["reference"])
        faster = harness.speedup(results, "float32", "bake_s")
        print(f"chatterbox-tts: {seconds:.2f} s; nightingale is {faster:.2f} times as fast")


if __name__ == "__main__":
    main()
