"""T3's KV cache: what it costs to read, what it holds, and what compressing it changes.

    python -m bench.kv_cache [--folder CHECKPOINT] [--dtype float16] [--rounds 3]

Every way of keeping the cache says the same text with one loaded model, taking turns, so that a
machine whose speed drifts gives fair ratios. Held is what the cache has filled at the end.
Agreement is of the most likely token after guidance, teacher-forced over the tokens that the plain
cache drew. On a synthetic checkpoint the logits are noise, of which any error picks another: only a
model that speaks says what a cache costs in sound.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from . import harness
from .t3 import EMOTION, Speech

BUDGETS = (0.5, 0.25, 0.1, 0.02)
START = 6561
CFG_WEIGHT = 0.5


@dataclass(frozen=True)
class Mode:
    """One way of keeping the cache, as `T3.keep_cache` takes it."""

    name: str
    bits: int = 0
    budget: float = 0.0


def modes(dtype: str, device: str) -> list[Mode]:
    """Without a GPU those with a budget as well."""
    kept = [Mode(dtype), Mode("int8", 8), Mode("int4", 4)]
    if device == "cpu":
        kept += [Mode(f"{dtype}, {budget:.0%}", 0, budget) for budget in BUDGETS]
        kept += [Mode("int8, 50%", 8, 0.5)]
    return kept


def main() -> None:
    args = _arguments()
    with harness.checkpoint(args) as folder:
        tts = harness.load(folder, args.dtype, args.device)
        results = measure(tts, args)
    print_table(results, args)
    harness.write_json(args, results)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", help="a checkpoint; made there if there is none")
    parser.add_argument("--size", choices=("small", "full"), default="full")
    parser.add_argument("--dtype", choices=harness.DTYPES, default="float16", help="of the weights")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--context", type=int, nargs=2, default=(250, 500))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--agreement", type=int, default=100, help="tokens to compare; 0: none")
    parser.add_argument("--json", help="also write the results here")
    return parser.parse_args()


def measure(tts: Any, args: argparse.Namespace) -> dict[str, Any]:
    """Of each mode: tokens a second in every round, bytes held at the end, agreement."""
    results: dict[str, Any] = {}
    all_modes = modes(args.dtype, args.device)
    for round in range(args.rounds):
        for mode in all_modes:
            tts._engine.t3.keep_cache(mode.bits, mode.budget)
            speech = Speech(tts)
            speech.forget_voice()  # its part of the cache was kept in another way
            rate, busy, held = decode(speech, args.context)
            result = results.setdefault(mode.name, {"tokens_per_s": [], "busy_s": []})
            result["tokens_per_s"].append(rate)
            result["busy_s"].append(busy)
            result["held_bytes"] = held
            print(f"round {round + 1}: {mode.name} {rate:.2f} tokens/s", file=sys.stderr)
    if args.agreement:
        tts._engine.t3.keep_cache(0, 0.0)
        speech = Speech(tts)
        speech.forget_voice()
        drawn = np.array([START, *speech.tokens(args.agreement)], np.int32)[:-1]
        expected = most_likely(tts, speech.text, drawn, speech.voice)
        for mode in all_modes:
            tts._engine.t3.keep_cache(mode.bits, mode.budget)
            speech.forget_voice()
            same = most_likely(tts, speech.text, drawn, speech.voice) == expected
            results[mode.name]["agreement"] = float(same.mean())
    return results


def decode(speech: Speech, context: tuple[int, int]) -> tuple[float, float, int]:
    """Tokens a second between two lengths of context, seconds that the processor was busy for one,
    and what the cache then holds."""
    first, last = map(speech.token_at, context)
    said = speech.begin(last)
    engine = speech.engine
    for _ in range(first):
        engine.next_token(said)
    start, busy = time.perf_counter(), time.process_time()
    for _ in range(first, last):
        engine.next_token(said)
    seconds, busy = time.perf_counter() - start, time.process_time() - busy
    return (last - first) / seconds, busy / (last - first), said.cache_bytes


def most_likely(tts: Any, text: np.ndarray, drawn: np.ndarray, voice: Any) -> np.ndarray:
    """The most likely token after each of `drawn`, fed one at a time as when speaking."""
    condition = tts._engine._condition(voice, EMOTION).cache
    logits = tts._engine.t3.logits(text, drawn, condition, 1)
    return (logits[0] + CFG_WEIGHT * (logits[0] - logits[1])).argmax(-1)


def print_table(results: dict[str, Any], args: argparse.Namespace) -> None:
    begin, end = args.context
    print(f"T3, {args.dtype} weights, {args.device}, two rows, context {begin} to {end};", end=" ")
    print(f"tokens a second: median (least-most) of {args.rounds} rounds")
    plain = results[args.dtype]
    rows = [["cache", "tokens/s", "x plain", "busy ms", "held MB", "smaller", "agreement"]]
    for name, result in results.items():
        rates = result["tokens_per_s"]
        ratio = median(a / b for a, b in zip(rates, plain["tokens_per_s"], strict=True))
        agreement = result.get("agreement")
        rows.append(
            [
                name,
                f"{median(rates):.2f} ({min(rates):.2f}-{max(rates):.2f})",
                f"{ratio:.2f}",
                f"{1000 * median(result['busy_s']):.1f}",
                f"{result['held_bytes'] / 1e6:.1f}",
                f"{plain['held_bytes'] / result['held_bytes']:.2f}x",
                "" if agreement is None else f"{agreement:.1%}",
            ]
        )
    harness.print_table(rows)
    print("busy: time of all cores that a token took, which others on the machine disturb less")


if __name__ == "__main__":
    main()
