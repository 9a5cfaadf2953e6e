"""S3Gen end to end: Nightingale's flow and vocoder beside the PyTorch reference, from one run.

    python -m bench.s3gen [--bits 8] [--reference PYTHON] [--rounds 2] [--json FILE]
    python -m bench.s3gen --device gpu [--folder CHECKPOINT] [--json FILE]

Full-size synthetic weights, 100 speech tokens (4 s) after a prompt of 10 s, 10 steps with guidance.
On a GPU everything is timed warm, ten times, and the vocoder also while it streams. Every
measurement is a process of its own, and the two sides take turns, so that a machine whose speed
drifts gives fair ratios. --reference names the Python that has chatterbox-tts
(tools/reference/environment.sh makes one); on a GPU its figures are quoted.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import median
from typing import Any

from . import h200, harness

EXACT = "float32"  # what the other precisions are compared with
ON_CPU = (EXACT, "bfloat16")
STAGES = ("flow_s", "vocoder_s")
FRAMES_PER_S = 50
FEEDS = (20, 50)  # frames that a stream gives to the vocoder at a time
WARM_UPS = 3


def main() -> None:
    measures = {"cpu": measure_cpu, "gpu": measure_gpu}
    harness.main(_arguments(), measures, run, {"cpu": print_cpu_table, "gpu": print_gpu_table})


def _arguments() -> argparse.Namespace:
    arguments = harness.make_parser(__doc__.splitlines()[0], ON_CPU, harness.DTYPES)
    harness.add_bits(arguments, "S3Gen on a CPU", (8,))
    arguments.add_argument("--tokens", type=int, default=100)
    arguments.add_argument("--steps", type=int, default=10)
    arguments.add_argument("--repeats", type=int, default=10, help="on a GPU")
    return harness.parse(arguments)


def speech_tokens(count: int) -> list[int]:
    return [(37 * i + 5) % 6561 for i in range(count)]


def measure_cpu(folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Seconds of flow and vocoder at one precision, once."""
    tts = harness.load(folder, args.measure, "cpu")
    tokens = speech_tokens(args.tokens)
    mel = tts.mel(tokens, steps=1)  # pages in, threads up
    tts.vocode(mel)
    return {
        "flow_s": harness.time_runs(lambda: tts.mel(tokens, steps=args.steps), 1)[0],
        "vocoder_s": harness.time_runs(lambda: tts.vocode(mel), 1)[0],
        "audio_s": mel.shape[1] / FRAMES_PER_S,
        "products": tts.info["flow"]["products"],
        "weight_bytes": sum(tts.info[part]["weight_bytes"] for part in ("flow", "vocoder")),
    }


