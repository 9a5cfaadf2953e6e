"""Several utterances spoken at once beside one after another: how much sound each way makes.

    python -m bench.together [--utterances 1 8 16 32] [--tokens 102] [--json FILE]
    python -m bench.together --device gpu --dtypes float16 --bits 8
    python -m bench.together --device gpu --streams

Full-size synthetic weights, a voice with a prompt of 10 s that has been used before, whole
sentences, each with its own seed. All begin at once and take turns of one step, as the texts of
`generate_batch` do. Ratios are to utterances one after another in the same process. The sound and
the tokens of every utterance are compared with those it has alone: the exit status is 1 unless all
are equal.

With --streams the utterances are streams instead, and take turns as in the server: when each one's
sound begins, and how many chunks come after the sound before them has been heard.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from . import harness
from .speak import TEXT

ON_CPU = ("float32",)
WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
Said = tuple[np.ndarray, np.ndarray]  # tokens, samples


def main() -> int:
    arguments = harness.make_parser(__doc__.splitlines()[0], ON_CPU, ("float16",))
    harness.add_bits(arguments, "T3", (8, 4))
    arguments.add_argument("--utterances", type=int, nargs="+", default=(1, 8, 16, 32))
    arguments.add_argument("--tokens", type=int, default=102, help="of each utterance")
    arguments.add_argument("--steps", type=int, help="of the flow; default: the model's own")
    arguments.add_argument("--streams", action="store_true", help="first audio and late chunks")
    args = harness.parse(arguments)
    results = {}
    measure, print_results = (
        (measure_streams, print_streams) if args.streams else (measure_wholes, print_wholes)
    )
    with harness.checkpoint(args) as folder:
        for precision in args.precisions:
            tts = harness.load(folder, precision, args.device)
            results[precision] = measure(tts, args)
            del tts
    harness.write_json(args, results)
    print_results(results, args)
    return int(any(row.get("different") for rows in results.values() for row in rows))


def work(tts: Any, number: int, args: argparse.Namespace) -> Iterator[Any]:
    """What saying the utterance of this number yields: None after each step, and its sound."""
    from nightingale import SpeechOptions
    from nightingale.speech import Speaker

    started = time.perf_counter()
    voice = tts._voice(None)
    # Every seventh is shorter: sessions also leave passes while others go on.
    tokens = args.tokens - (number % 7) * args.tokens // 20
    options = SpeechOptions(max_tokens=tokens, seed=number, steps=args.steps)
    if not args.streams:
        options = replace(options, first_chunk=None)
    speaker = Speaker(
        tts._engine,
        segments=tts.prepare(f"{TEXT} {WORDS[number % len(WORDS)]}.")[:1],
        voice=voice,
        options=tts._resolved(options, voice),
        started=started,
        min_tokens=tokens,  # synthetic weights stop at random
    )
    return speaker.run()


def said(chunks: list[Any]) -> Said:
    return (
        np.concatenate([chunk.tokens for chunk in chunks]),
        np.concatenate([chunk.samples for chunk in chunks]),
    )


def one_by_one(tts: Any, count: int, args: argparse.Namespace) -> tuple[float, list[Said]]:
    began = time.perf_counter()
    all_said = [
        said([chunk for chunk in work(tts, number, args) if chunk is not None])
        for number in range(count)
    ]
    return time.perf_counter() - began, all_said


def at_once(
    tts: Any, count: int, args: argparse.Namespace
) -> tuple[float, list[float], list[Said]]:
    """Seconds in all, seconds to each one's sound, and what was said."""
    running = {number: work(tts, number, args) for number in range(count)}
    chunks: dict[int, list[Any]] = {number: [] for number in running}
    first = [0.0] * count
    began = time.perf_counter()
    while running:
        for number, steps in list(running.items()):
            try:
                chunk = next(steps)
            except StopIteration:
                del running[number]
                continue
            if chunk is not None:
                first[number] = first[number] or time.perf_counter() - began
                chunks[number].append(chunk)
    seconds = time.perf_counter() - began
    return seconds, first, [said(chunks[number]) for number in range(count)]


