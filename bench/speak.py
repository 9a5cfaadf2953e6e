"""Time to first audio while streaming, beside the reference's time for the whole utterance.

    python -m bench.speak [--reference PYTHON] [--rounds 2] [--tokens 300] [--json FILE]

Full-size synthetic weights, one sentence of 300 speech tokens (12 s) in a voice with a prompt of
10 s. The reference gives no sound before the end, so its time to first audio is that of T3, flow
and vocoder together. Every measurement is a process of its own, and the sides take turns.
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
TEXT = (
    "The birch canoe slid on the smooth planks, and the boy was there when the sun rose "
    "over the hills behind the old harbour."
)


def main() -> None:
    args = _arguments()
    if args.measure:
        print(json.dumps(measure(Path(args.folder), args)))
        return
    with checkpoint(args) as folder:
        results = run(folder, args)
    print_table(results, args)


def _arguments() -> argparse.Namespace:
    arguments = parser(__doc__.splitlines()[0], DTYPES)
    arguments.add_argument("--tokens", type=int, default=300)
    arguments.add_argument("--steps", type=int, default=10)
    arguments.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    return arguments.parse_args()


def measure(folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Nightingale's stream at one precision: when each chunk came and how long it sounds."""
    import nightingale
    from nightingale.speech import Speaker, SpeechRequest
    from nightingale.streaming import Chunking
    from nightingale.text import Piece

    tts = nightingale.load(folder, dtype=args.measure, device=args.device)

    def chunks(tokens: int, steps: int) -> list[nightingale.Chunk]:
        # Made-up weights say when to stop at random: the count is asked for.
        sampling = tts._sampling(0.8, 0.5, None, 0.05, 1.0, tokens) | {"min_tokens": tokens}
        request = SpeechRequest(
            pieces=[Piece(TEXT, 0.0, "sentence")],
            language="en",
            voice=tts._voice(None),
            exaggeration=0.5,
            sampling=sampling,
            seed=0,
            steps=steps,
            speed=1.0,
            chunking=Chunking(),
            started=time.perf_counter(),
        )
        return [c for c in Speaker(tts._engine, tts._tokenizer, request).run() if c is not None]

    chunks(15, 1)  # pages in, threads up, GPU kernels compiled, the voice known
    made = chunks(args.tokens, args.steps)
    last = made[-1].timings
    return {
        "first_s": last["ttfa"],
        "total_s": last["total"],
        "rtf": last["rtf"],
        "stages": {name: last[name] for name in ("t3", "flow", "vocoder")},
        "chunks": [[c.timings["total"], len(c.samples) / c.sample_rate] for c in made],
    }


def run(folder: Path, args: argparse.Namespace) -> Results:
    def reference() -> dict[str, Any]:
        text_tokens = [(13 * i + 7) % 700 for i in range(len(TEXT) // 2)]
        t3_job = {"kind": "time_t3", "folder": str(folder), "text_tokens": text_tokens}
        t3 = run_reference(args, t3_job | {"steps": min(args.tokens, 100)})
        s3gen_job = {"kind": "time_s3gen", "folder": str(folder)}
        s3gen = run_reference(args, s3gen_job | {"tokens": args.tokens, "steps": args.steps})
        decode = (args.tokens - 1) / float(t3["tokens_per_s"])
        stages = {
            "t3": float(t3["prefill_s"]) + decode,
            "flow": float(median(s3gen["flow_s"])),
            "vocoder": float(median(s3gen["vocoder_s"])),
        }
        total = sum(stages.values())
        return {
            "first_s": total,
            "total_s": total,
            "rtf": total * 25 / args.tokens,
            "stages": stages,
        }

    options = {"device": args.device, "tokens": args.tokens, "steps": args.steps}
    return take_turns("bench.speak", DTYPES, folder, args, options, reference)


def print_table(results: Results, args: argparse.Namespace) -> None:
    print(f"{args.tokens / 25:.0f} s on the {args.device.upper()}", end="")
    print(f"{'first audio s':>22}{'all s':>9}{'t3 s':>8}{'flow s':>8}{'vocoder s':>11}", end="")
    print(f"{'earlier by':>12}" if results["reference"] else "")
    for name, runs in results.items():
        if not runs:
            continue
        label = "chatterbox-tts float32" if name == "reference" else f"nightingale {name}"
        middle = {key: median(run[key] for run in runs) for key in ("first_s", "total_s")}
        stages = [median(run["stages"][key] for run in runs) for key in ("t3", "flow", "vocoder")]
        line = f"{label:24}{middle['first_s']:10.2f}{middle['total_s']:9.1f}"
        line += "".join(f"{s:{w}.1f}" for s, w in zip(stages, (8, 8, 11), strict=True))
        if results["reference"] and name != "reference":
            line += f"{ratio(results, name, 'first_s'):11.1f}x"
        print(line)


if __name__ == "__main__":
    main()
