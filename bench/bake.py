"""Baking a voice of 10 s of sound: Nightingale beside the PyTorch reference, from one run.

    python -m bench.bake [--reference PYTHON] [--rounds 2] [--json FILE]

Full-size synthetic weights, from the audio file to the voice, models loaded. Every measurement is a
process of its own, and the sides take turns.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from .rounds import Results, checkpoint, parse, parser, ratio, run_reference, take_turns

PRECISIONS = ("float32",)


def main() -> None:
    args = _arguments()
    if args.measure:
        print(json.dumps(measure(Path(args.folder), args)))
        return
    with checkpoint(args) as folder, tempfile.TemporaryDirectory() as scratch:
        results = run(folder, recording(Path(scratch)), args)
    print_table(results)


def _arguments() -> argparse.Namespace:
    arguments = parser(__doc__.splitlines()[0], PRECISIONS)
    arguments.add_argument("--recording", help=argparse.SUPPRESS)
    return parse(arguments)


def recording(folder: Path) -> Path:
    from tests.parity.voice_cases import MadeUp

    return MadeUp("bench", seconds=10.0, rate=24000, channels=1, pitch=140.0).write(folder)


def measure(folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Seconds of the first baking, which loads the models, and of two more."""
    import nightingale

    tts = nightingale.load(folder, dtype=args.measure, device="cpu")
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        tts.bake_voice(args.recording)
        seconds.append(time.perf_counter() - start)
    return {"first_s": seconds[0], "bake_s": median(seconds[1:])}


def run(folder: Path, path: Path, args: argparse.Namespace) -> Results:
    def reference() -> dict[str, Any]:
        job = {"kind": "time_bake", "folder": str(folder), "recording": str(path)}
        return {"bake_s": float(median(run_reference(args, job)["bake_s"]))}

    return take_turns("bench.bake", folder, args, {"recording": path}, reference)


def print_table(results: Results) -> None:
    ours = results["float32"]
    first, baked = (median(run[key] for run in ours) for key in ("first_s", "bake_s"))
    print(f"nightingale: {baked:.2f} s, the first time, models loaded too, {first:.2f} s")
    if results["reference"]:
        seconds = median(run["bake_s"] for run in results["reference"])
        faster = ratio(results, "float32", "bake_s")
        print(f"chatterbox-tts: {seconds:.2f} s; nightingale is {faster:.2f} times as fast")


if __name__ == "__main__":
    main()
