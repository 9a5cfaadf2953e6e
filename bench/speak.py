"""Time to first audio and to the end, beside the reference's time for the whole utterance.

    python -m bench.speak [--reference PYTHON] [--rounds 2] [--tokens 300] [--json FILE]
    python -m bench.speak --whole --member turbo --dtypes float32 --bits 8 --beside bfloat16
    python -m bench.speak --device gpu [--bits 8] [--folder CHECKPOINT] [--json FILE]

Full-size synthetic weights, a voice with a prompt of 10 s that has been used before. On the CPU one
sentence of 300 speech tokens (12 s) is streamed, or with --whole spoken at once as `generate` does.
On a GPU, warm: the first chunk of a stream 20 times and where its time goes, and whole utterances
of 78, 102 and 127 tokens. The flow takes as many steps as the model is meant for. The reference
gives no sound before the end, so its time to first audio is that of T3, flow and vocoder together;
on a GPU its figures of the multilingual model are quoted. Every measurement is a process of its
own, and the sides take turns.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

from . import h200, harness

ON_CPU = ("float32", "bfloat16")
STAGES = ("t3", "flow", "vocoder")
PARTS = ("text", "prefill", "tokens", "flow", "vocoder")  # of the time to first audio
WARM_UPS = 3
TEXT = (
    "The birch canoe slid on the smooth planks, and the boy was there when the sun rose "
    "over the hills behind the old harbour."
)


def main() -> None:
    measures = {"cpu": measure_cpu, "gpu": measure_gpu}
    harness.main(_arguments(), measures, run, {"cpu": print_cpu_table, "gpu": print_gpu_table})


def _arguments() -> argparse.Namespace:
    arguments = harness.make_parser(__doc__.splitlines()[0], ON_CPU, harness.DTYPES)
    harness.add_bits(arguments, "T3", (8, 4))
    arguments.add_argument(
        "--beside", choices=harness.DTYPES, default="float16", help="type of all but T3 with --bits"
    )
    arguments.add_argument("--tokens", type=int, default=300, help="on the CPU")
    arguments.add_argument("--whole", action="store_true", help="no stream, on the CPU")
    arguments.add_argument("--steps", type=int, help="of the flow; default: the model's own")
    arguments.add_argument("--first", type=int, default=20, help="first chunks, on a GPU")
    arguments.add_argument(
        "--utterances", type=int, nargs="+", default=(78, 102, 127), help="tokens each, on a GPU"
    )
    arguments.add_argument("--repeats", type=int, default=5, help="of each utterance, on a GPU")
    return harness.parse(arguments)


def spoken(tts: Any, tokens: int, steps: int | None, whole: bool = False) -> Iterator[Any]:
    """What saying TEXT yields: None after each token and flow step, and chunks."""
    from nightingale import SpeechOptions
    from nightingale.speech import Speaker

    started = time.perf_counter()
    voice = tts._voice(None)
    tts._find_heads(voice)
    chunks = {"first_chunk": None} if whole else {}
    options = SpeechOptions(max_tokens=tokens, steps=steps, **chunks)
    speaker = Speaker(
        tts._engine,
        segments=tts.prepare(TEXT),
        voice=voice,
        options=tts._resolved(options, voice),
        started=started,
        min_tokens=tokens,  # synthetic weights stop at random
    )
    return speaker.run()


def chunks(tts: Any, tokens: int, steps: int | None, whole: bool = False) -> list[Any]:
    return [chunk for chunk in spoken(tts, tokens, steps, whole) if chunk is not None]


def measure_cpu(folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    """A stream or the whole at one precision: when each chunk came and how long it sounds."""
    tts = harness.load(folder, args.measure, "cpu", beside=args.beside)
    chunks(tts, 15, 1)  # pages in, threads up, the voice known
    made = chunks(tts, args.tokens, args.steps, args.whole)
    last = made[-1].timings
    return {
        "first_s": last["ttfa"],
        "total_s": last["total"],
        "rtf": last["rtf"],
        "stages": {name: last[name] for name in STAGES},
        "chunks": [[c.timings["total"], len(c.samples) / c.sample_rate] for c in made],
    }


def measure_gpu(folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Warm first chunks and whole utterances at one precision."""
    tts = harness.load(folder, args.measure, "gpu", beside=args.beside)
    chunks(tts, 50, args.steps)  # kernels compiled, the voice known
    first = [first_chunk(tts, args.steps) for _ in range(WARM_UPS + args.first)][WARM_UPS:]
    utterances = {}
    for tokens in args.utterances:
        made = [chunks(tts, tokens, args.steps, whole=True) for _ in range(2 + args.repeats)][2:]
        timings = [said[-1].timings for said in made]
        utterances[str(tokens)] = {
            "total": harness.summarize([timing["total"] for timing in timings]),
            "stages": {name: median(timing[name] for timing in timings) for name in STAGES},
            "audio_s": sum(len(c.samples) for c in made[-1]) / made[-1][0].sample_rate,
        }
    return {
        "first": harness.summarize([parts["total"] for parts in first]),
        "parts": {name: median(parts[name] for parts in first) for name in PARTS},
        "utterances": utterances,
    }


