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
import time
from pathlib import Path
from statistics import median
from typing import Any

from .rounds import Results, checkpoint, parser, ratio, run_reference, take_turns

DTYPES = ("float32", "bfloat16")
STAGES = ("flow_s", "vocoder_s")


def main() -> None:
    args = _arguments()
    if args.measure:
        print(json.dumps(measure(Path(args.folder), args)))
        return
    with checkpoint(args) as folder:
        results = run(folder, args)
        likeness = compare(folder, args) if args.device == "cpu" else None
    print_table(results, args.device, likeness)


def _arguments() -> argparse.Namespace:
    arguments = parser(__doc__.splitlines()[0], DTYPES)
    arguments.add_argument("--tokens", type=int, default=100)
    arguments.add_argument("--steps", type=int, default=10)
    arguments.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    return arguments.parse_args()


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


def run(folder: Path, args: argparse.Namespace) -> Results:
    def reference() -> dict[str, Any]:
        job = {"kind": "time_s3gen", "folder": str(folder)}
        out = run_reference(args, job | {"tokens": args.tokens, "steps": args.steps})
        return {stage: float(median(out[stage])) for stage in STAGES}

    options = {"device": args.device, "tokens": args.tokens, "steps": args.steps}
    return take_turns("bench.s3gen", DTYPES, folder, args, options, reference)


def compare(folder: Path, args: argparse.Namespace) -> float:
    """Correlation of the mels that the two precisions make of the same noise."""
    import numpy as np

    import nightingale

    mels = []
    for dtype in DTYPES:
        tts = nightingale.load(folder, dtype=dtype, device=args.device)
        mels.append(tts.mel(speech_tokens(args.tokens), steps=args.steps))
    return float(np.corrcoef(mels[0].ravel(), mels[1].ravel())[0, 1])


def print_table(results: Results, device: str, likeness: float | None) -> None:
    def middle(name: str, key: str) -> float:
        return median(run[key] for run in results[name])

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
            line += f"{ratio(results, name, 'flow_s'):8.2f}x"
            line += f"{ratio(results, name, 'vocoder_s'):10.2f}x"
        print(line)
    if reference:
        flow, vocoder = (middle("reference", stage) for stage in STAGES)
        line = f"{'chatterbox-tts float32':24}{'float32':>10}{flow:9.2f}{vocoder:11.2f}"
        print(f"{line}{(flow + vocoder) / audio:7.2f}")
    if likeness is not None:
        print(f"correlation of the bfloat16 mel with the float32 one: {likeness:.6f}")


if __name__ == "__main__":
    main()
