"""S3Gen end to end: Nightingale's flow and vocoder beside the PyTorch reference, from one run.

    python -m bench.s3gen [--reference PYTHON] [--rounds 2] [--json FILE]

Full-size synthetic weights, 100 speech tokens (4 s) after a prompt of 10 s, 10 steps. Every
measurement is a process of its own, and the two take turns, so that a machine whose speed drifts
gives fair ratios. --reference names the Python that has chatterbox-tts (tests/parity/
reference_env.sh makes one).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

DTYPES = ("float32", "bfloat16")
STAGES = ("flow_s", "vocoder_s")


def main() -> None:
    args = _arguments()
    if args.measure:
        print(json.dumps(measure(Path(args.folder), args)))
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(args.folder) if args.folder else Path(scratch, "checkpoint")
        if not folder.exists():
            from nightingale.synthetic import write_checkpoint

            write_checkpoint(folder, size=args.size)
        results = run(folder, args)
        likeness = compare(folder, args) if args.device == "cpu" else None
    print_table(results, args.device, likeness)
    if args.json:
        Path(args.json).write_text(json.dumps(results, indent=1))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reference", help="Python of the reference's environment")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=100)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--size", choices=("small", "full"), default="full")
    parser.add_argument("--folder", help="a checkpoint to use instead of making one")
    parser.add_argument("--json", help="also write the results here")
    parser.add_argument("--measure", choices=DTYPES, help=argparse.SUPPRESS)
    return parser.parse_args()


def speech_tokens(count: int) -> list[int]:
    return [(37 * i + 5) % 6561 for i in range(count)]


def measure(folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Seconds of Nightingale's flow and vocoder at one precision."""
    import nightingale

    tts = nightingale.load(folder, dtype=args.measure, device=args.device)
    tokens = speech_tokens(args.tokens)
    mel = tts.mel(tokens, steps=1)  # pages in, threads up, GPU kernels compiled
    tts.vocode(mel)
    start = time.perf_counter()
    mel = tts.mel(tokens, steps=args.steps)
    solved = time.perf_counter()
    tts.vocode(mel)
    end = time.perf_counter()
    return {
        "flow_s": solved - start,
        "vocoder_s": end - solved,
        "audio_s": mel.shape[1] / 50,
        "products": tts.info["flow"]["products"],
    }


def run(folder: Path, args: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in (*DTYPES, "reference")}
    for _ in range(args.rounds):
        for dtype in DTYPES:
            command = [sys.executable, "-m", "bench.s3gen", "--measure", dtype]
            command += ["--folder", str(folder), "--device", args.device]
            command += ["--tokens", str(args.tokens), "--steps", str(args.steps)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            results[dtype].append(json.loads(done.stdout))
        if args.reference:
            results["reference"].append(measure_reference(folder, args))
    return results


def measure_reference(folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    os.environ["NIGHTINGALE_REFERENCE_PYTHON"] = args.reference
    from tests.parity import live

    job = {"name": "s3gen", "kind": "time_s3gen", "folder": str(folder), "steps": args.steps}
    out = live.run_reference([job | {"tokens": args.tokens, "threads": os.cpu_count()}])
    return {stage: float(median(out[f"s3gen/{stage}"])) for stage in STAGES}


def compare(folder: Path, args: argparse.Namespace) -> float:
    """Correlation of the mels that the two precisions make of the same noise."""
    import numpy as np

    import nightingale

    mels = []
    for dtype in DTYPES:
        tts = nightingale.load(folder, dtype=dtype, device=args.device)
        mels.append(tts.mel(speech_tokens(args.tokens), steps=args.steps))
    return float(np.corrcoef(mels[0].ravel(), mels[1].ravel())[0, 1])


def print_table(
    results: dict[str, list[dict[str, Any]]], device: str, likeness: float | None
) -> None:
    def middle(name: str, key: str) -> float:
        return median(run[key] for run in results[name])

    def ratio(name: str, key: str) -> float:
        """Of the two measurements of one round, which are next to each other in time."""
        pairs = zip(results["reference"], results[name], strict=True)
        return median(theirs[key] / ours[key] for theirs, ours in pairs)

    reference = bool(results["reference"])
    audio = results["float32"][0]["audio_s"]
    print(f"{f'S3Gen on the {device.upper()}':24}{'products':>10}{'flow s':>9}", end="")
    print(f"{'vocoder s':>11}{'rtf':>7}", end="")
    print(f"{'flow x':>9}{'vocoder x':>11}" if reference else "")
    for name in DTYPES:
        flow, vocoder = (middle(name, stage) for stage in STAGES)
        line = f"{'nightingale ' + name:24}{results[name][0]['products']:>10}"
        line += f"{flow:9.2f}{vocoder:11.2f}{(flow + vocoder) / audio:7.2f}"
        if reference:
            line += f"{ratio(name, 'flow_s'):8.2f}x{ratio(name, 'vocoder_s'):10.2f}x"
        print(line)
    if reference:
        flow, vocoder = (middle("reference", stage) for stage in STAGES)
        line = f"{'chatterbox-tts float32':24}{'float32':>10}{flow:9.2f}{vocoder:11.2f}"
        print(f"{line}{(flow + vocoder) / audio:7.2f}")
    if likeness is not None:
        print(f"correlation of the bfloat16 mel with the float32 one: {likeness:.6f}")


if __name__ == "__main__":
    main()