def measure_gpu(folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Warm flow and vocoder at one precision, whole and streaming, and the launches they take."""
    from nightingale import _core

    tts = harness.load(folder, args.measure, "gpu")

    def timed(work: Any) -> dict[str, float]:
        return harness.summarize(harness.time_runs(work, args.repeats, WARM_UPS))

    def launches(work: Any) -> int:
        before = _core.kernel_launches()
        work()
        return _core.kernel_launches() - before

    tokens, few = speech_tokens(args.tokens), speech_tokens(10)
    mel = tts.mel(tokens, steps=args.steps)
    flow = timed(lambda: tts.mel(tokens, steps=args.steps))
    vocoder = timed(lambda: tts.vocode(mel))
    audio_s = mel.shape[1] / FRAMES_PER_S
    return {
        "flow": flow,
        "flow_of_10": timed(lambda: tts.mel(few, steps=args.steps)),
        "vocoder": vocoder,
        "feeds": {
            str(frames): harness.summarize(feed_seconds(tts, frames, args.repeats))
            for frames in FEEDS
        },
        "audio_s": audio_s,
        "rtf": (flow["median"] + vocoder["median"]) / audio_s,
        "products": tts.info["flow"]["products"],
        "flow_launches": launches(lambda: tts.mel(tokens, steps=args.steps)),
        "vocoder_launches": launches(lambda: tts.vocode(mel)),
    }


def feed_seconds(tts: Any, frames: int, repeats: int) -> list[float]:
    """What each feed of a stream takes once the vocoder's look-ahead is filled."""
    import numpy as np

    engine = tts._engine
    rows = np.ascontiguousarray(tts.mel(speech_tokens(50), steps=1).T)
    state = engine.begin_sound(0)
    while len(engine.sound(state, rows[:frames], last=False)) < 480 * frames:
        pass
    return harness.time_runs(
        lambda: engine.sound(state, rows[:frames], last=False), repeats, WARM_UPS
    )


def run(folder: Path, args: argparse.Namespace) -> harness.Results:
    def reference() -> dict[str, Any]:
        job = {"kind": "time_s3gen", "folder": str(folder)}
        out = harness.run_reference(args, job | {"tokens": args.tokens, "steps": args.steps})
        return {stage: float(median(out[stage])) for stage in STAGES}

    options = {"tokens": args.tokens, "steps": args.steps, "repeats": args.repeats}
    return harness.run_rounds("bench.s3gen", folder, args, options, reference)


def compare(folder: Path, args: argparse.Namespace) -> dict[str, tuple[float, float]]:
    """How near each precision comes to float32: the correlation of the mels they make of the same
    noise, and the SNR in dB of the sound of one mel."""
    import numpy as np

    made = {}
    for name in dict.fromkeys((EXACT, *args.precisions)):
        tts = harness.load(folder, name, args.device)
        mel = tts.mel(speech_tokens(args.tokens), steps=args.steps)
        exact_mel = made[EXACT][0] if made else mel
        made[name] = (mel, tts.vocode(exact_mel))
    mel, sound = made.pop(EXACT)

    def nearness(other: tuple[Any, Any]) -> tuple[float, float]:
        error = np.square(other[1] - sound).mean()
        snr = np.inf if error == 0 else 10 * np.log10(np.square(sound).mean() / error)
        return float(np.corrcoef(mel.ravel(), other[0].ravel())[0, 1]), float(snr)

    return {name: nearness(other) for name, other in made.items()}


def print_gpu_table(results: harness.Results, args: argparse.Namespace, folder: Path) -> None:
    gpu = harness.describe_machine("gpu")["name"]
    print(f"S3Gen on {gpu}, {args.tokens} tokens after a prompt of 10 s, ", end="")
    print(f"{args.steps} steps; milliseconds, median (least-most) of {args.repeats}")
    feeds = [f"feed of {frames} frames" for frames in FEEDS]
    header = ["", "flow", "flow, 10 tokens", "vocoder", *feeds, "rtf", "launches"]
    rows = [[*header, "flow x", "vocoder x"]]
    for name in args.precisions:
        last = results[name][-1]
        times = [last["flow"], last["flow_of_10"], last["vocoder"], *last["feeds"].values()]
        flow, vocoder = (
            h200.times(theirs[h200.REFERENCE], last[stage]["median"], gpu)
            for theirs, stage in ((h200.FLOW, "flow"), (h200.VOCODER, "vocoder"))
        )
        rows.append(
            [
                f"nightingale {name}",
                *map(harness.format_ms, times),
                f"{last['rtf']:.3f}",
                f"{last['flow_launches']} + {last['vocoder_launches']}",
                flow,
                vocoder,
            ]
        )
    harness.print_table(rows)
    print("launches: of our own kernels, in flow and vocoder; MLX's products are not counted.")
    print(f"x: how many times as fast as {h200.REFERENCE}.")
    print(f"Milliseconds, {h200.NOTE}:")
    rows = [["  ", "flow", "flow, 10 tokens", "vocoder"]]
    for name in h200.FLOW:
        figures = (h200.FLOW[name], h200.FLOW_OF_10[name], h200.VOCODER[name])
        rows.append([f"  {name}", *(f"{figure:.0f}" for figure in figures)])
    harness.print_table(rows)


def print_cpu_table(results: harness.Results, args: argparse.Namespace, folder: Path) -> None:
    reference = bool(results["reference"])
    audio = results[args.precisions[0]][0]["audio_s"]
    header = ["S3Gen on the CPU", "products", "weights MB", "flow s", "vocoder s", "rtf"]
    rows = [header + ["flow x", "vocoder x"] * reference]

    def figures(name: str) -> list[str]:
        flow, vocoder = (harness.median_of(results, name, stage) for stage in STAGES)
        return [f"{flow:.2f}", f"{vocoder:.2f}", f"{(flow + vocoder) / audio:.2f}"]

    for name in args.precisions:
        first = results[name][0]
        size = f"{first['weight_bytes'] / 1e6:.0f}"
        row = [f"nightingale {name}", first["products"], size, *figures(name)]
        if reference:
            row += [f"{harness.speedup(results, name, stage):.2f}x" for stage in STAGES]
        rows.append(row)
    if reference:
        rows.append(["chatterbox-tts float32", "float32", "", *figures("reference"), "", ""])
    harness.print_table(rows)
    print_likeness(results, compare(folder, args))


def print_likeness(results: harness.Results, likeness: dict[str, tuple[float, float]]) -> None:
    rows = [[f"beside {EXACT}", "flow x", "vocoder x", "mel correlation", "sound SNR dB"]]
    for name, (correlation, snr) in likeness.items():
        times = [""] * len(STAGES)
        if EXACT in results:
            times = [f"{harness.speedup(results, name, stage, EXACT):.2f}x" for stage in STAGES]
        rows.append([name, *times, f"{correlation:.6f}", f"{snr:.1f}"])
    harness.print_table(rows)


if __name__ == "__main__":
    main()
