"""T3 end to end: Nightingale beside the PyTorch reference, from one run.

    python -m bench.t3 [--reference PYTHON] [--rounds 2] [--json FILE]
    python -m bench.t3 --device gpu [--bits 8] [--folder CHECKPOINT] [--json FILE]
    python -m bench.t3 --device gpu --turns 10 --dtypes float16 --bits 8 4 [--folder CHECKPOINT]

Full-size synthetic weights, 60 text tokens, 150 prompt tokens, both guidance rows, the analyser on;
of Turbo and Nano 375 prompt tokens and one row, which on a GPU takes --context 450 700.
Prefill is given twice: with a voice used for the first time, and with one that has been used
before, whose part of the cache Nightingale keeps and the reference computes again. On the CPU the
first 100 steps are timed, on a GPU those from a context of 250 positions to one of 500, warm, with
the launches of our kernels that a token takes and the kernel text in them, which MLX hashes. Every
measurement is a process of its own, and the two sides take turns, so that a machine whose speed
drifts gives fair ratios. With --turns all precisions are loaded into one process and decode that
often by turns: for differences that are smaller than those between two processes. --reference names
the Python that has chatterbox-tts (tools/reference/environment.sh makes one); on a GPU its figures
are quoted.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from . import h200, harness

TEXT_TOKENS = 60
EMOTION = 0.5


def main() -> None:
    args = _arguments()
    if args.turns:
        with harness.checkpoint(args) as folder:
            print_turns(decode_by_turns(folder, args))
        return
    measures = {"cpu": measure_cpu, "gpu": measure_gpu}
    harness.main(args, measures, run, {"cpu": print_cpu_table, "gpu": print_gpu_table})


def _arguments() -> argparse.Namespace:
    arguments = harness.make_parser(__doc__.splitlines()[0], harness.DTYPES, harness.DTYPES)
    harness.add_bits(arguments, "T3", (8, 4))
    arguments.add_argument("--steps", type=int, default=100, help="on the CPU")
    arguments.add_argument("--context", type=int, nargs=2, default=(250, 500), help="on a GPU")
    arguments.add_argument("--repeats", type=int, default=5, help="on a GPU")
    arguments.add_argument("--turns", type=int, help="decode by turns, all in one process")
    return harness.parse(arguments)


def text_tokens() -> list[int]:
    """Letters and spaces of the multilingual tokenizer, the same in every run."""
    return [(7 * i) % 26 + 14 if i % 5 else 2 for i in range(TEXT_TOKENS)]


class Decoded(NamedTuple):
    """What a token takes."""

    seconds: float
    launches: float
    source_bytes: float  # kernel text that MLX hashes


class Speech:
    """T3 alone, saying the same text for as long as it is asked to."""

    def __init__(self, tts: Any) -> None:
        import numpy as np

        self._tts = tts
        self.engine = tts._engine
        self.text = np.array(text_tokens(), np.int32)
        self.voice = tts._voice(None)

    def forget_voice(self) -> None:
        self.engine._conditions.clear()

    def token_at(self, context: int) -> int:
        """Which token is drawn when this many positions have been attended to."""
        voice = self.engine._condition(self.voice, EMOTION).cache.length
        # Beside the text of a Llama: its start and stop, and one of two starts of speech.
        more = 3 if self.engine.settings["backbone"] == "llama" else 0
        return context - (voice + TEXT_TOKENS + more)

    def begin(self, count: int, seed: int = 0) -> Any:
        from nightingale import SpeechOptions

        options = SpeechOptions(exaggeration=EMOTION, max_tokens=count, seed=seed)
        resolved = self._tts._resolved(options, self.voice)
        return self.engine.speak(self.text, self.voice, resolved, min_tokens=count)

    def tokens(self, count: int) -> Any:
        return self.engine.tokens(self.begin(count))

    def prefill(self) -> float:
        """Seconds to the first token."""
        start = time.perf_counter()
        next(self.tokens(1))
        return time.perf_counter() - start

    def decode(self, first: int, last: int) -> Decoded:
        """From the token `first` to the token `last`."""
        from nightingale import _core

        tokens = self.tokens(last + 2)  # the host, which is ahead, is not to come to the end
        for _ in range(first):
            next(tokens)
        launches, source = _core.kernel_launches(), _core.kernel_source_bytes()
        start = time.perf_counter()
        for _ in range(first, last):
            next(tokens)
        end = time.perf_counter()
        count = last - first
        return Decoded(
            (end - start) / count,
            (_core.kernel_launches() - launches) / count,
            (_core.kernel_source_bytes() - source) / count,
        )

    def warmed(self, context: Sequence[int]) -> tuple[int, int]:
        """The tokens between two contexts, once they have been decoded twice."""
        first, last = map(self.token_at, context)
        if first < 1:
            raise ValueError(
                f"voice and text take {context[0] - first} positions: --context beyond"
            )
        for _ in range(2):  # compiles kernels, then fills MLX's memory pool
            self.decode(first, last)
        return first, last


def measure_gpu(folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Warm prefill and decode at one precision, and what a token reads and launches."""
    started = time.perf_counter()
    tts = harness.load(folder, args.measure, "gpu")
    loaded = time.perf_counter()
    speech = Speech(tts)
    first, last = speech.warmed(args.context)
    decoded = [speech.decode(first, last) for _ in range(args.repeats)]
    prefill = [speech.prefill() for _ in range(2 + 2 * args.repeats)][2:]
    new_voice = []
    for _ in range(1 + args.repeats):
        speech.forget_voice()
        new_voice.append(speech.prefill())
    t3 = tts.info["t3"]
    token = harness.summarize([one.seconds for one in decoded])
    return {
        "load_s": loaded - started,
        "token_s": token["median"],
        "token": token,
        "prefill": harness.summarize(prefill),
        "new_voice": harness.summarize(new_voice[1:]),
        "launches": decoded[-1].launches,
        "source_bytes": decoded[-1].source_bytes,
        "step_bytes": t3["step_bytes"],
        "weight_bytes": t3["weight_bytes"],
        "read_bytes_per_s": gpu_read_bandwidth(),
    }


