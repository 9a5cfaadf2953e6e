"""What Apple's GPUs could do: counted work over published bandwidths and rates. No measurement.

python -m bench.roofline            prints docs/measurements/apple-projection.md
python -m bench.roofline --write    writes it
"""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tools.synthetic import SPEECH_VOCABULARY

from .apple_chips import IPHONES, MACS, SOURCES, Chip
from .op_counts import encoder, estimator, t3_forward, t3_step, total, vocoder
from .projection import (
    BOUND,
    CONTEXT,
    FIRST_CHUNK,
    LIKELY,
    PRECISIONS,
    PROMPT_POSITIONS,
    PROMPT_TOKENS,
    S3GEN,
    SENTENCE,
    STEPS,
    T3,
    VOICE_POSITIONS,
    Side,
    first_audio_s,
    flow_s,
    rtf,
    sentence_s,
    tokens_s,
    vocoder_s,
)
from .t3 import TEXT_TOKENS

PAGE = Path(__file__).parents[1] / "docs" / "measurements" / "apple-projection.md"
WIDTH = 110

Figure = Callable[[Chip, Side], float]


@dataclass(frozen=True)
class Target:
    goal: float
    stretch: float | None = None
    most: bool = False  # whether more is better

    def shown(self, likely: float, bound: float, digits: int) -> str:
        """Both sides; bold where the likely one meets the goal, bold and italic for the stretch."""

        def met(goal: float | None) -> bool:
            if goal is None:
                return False
            return likely >= goal if self.most else likely <= goal

        marks = "***" if met(self.stretch) else "**" if met(self.goal) else ""
        return f"{marks}{likely:.{digits}f}{marks} ({bound:.{digits}f})"


TOKENS_PER_S = Target(80, 100, most=True)
RTF = Target(1.0, 0.7)
FIRST_ON_MAC = Target(600, 400)
FIRST_ON_IPHONE = Target(1000, 700)
SENTENCE_S = Target(1.0)


def page() -> str:
    parts = (_introduction, _counted, _assumed, _chips, _t3, _sound, _first_audio, _sources)
    return "\n".join(line for part in parts for line in part())


