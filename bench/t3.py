"""T3 end to end: Nightingale beside the PyTorch reference, from one run.

    python -m bench.t3 [--reference PYTHON] [--rounds 2] [--json FILE]

Full-size synthetic weights, 60 text tokens, 150 prompt tokens, 100 steps, the analyser on. Prefill
is given twice: with a voice used for the first time, and with one that has been used before, whose
part of the cache Nightingale keeps and the reference computes again. Every
measurement is a process of its own, and the two take turns, so that a machine whose speed drifts
gives fair ratios. --reference names the Python that has chatterbox-tts (tests/parity/
reference_env.sh makes one).
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from pathlib import Path
from statistics import median
from typing import Any

from .rounds import Results, checkpoint, parser, run_reference, take_turns

TEXT_TOKENS = 60
DTYPES = ("float32", "float16", "bfloat16")


def main() -> None:
    args = _arguments()
    if args.measure:
        print(json.dumps(measure(Path(args.folder), args.measure, args.steps)))
        return
    with checkpoint(args) as folder:
        print_table(run(folder, args))


def _arguments() -> argparse.Namespace:
    arguments = parser(__doc__.splitlines()[0], DTYPES)
    arguments.add_argument("--steps", type=int, default=100)
    return arguments.parse_args()


def text_tokens() -> list[int]:
    """Letters and spaces of the multilingual tokenizer, the same in every run."""
    return [(7 * i) % 26 + 14 if i % 5 else 2 for i in range(TEXT_TOKENS)]


class AnonymousMemory(threading.Thread):
    """Samples this process's anonymous resident memory and keeps the peak."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak = 0
        self.start()

    def run(self) -> None:
        while True:
            for line in Path("/proc/self/status").read_text().splitlines():
                if line.startswith("RssAnon:"):
                    self.peak = max(self.peak, 1024 * int(line.split()[1]))
            time.sleep(0.01)


def measure(folder: Path, dtype: str, steps: int) -> dict[str, Any]:
    """Nightingale's prefill and decode at one precision, on the CPU."""
    import numpy as np

    import nightingale

    memory = AnonymousMemory() if sys.platform == "linux" else None
    started = time.perf_counter()
    tts = nightingale.load(folder, dtype=dtype, device="cpu")
    loaded = time.perf_counter()
    voice = tts._voice(None)

    def speak(count: int) -> tuple[float, float]:
        begin = time.perf_counter()
        stream = tts._engine.t3.speak(
            np.array(text_tokens(), np.int32),
            tts._engine._condition(voice, 0.5),
            cfg_weight=0.5,
            temperature=0.8,
            repetition_penalty=2.0,
            min_p=0.05,
            top_p=1.0,
            analyser=tts.info["t3"]["analyser"],
            seed=0,
            min_tokens=count,
            max_tokens=count,
        )
        stream.next()
        first = time.perf_counter()
        tokens = sum(1 for _ in iter(stream.next, None))
        return first - begin, tokens / (time.perf_counter() - first)

    speak(5)  # pages in, threads up
    tts._engine._conditions.clear()
    new_voice, _ = speak(1)
    prefill, rate = speak(steps)
    peak = memory.peak if memory else 0
    core = nightingale._core  # bandwidth is measured last: it takes 1 GB of memory
    t3 = tts.info["t3"]
    parts = [tts.info[name] for name in ("t3", "flow", "vocoder") if name in tts.info]
    return {
        "load_s": loaded - started,
        "new_voice_prefill_s": new_voice,
        "prefill_s": prefill,
        "tokens_per_s": rate,
        "weight_bytes": sum(part["weight_bytes"] for part in parts),
        "bytes_per_s": rate * t3["step_bytes"],
        "read_bytes_per_s": core.measure_read_bandwidth(),
        "best_bytes_per_s": core.measure_best_bandwidth(),
        "anonymous_bytes": peak,
    }


def run(folder: Path, args: argparse.Namespace) -> Results:
    def reference() -> dict[str, Any]:
        job = {"kind": "time_t3", "folder": str(folder), "text_tokens": text_tokens()}
        out = run_reference(args, job | {"steps": args.steps})
        return {name: float(out[name]) for name in ("prefill_s", "tokens_per_s")}

    return take_turns("bench.t3", DTYPES, folder, args, {"steps": args.steps}, reference)


def print_table(results: Results) -> None:
    def middle(name: str, key: str) -> float:
        return median(run[key] for run in results[name])

    def share(name: str, key: str) -> float:
        return median(run["bytes_per_s"] / run[key] for run in results[name])

    reference = bool(results["reference"])
    print(f"{'T3 on the CPU':24}{'new voice s':>13}{'prefill s':>11}{'tok/s':>8}", end="")
    print(f"{'GB/s':>7}{'of read':>9}", end="")
    print(f"{'of best':>9}{'weights GB':>12}{'RssAnon GB':>12}", end="")
    print(f"{'decode x':>10}{'new voice x':>12}{'prefill x':>11}" if reference else "")
    for name in DTYPES:
        prefill, rate = middle(name, "prefill_s"), middle(name, "tokens_per_s")
        new_voice = middle(name, "new_voice_prefill_s")
        line = f"{'nightingale ' + name:24}{new_voice:13.2f}{prefill:11.2f}{rate:8.2f}"
        line += f"{middle(name, 'bytes_per_s') / 1e9:7.1f}"
        line += f"{share(name, 'read_bytes_per_s'):9.0%}{share(name, 'best_bytes_per_s'):9.0%}"
        line += f"{middle(name, 'weight_bytes') / 1e9:12.2f}"
        line += f"{middle(name, 'anonymous_bytes') / 1e9:12.2f}"
        if reference:
            line += f"{rate / middle('reference', 'tokens_per_s'):9.2f}x"
            line += f"{middle('reference', 'prefill_s') / new_voice:10.2f}x"
            line += f"{middle('reference', 'prefill_s') / prefill:10.2f}x"
        print(line)
    if reference:
        prefill, rate = middle("reference", "prefill_s"), middle("reference", "tokens_per_s")
        print(f"{'chatterbox-tts float32':24}{prefill:13.2f}{prefill:11.2f}{rate:8.2f}")
    for label, key in (("read", "read_bytes_per_s"), ("best", "best_bytes_per_s")):
        rates = [run[key] / 1e9 for name in DTYPES for run in results[name]]
        print(f"{label} bandwidth, all cores: {min(rates):.1f} to {max(rates):.1f} GB/s")


if __name__ == "__main__":
    main()