def measure_wholes(tts: Any, args: argparse.Namespace) -> list[dict[str, Any]]:
    tts._find_heads(tts._voice(None))
    _, expected = one_by_one(tts, max(args.utterances), args)  # kernels and caches are there
    rows = []
    for count in args.utterances:
        at_once(tts, count, args)  # those of shared passes, too
        alone, _ = one_by_one(tts, count, args)
        seconds, first, found = at_once(tts, count, args)
        sound = sum(len(samples) for _, samples in found) / 24000
        different = sum(
            not (np.array_equal(a[0], b[0]) and np.array_equal(a[1], b[1]))
            for a, b in zip(found, expected[:count], strict=True)
        )
        rows.append(
            {
                "utterances": count,
                "seconds": seconds,
                "audio_per_second": sound / seconds,
                "ratio": alone / seconds,
                "first_p95": float(np.quantile(first, 0.95)),
                "different": different,
            }
        )
    return rows


@dataclass(eq=False)
class Stream:
    steps: Iterator[Any]
    due: float = 0.0  # when all its sound so far has been heard
    last_turn: int = 0
    first: float | None = None  # when its sound began


def streams_at_once(tts: Any, count: int, args: argparse.Namespace) -> dict[str, Any]:
    from nightingale.server.jobs import next_turn

    running = [Stream(work(tts, number, args)) for number in range(count)]
    first: list[float] = []
    chunks = late = samples = turn = 0
    began = time.perf_counter()
    while running:
        turn += 1
        stream = next_turn(running, time.perf_counter() - began, args.device)
        stream.last_turn = turn
        try:
            chunk = next(stream.steps)
        except StopIteration:
            running.remove(stream)
            continue
        if chunk is None:
            continue
        now = time.perf_counter() - began
        late += stream.first is not None and now > stream.due
        if stream.first is None:
            stream.first = now
            first.append(now)
        stream.due = max(stream.due, now) + len(chunk.samples) / 24000
        chunks += 1
        samples += len(chunk.samples)
    seconds = time.perf_counter() - began
    return {
        "utterances": count,
        "seconds": seconds,
        "audio_per_second": samples / 24000 / seconds,
        "first": [float(np.quantile(first, q)) for q in (0.5, 0.95)],
        "chunks": chunks,
        "late": late,
    }


def measure_streams(tts: Any, args: argparse.Namespace) -> list[dict[str, Any]]:
    tts._find_heads(tts._voice(None))
    rows = []
    for count in args.utterances:
        streams_at_once(tts, count, args)  # kernels and caches are there
        rows.append(streams_at_once(tts, count, args))
    return rows


def print_streams(results: dict[str, Any], args: argparse.Namespace) -> None:
    for precision, rows in results.items():
        print(f"{precision}, {args.device}, streams of up to {args.tokens} tokens")
        table = [["at once", "s", "audio, s/s", "first audio p50, p95, s", "late chunks"]]
        table += [
            [
                str(row["utterances"]),
                f"{row['seconds']:.2f}",
                f"{row['audio_per_second']:.1f}",
                "{:.3f}, {:.3f}".format(*row["first"]),
                f"{row['late']} of {row['chunks']}",
            ]
            for row in rows
        ]
        harness.print_table(table)


def print_wholes(results: dict[str, Any], args: argparse.Namespace) -> None:
    for precision, rows in results.items():
        print(f"{precision}, {args.device}, utterances of up to {args.tokens} tokens")
        table = [["at once", "s", "audio, s/s", "ratio", "sound after, p95, s", "different"]]
        table += [
            [
                str(row["utterances"]),
                f"{row['seconds']:.2f}",
                f"{row['audio_per_second']:.1f}",
                f"{row['ratio']:.2f}",
                f"{row['first_p95']:.2f}",
                str(row["different"]),
            ]
            for row in rows
        ]
        harness.print_table(table)


if __name__ == "__main__":
    sys.exit(main())