def _paragraph(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(
        " ".join(text.split()),
        WIDTH,
        initial_indent=indent,
        subsequent_indent=" " * len(indent),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    rule = ["---", *["---:"] * (len(rows[0]) - 1)]
    return [f"| {' | '.join(row)} |" for row in (rows[0], rule, *rows[1:])] + [""]


def _introduction() -> list[str]:
    return [
        "# Apple GPUs: a projection",
        "",
        *_paragraph(
            """**Nothing on this page was measured on Apple hardware.** The command
            `python -m bench.roofline` computes it from counted work and published figures of the
            chips. The targets:"""
        ),
        "",
        *_table(
            [
                ["", "target", "stretch target"],
                ["T3, tokens per second", "80", "100"],
                ["S3Gen, real-time factor", "1.0", "0.7"],
                ["first audio on a Mac, ms", "600", "400"],
                ["first audio on an iPhone, ms", "1000", "700"],
                [f"a sentence of {SENTENCE} tokens, s", "1.0", ""],
            ]
        ),
        *_paragraph(
            """Cells hold two figures, **likely (bound)**. The bound divides bytes by bandwidth
            and FLOPs by the peak rate and takes the longer of the two, op by op, with free
            launches: nothing can be faster. The likely figure uses the shares of the peaks and the
            cost of a launch that others have measured (see below). It is **bold** where it meets
            the target and ***bold italic*** where it meets the stretch target."""
        ),
        "",
    ]


def _counted() -> list[str]:
    step = t3_step(T3, CONTEXT, 2, SPEECH_VOCABULARY)
    prefill = t3_forward(T3, VOICE_POSITIONS, PROMPT_POSITIONS, 2, SPEECH_VOCABULARY)
    stages = {
        f"T3, one token of two rows, context {CONTEXT}": step,
        f"T3, prefill of {TEXT_TOKENS} text tokens": prefill,
        "token encoder, 100 tokens": encoder(S3GEN, PROMPT_TOKENS + 100),
        "one ODE step of two rows, 100 tokens": estimator(S3GEN, 2 * PROMPT_TOKENS + 200),
        "vocoder, 4 s": vocoder(S3GEN, 200),
    }
    rows = [["", "GFLOP", "weights, M", "values, MB", "launches"]]
    for name, works in stages.items():
        counts = [total(works, of) for of in ("flops", "weights", "values", "launches")]
        scaled = (counts[0] / 1e9, counts[1] / 1e6, counts[2] / 1e6)
        rows.append([name, *(f"{count:,.1f}" for count in scaled), f"{counts[3]:,.0f}"])
    read = [
        f"{total(step, 'weights') * size / 1e6:,.0f} MB in {name}"
        for name, size in PRECISIONS.items()
    ]
    return [
        "## Counted work",
        "",
        *_table(rows),
        *_paragraph(
            f"""`bench/op_counts.py` counts from the sizes of the official tensors. The prompt of
            the voice is 10 s. Values are activations, windows of convolutions and T3's cache.
            `tests/test_bench.py` checks that the weights add up to every tensor of the checkpoint
            and to what a loaded model reports. A token reads these weights:
            {", ".join(read)} (groups of 64, scale and offset in float16). T3's launches are
            counted by the library (`python -m bench.t3 --device gpu`); those of S3Gen, MLX's and
            ours, are counted from the code. There is no host sync between tokens."""
        ),
        "",
    ]


def _assumed() -> list[str]:
    assumptions = (
        f"""**Bandwidth**: {LIKELY.bandwidth:.0%} of the published figure. A read of memory reached
        122 of 153 GB/s on an M5 [1], a 4-bit GEMV 316 of 400 on an M1 Max [2].""",
        f"""**Products**: {LIKELY.products:.0%} of the peak. MLX's matmul reached 12 to 20 of 27
        TFLOP/s on an M2 Ultra [3] and 16 to 19 of 21 on an M3 Ultra with 60 cores [4], MPS 1.6 of
        2.3 on an M1 [5].""",
        f"""**Attention**: {LIKELY.attention:.0%} of the peak. MLX's attention over 1,024
        positions reached 12 to 47 % of the rate of its matmul on an M3 Ultra [6].""",
        f"""**A launch**: {1e6 * LIKELY.launch:.1f} µs. Each of 832 small dependent kernels added
        this much to a token on an M2 Pro [7]; the host took 0.6 µs for each, in parallel.""",
        """**float16** runs at float32's rate on the shader cores up to M4 and A18 [8], at 1.7 times
        that on an A19 [9]. Matrix units (A19, M5) have separate rows: MLX uses them
        for products if the system is new enough.""",
        """T3 and flow run in float16 or as the column says, the vocoder in float32. Text
        processing, Python and reading the result take a few milliseconds and are left out.
        Thermal throttling is left out too.""",
    )
    return [
        "## Assumptions",
        "",
        *(line for text in assumptions for line in _paragraph(text, "- ")),
        "",
    ]


def _chips() -> list[str]:
    rows = [["", "GB/s", "float32 TFLOP/s", "float16", "matrix units, float16", "rates from"]]
    for chip in (*MACS, *IPHONES):
        rates = [
            f"{rate:.1f}" if rate else "" for rate in (chip.float32, chip.float16, chip.matrix)
        ]
        rows.append([chip.name, f"{chip.bandwidth:g}", *rates, chip.source])
    return [
        "## The chips",
        "",
        *_paragraph(
            """The largest variant of each chip. Apple publishes the bandwidths of Macs, none for
            iPhones, and no FLOP rates after the M2. The other figures come from third parties,
            which differ by a tenth."""
        ),
        "",
        *_table(rows),
        *(line for name, text in SOURCES.items() for line in _paragraph(f"*{name}*: {text}", "- ")),
        "",
    ]


def _pairs(chips: Sequence[Chip], target: Target, digits: int, figure: Figure) -> list[str]:
    return [target.shown(figure(chip, LIKELY), figure(chip, BOUND), digits) for chip in chips]


def _rows(chips: Sequence[Chip], columns: Sequence[Sequence[str]]) -> list[list[str]]:
    return [[chip.name, *cells] for chip, *cells in zip(chips, *columns, strict=True)]


def _t3() -> list[str]:
    def rate(weight: float) -> Figure:
        return lambda chip, side: 1 / tokens_s(chip, side, weight, CONTEXT, 1)

    chips = [*MACS, *IPHONES]
    columns = [_pairs(chips, TOKENS_PER_S, 0, rate(weight)) for weight in PRECISIONS.values()]
    return [
        "## T3",
        "",
        f"Both guidance rows, a context of {CONTEXT} positions. Speech is 25 tokens a second.",
        "",
        *_table([["tokens per second", *PRECISIONS], *_rows(chips, columns)]),
    ]


def _with_matrix_units(chips: Sequence[Chip]) -> list[Chip]:
    """The chips, and once more those whose matrix units can do the products."""
    rows = []
    for chip in chips:
        rows.append(chip)
        if chip.matrix:
            rows.append(replace(chip, name=f"{chip.name}, matrix units", float16=chip.matrix))
    return rows


def _sound() -> list[str]:
    def first_ms(weight: float) -> Figure:
        return lambda chip, side: 1000 * first_audio_s(chip, side, weight)

    def whole_s(weight: float) -> Figure:
        return lambda chip, side: sentence_s(chip, side, weight)

    header = ["", "S3Gen RTF", *(f"first audio ms, {name}" for name in PRECISIONS)]
    header += [f"sentence s, {name}" for name in PRECISIONS]
    lines = [
        "## Sound",
        "",
        *_paragraph(
            f"""S3Gen: 100 tokens after a prompt of 10 s, {STEPS} steps with guidance, and the
            vocoder. First audio: a stream's first {FIRST_CHUNK} tokens after a prefill of
            {TEXT_TOKENS} text tokens, with a voice that has been used. The sentence: {SENTENCE}
            tokens, generated as a whole."""
        ),
        "",
    ]
    for chips, first in ((MACS, FIRST_ON_MAC), (IPHONES, FIRST_ON_IPHONE)):
        rows = _with_matrix_units(chips)
        columns = [_pairs(rows, RTF, 2, rtf)]
        columns += [_pairs(rows, first, 0, first_ms(size)) for size in PRECISIONS.values()]
        columns += [_pairs(rows, SENTENCE_S, 2, whole_s(size)) for size in PRECISIONS.values()]
        lines += _table([header, *_rows(rows, columns)])
    ultra = next(chip for chip in MACS if chip.name == "M3 Ultra")
    token = 1000 * tokens_s(ultra, LIKELY, PRECISIONS["int4"], CONTEXT, 1)
    sound = 1000 * (flow_s(ultra, LIKELY, 88, 176) + vocoder_s(ultra, LIKELY, 176))
    return [
        *lines,
        *_paragraph(
            f"""For comparison: chatterbox.cpp (ggml, 4-bit weights) publishes 6.0 ms per token and
            720 ms of S3Gen for 3.5 s of speech on an M3 Ultra. The likely figures for Nightingale
            on that chip are {token:.1f} and {sound:.0f} ms."""
        ),
        "",
    ]


def _first_audio() -> list[str]:
    """What would bring the first audio down where the flow is what takes long."""
    ways: dict[str, dict[str, int]] = {
        f"{STEPS} steps, a prompt of 10 s": {},
        "8 steps": {"steps": 8},
        "a prompt of 5 s": {"prompt": PROMPT_TOKENS // 2},
        "8 steps and a prompt of 5 s": {"steps": 8, "prompt": PROMPT_TOKENS // 2},
        "a meanflow: 2 steps, no guidance": {"steps": 2, "rows": 1},
    }
    names = ("M1", "M2", "M4", "M4 Pro", "A16", "A17 Pro", "A19 Pro")
    chosen = [chip for chip in (*MACS, *IPHONES) if chip.name in names]

    def figure(flow: dict[str, int]) -> Figure:
        return lambda chip, side: 1000 * first_audio_s(chip, side, PRECISIONS["int8"], **flow)

    rows = [["first audio ms, int8", *names]]
    for name, flow in ways.items():
        targets = [FIRST_ON_MAC if chip in MACS else FIRST_ON_IPHONE for chip in chosen]
        cells = [
            _pairs([chip], target, 0, figure(flow))[0]
            for chip, target in zip(chosen, targets, strict=True)
        ]
        rows.append([name, *cells])
    return [
        "### Reducing the time to first audio",
        "",
        *_paragraph(
            """The flow takes most of the time, because every step attends to the voice's whole
            prompt. On most chips without matrix units it alone exceeds the target. Solving less of
            it helps:"""
        ),
        "",
        *_table(rows),
    ]


def _sources() -> list[str]:
    return [
        "## Sources",
        "",
        "1. <https://michaelstinkerings.org/apple-m5-gpu-roofline-analysis>",
        "2. <https://github.com/ggml-org/llama.cpp/pull/1642>, a comment of 2023-06-04",
        "3. <https://github.com/ml-explore/mlx/pull/424>",
        "4. <https://github.com/ml-explore/mlx/issues/3196>",
        "5. <https://github.com/JuliaGPU/Metal.jl/pull/80>",
        "6. <https://github.com/raullenchai/Rapid-MLX/pull/258>",
        "7. <https://github.com/antonellof/ferrox/issues/149>",
        "8. <https://github.com/philipturner/metal-benchmarks>",
        "9. <https://tzakharko.github.io/apple-neural-accelerators-benchmark>",
        "",
    ]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    if arguments.parse_args().write:
        PAGE.write_text(page(), "utf-8")
    else:
        print(page(), end="")


if __name__ == "__main__":
    main()