def decode_by_turns(folder: Path, args: argparse.Namespace) -> dict[str, list[float]]:
    """Seconds a token of every precision in every turn, those of a turn next to each other."""
    speeches = {name: Speech(harness.load(folder, name, args.device)) for name in args.precisions}
    spans = {name: speech.warmed(args.context) for name, speech in speeches.items()}
    seconds: dict[str, list[float]] = {name: [] for name in speeches}
    for turn in range(args.turns):
        for name in list(speeches)[:: 1 if turn % 2 else -1]:
            seconds[name].append(speeches[name].decode(*spans[name]).seconds)
    return seconds


def gpu_read_bandwidth(size: int = 1 << 29) -> float:
    """Bytes a second of MLX's sum over more memory than a cache holds."""
    import mlx.core as mx

    values = mx.zeros(size // 4, mx.float32)
    mx.eval(values)
    return size / min(harness.time_runs(lambda: mx.eval(mx.sum(values)), 10, 3))


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


def measure_cpu(folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Prefill and decode at one precision, once, with the memory they took."""
    from nightingale import _core

    memory = AnonymousMemory() if sys.platform == "linux" else None
    started = time.perf_counter()
    tts = harness.load(folder, args.measure, "cpu")
    loaded = time.perf_counter()
    speech = Speech(tts)
    speech.decode(1, 5)  # pages in, threads up
    speech.forget_voice()
    new_voice = speech.prefill()
    prefill = speech.prefill()
    rate = 1 / speech.decode(1, args.steps).seconds
    peak = memory.peak if memory else 0
    parts = [tts.info[name] for name in ("t3", "flow", "vocoder") if name in tts.info]
    return {
        "load_s": loaded - started,
        "new_voice_prefill_s": new_voice,
        "prefill_s": prefill,
        "tokens_per_s": rate,
        "weight_bytes": sum(part["weight_bytes"] for part in parts),
        "bytes_per_s": rate * tts.info["t3"]["step_bytes"],
        # Measured last: it takes 1 GB of memory.
        "read_bytes_per_s": _core.measure_read_bandwidth(),
        "best_bytes_per_s": _core.measure_best_bandwidth(),
        "anonymous_bytes": peak,
    }


def run(folder: Path, args: argparse.Namespace) -> harness.Results:
    def reference() -> dict[str, Any]:
        kind = "time_turbo" if harness.backbone_of(folder) == "gpt2" else "time_t3"
        job = {"kind": kind, "folder": str(folder), "text_tokens": text_tokens()}
        out = harness.run_reference(args, job | {"steps": args.steps})
        return {name: float(out[name]) for name in ("prefill_s", "tokens_per_s")}

    options = {"steps": args.steps, "context": args.context, "repeats": args.repeats}
    return harness.run_rounds("bench.t3", folder, args, options, reference)


def print_gpu_table(results: harness.Results, args: argparse.Namespace, folder: Path) -> None:
    begin, end = args.context
    gpu = harness.describe_machine("gpu")["name"]
    guided = harness.backbone_of(folder) == "llama"
    rows_text = "two rows" if guided else "one row"
    print(f"T3 on {gpu}, {rows_text}, context {begin} to {end}; ", end="")
    print(f"milliseconds, median (least-most) of {args.repeats}")
    header = ["", "a token", "prefill", "with a new voice", "launches", "source kB"]
    rows = [[*header, "GB/s", "of read", "faster"]]
    for name in args.precisions:
        last = results[name][-1]
        rate = last["step_bytes"] / last["token_s"]
        rows.append(
            [
                f"nightingale {name}",
                harness.format_ms(last["token"], 3),
                harness.format_ms(last["prefill"]),
                harness.format_ms(last["new_voice"]),
                f"{last['launches']:.1f}",
                f"{last['source_bytes'] / 1000:.1f}",
                f"{rate / 1e9:.0f}",
                f"{rate / last['read_bytes_per_s']:.0%}",
                h200.times(h200.T3[h200.REFERENCE], last["token_s"], gpu) if guided else "",
            ]
        )
    harness.print_table(rows)
    print("launches: of our own kernels, a token.")
    print("source kB: kernel text that MLX hashes for these launches, without signatures, a token.")
    print("Host syncs a token: none that the GPU waits for; the host reads one step behind.")
    if guided:
        print(f"faster: than {h200.REFERENCE}. Milliseconds a token, {h200.NOTE}:")
        harness.print_table([[f"  {name}", f"{ms:.1f}"] for name, ms in h200.T3.items()])


def print_turns(seconds: dict[str, list[float]]) -> None:
    first, *_ = seconds
    turns = len(seconds[first])
    print(f"T3 by turns, milliseconds a token, median (least-most) of {turns}, and the median of")
    print(f"what it takes more than {first} in the same turn")
    rows = []
    for name, taken in seconds.items():
        more = median(mine - its for mine, its in zip(taken, seconds[first], strict=True))
        rows.append(
            [
                f"nightingale {name}",
                harness.format_ms(harness.summarize(taken), 3),
                f"{1000 * more:+.3f}",
            ]
        )
    harness.print_table(rows)


def print_cpu_table(results: harness.Results, args: argparse.Namespace, folder: Path) -> None:
    def share(name: str, key: str) -> float:
        return median(run["bytes_per_s"] / run[key] for run in results[name])

    reference = bool(results["reference"])
    header = ["T3 on the CPU", "new voice s", "prefill s", "tok/s", "GB/s", "of read", "of best"]
    header += ["weights GB", "RssAnon GB"]
    rows = [header + ["decode x", "new voice x", "prefill x"] * reference]
    for name in args.precisions:
        prefill = harness.median_of(results, name, "prefill_s")
        new_voice = harness.median_of(results, name, "new_voice_prefill_s")
        rate = harness.median_of(results, name, "tokens_per_s")
        row = [f"nightingale {name}", f"{new_voice:.2f}", f"{prefill:.2f}", f"{rate:.2f}"]
        row += [f"{harness.median_of(results, name, 'bytes_per_s') / 1e9:.1f}"]
        row += [f"{share(name, key):.0%}" for key in ("read_bytes_per_s", "best_bytes_per_s")]
        for key in ("weight_bytes", "anonymous_bytes"):
            row.append(f"{harness.median_of(results, name, key) / 1e9:.2f}")
        if reference:
            theirs = harness.median_of(results, "reference", "prefill_s")
            row.append(f"{rate / harness.median_of(results, 'reference', 'tokens_per_s'):.2f}x")
            row += [f"{theirs / new_voice:.2f}x", f"{theirs / prefill:.2f}x"]
        rows.append(row)
    if reference:
        prefill = f"{harness.median_of(results, 'reference', 'prefill_s'):.2f}"
        rate = f"{harness.median_of(results, 'reference', 'tokens_per_s'):.2f}"
        row = ["chatterbox-tts float32", prefill, prefill, rate]
        rows.append(row + [""] * (len(rows[0]) - len(row)))
    harness.print_table(rows)
    for label, key in (("read", "read_bytes_per_s"), ("best", "best_bytes_per_s")):
        rates = [run[key] / 1e9 for name in args.precisions for run in results[name]]
        print(f"{label} bandwidth, all cores: {min(rates):.1f} to {max(rates):.1f} GB/s")


if __name__ == "__main__":
    main()
