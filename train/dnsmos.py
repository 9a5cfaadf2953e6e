"""DNSMOS, a second prediction of naturalness, of the clips of an evaluation and of the teacher's.

    python -m train.dnsmos EVALUATION [--limit N]

EVALUATION is the output folder of train.evaluate, which has the clips. Prints a table of their
means by set, teacher → model, and writes EVALUATION/dnsmos.json. Needs `pip install speechmos
librosa onnxruntime soxr`; the package has the networks. A clip takes a second.
"""

from __future__ import annotations

import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import soundfile

from .options import command_parser
from .state import write_json

RATE = 16000
SCORES = {  # of speechmos, and what they are called here
    "sig_mos": "speech",
    "bak_mos": "background",
    "ovrl_mos": "overall",
    "p808_mos": "P.808",
}
PAIRS = ("teacher", "student")


def pairs(evaluation: Path, limit: int | None) -> dict[str, list[tuple[Path, Path]]]:
    """The teacher's and the student's clip of each sentence, by set; the first `limit` of each."""
    found = defaultdict(list)
    for clip in sorted((evaluation / "student").glob("*.wav")):
        teacher = next(evaluation.glob(f"teacher*/{clip.name}"), None)
        if teacher is not None:
            found[clip.stem.partition("-")[0]].append((teacher, clip))
    return {name: rows[:limit] for name, rows in found.items()}


def score(clip: Path) -> dict[str, float]:
    import soxr
    from speechmos import dnsmos

    samples, rate = soundfile.read(clip, dtype="float32")
    found = dnsmos.run(np.clip(soxr.resample(samples, rate, RATE), -1, 1), RATE)
    return {name: float(found[key]) for key, name in SCORES.items()}


def evaluate(evaluation: Path, limit: int | None) -> dict[str, dict]:
    """The means of both by set."""
    found = {}
    for name, clips in pairs(evaluation, limit).items():
        scores = [[score(clip) for clip in both] for both in clips]
        found[name] = {"clips": len(clips)} | {
            who: {key: _mean(both[i][key] for both in scores) for key in SCORES.values()}
            for i, who in enumerate(PAIRS)
        }
    return found


def _mean(values: Iterable[float]) -> float:
    return round(statistics.mean(values), 3)


def to_markdown(found: dict[str, dict]) -> str:
    lines = [
        "| | clips | " + " | ".join(SCORES.values()) + " |",
        "|---|---|" + "---|" * len(SCORES),
    ]
    for name, figures in found.items():
        teacher, student = (figures[who] for who in PAIRS)
        cells = [f"{teacher[key]} → {student[key]}" for key in SCORES.values()]
        lines.append(f"| {name} | {figures['clips']} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> None:
    parser = command_parser("dnsmos", __doc__, "evaluation")
    parser.add_argument("--limit", type=int, help="clips of each set; default: all")
    options = parser.parse_args(arguments)
    found = evaluate(options.evaluation, options.limit)
    if not found:
        raise SystemExit(f"{options.evaluation} has no clips of the teacher and the model")
    write_json(options.evaluation / "dnsmos.json", found)
    print(to_markdown(found))


if __name__ == "__main__":
    main(sys.argv[1:])