def first_chunk(tts: Any, steps: int | None) -> dict[str, float]:
    """Seconds to the first chunk of a stream, and its parts."""
    began = time.perf_counter()
    first_token = None
    with closing(spoken(tts, 100, steps)) as turns:
        for chunk in turns:
            if chunk is not None:
                break
            if first_token is None:
                first_token = time.perf_counter() - began
    timings = chunk.timings
    prefill = first_token - timings["text"]
    return {
        "total": timings["total"],
        "text": timings["text"],
        "prefill": prefill,
        "tokens": timings["t3"] - prefill,
        "flow": timings["flow"],
        "vocoder": timings["vocoder"],
    }


def run(folder: Path, args: argparse.Namespace) -> harness.Results:
    backbone = harness.backbone_of(folder)

    def reference() -> dict[str, Any]:
        from nightingale.model_rules import RULES

        text_tokens = [(13 * i + 7) % 700 for i in range(len(TEXT) // 2)]
        kind = "time_turbo" if backbone == "gpt2" else "time_t3"
        t3_job = {"kind": kind, "folder": str(folder), "text_tokens": text_tokens}
        t3 = harness.run_reference(args, t3_job | {"steps": min(args.tokens, 100)})
        s3gen_job = {"kind": "time_s3gen", "folder": str(folder), "steps": args.steps}
        heard = args.tokens + len(RULES[backbone].closing_tokens)
        s3gen = harness.run_reference(args, s3gen_job | {"tokens": heard})
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
            "rtf": total * 25 / heard,
            "stages": stages,
        }

    names = ("tokens", "steps", "first", "utterances", "repeats", "whole", "beside")
    options = {name: getattr(args, name) for name in names}
    return harness.run_rounds("bench.speak", folder, args, options, reference)


def print_gpu_table(results: harness.Results, args: argparse.Namespace, folder: Path) -> None:
    gpu = harness.describe_machine("gpu")["name"]
    quoted = harness.backbone_of(folder) == "llama"
    steps = args.steps or "the model's own"
    print(f"First audio on {gpu}, warm, voice prepared, {steps} steps; ", end="")
    print(f"milliseconds, median (least-most) of {args.first}, and the median of each part")
    rows = [["", "first audio", "p90", *PARTS, "earlier by"]]
    theirs = h200.utterance_ms(10)
    for name in args.precisions:
        last = results[name][-1]
        parts = [f"{1000 * last['parts'][part]:.1f}" for part in PARTS]
        earlier = h200.times(theirs, last["first"]["median"], gpu) if quoted else ""
        row = [
            f"nightingale {name}",
            harness.format_ms(last["first"]),
            f"{1000 * last['first']['p90']:.1f}",
        ]
        rows.append([*row, *parts, earlier])
    if quoted:
        blanks = [""] * (len(PARTS) + 1)
        rows.append([f"{h200.REFERENCE}, 10 tokens", f"{theirs:.0f}", *blanks, ""])
    harness.print_table(rows)
    print()
    print(f"Whole utterances; milliseconds, median (least-most) of {args.repeats}")
    rows = [["", "tokens", "sound s", "all", *STAGES, "faster"]]
    for tokens in map(str, args.utterances):
        theirs = h200.utterance_ms(int(tokens))
        for name in args.precisions:
            said = results[name][-1]["utterances"][tokens]
            stages = [f"{1000 * said['stages'][stage]:.0f}" for stage in STAGES]
            faster = h200.times(theirs, said["total"]["median"], gpu) if quoted else ""
            row = [
                f"nightingale {name}",
                tokens,
                f"{said['audio_s']:.2f}",
                harness.format_ms(said["total"], 0),
            ]
            rows.append([*row, *stages, faster])
        if quoted:
            rows.append([h200.REFERENCE, tokens, "", f"{theirs:.0f}", "", "", "", ""])
    harness.print_table(rows)
    if quoted:
        print(f"{h200.REFERENCE}: the sum of its stages without T3's prefill, {h200.NOTE}")


def print_cpu_table(results: harness.Results, args: argparse.Namespace, folder: Path) -> None:
    reference = bool(results["reference"])
    header = [f"{args.tokens / 25:.0f} s on the CPU", "first audio s", "all s", "RTF"]
    rows = [header + [f"{stage} s" for stage in STAGES] + ["earlier by", "faster"] * reference]
    for name, runs in results.items():
        if not runs:
            continue
        label = "chatterbox-tts float32" if name == "reference" else f"nightingale {name}"
        row = [label, f"{harness.median_of(results, name, 'first_s'):.2f}"]
        row.append(f"{harness.median_of(results, name, 'total_s'):.1f}")
        row.append(f"{harness.median_of(results, name, 'rtf'):.2f}")
        row += [f"{median(run['stages'][stage] for run in runs):.1f}" for stage in STAGES]
        if reference:
            ours = name != "reference"
            for key in ("first_s", "total_s"):
                row.append(f"{harness.speedup(results, name, key):.1f}x" if ours else "")
        rows.append(row)
    harness.print_table(rows)


if __name__ == "__main__":
    main()
