"""Ends utterances early while the GPU still has steps of theirs, and looks for damage.

    python -m bench.ended_early [--utterances 10000] [--folder CHECKPOINT] [--bits 8]

MLX keeps the memory of an op until the GPU is done with it; what a replayed step of T3 uses besides
has to be kept by us. Each of a few sentences is first spoken undisturbed. Then utterances begin and
are dropped at random positions, one or two steps before the GPU has finished, while MLX keeps no
freed memory and another stream fills what is free with numbers. All tokens must be those of the
undisturbed utterances, and the numbers must still be there afterwards. The exit status is 1 where
anything differs.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from typing import Any

from . import harness
from .t3 import Speech

SENTENCES = 16  # seeds of the same text
MOST_TOKENS = 24
FILLED_MIB = (1, 4, 16, 64)  # sizes around those of the caches
KEPT_FILLS = 8


def main() -> int:
    args = _arguments()
    with harness.checkpoint(args) as folder:
        precision = f"{harness.INTEGERS}{args.bits}" if args.bits else "float16"
        speech = Speech(harness.load(folder, precision, args.device))
        expected = [undisturbed(speech, seed) for seed in range(SENTENCES)]
        return report(disturb(speech, expected, args.utterances), args.utterances)


def _arguments() -> argparse.Namespace:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--utterances", type=int, default=10_000)
    arguments.add_argument("--device", choices=("cpu", "gpu"), default="gpu")
    arguments.add_argument("--bits", type=int, choices=(8, 4), help="default: float16 weights")
    arguments.add_argument("--folder", help="a checkpoint; made there if there is none")
    arguments.add_argument("--size", choices=("small", "full"), default="full")
    return arguments.parse_args()


def begin(speech: Speech, seed: int) -> Any:
    return speech.begin(MOST_TOKENS + 2, seed=seed)  # the host, which is ahead, does not end


def undisturbed(speech: Speech, seed: int) -> list[int]:
    tokens = speech.engine.tokens(begin(speech, seed))
    return [next(tokens) for _ in range(MOST_TOKENS)]


class Pressure:
    """Fills free memory with numbers, on a stream of its own."""

    def __init__(self, device: str) -> None:
        import mlx.core as mx

        self._mx = mx
        self._stream = mx.new_stream(mx.Device(mx.gpu if device == "gpu" else mx.cpu))
        self._filled: list[tuple[int, Any]] = []
        self.damaged = 0
        mx.set_cache_limit(0)

    def fill(self, value: int) -> None:
        """Takes memory, and gives back what was taken some fills ago."""
        mx = self._mx
        size = random.choice(FILLED_MIB) << 18
        self._filled.append((value, mx.full((size,), value, mx.int32, stream=self._stream)))
        mx.async_eval(self._filled[-1][1])
        if len(self._filled) > KEPT_FILLS:
            self._check(*self._filled.pop(0))

    def finish(self) -> None:
        while self._filled:
            self._check(*self._filled.pop())

    def _check(self, value: int, filled: Any) -> None:
        same = self._mx.all(filled == value, stream=self._stream)
        self.damaged += not same.item()


def disturb(speech: Speech, expected: list[list[int]], utterances: int) -> tuple[int, int]:
    """How many utterances and how many fills were damaged."""
    random.seed(0)
    pressure = Pressure(speech.engine.settings["device"])
    wrong = 0
    started = time.perf_counter()
    for number in range(utterances):
        seed = random.randrange(SENTENCES)
        count = random.randint(1, MOST_TOKENS)
        utterance = begin(speech, seed)
        found = [speech.engine.next_token(utterance) for _ in range(count)]
        del utterance  # a step that nobody waits for is queued
        pressure.fill(number)
        wrong += found != expected[seed][:count]
        if (number + 1) % 1000 == 0:
            seconds = time.perf_counter() - started
            print(f"{number + 1} utterances, {seconds:.0f} s, {wrong} wrong", flush=True)
    pressure.finish()
    return wrong, pressure.damaged


def report(damage: tuple[int, int], utterances: int) -> int:
    wrong, damaged = damage
    print(f"{utterances} ended early: {wrong} with other tokens, {damaged} fills damaged")
    return int(wrong > 0 or damaged > 0)


if __name__ == "__main__":
    sys.exit(main())
