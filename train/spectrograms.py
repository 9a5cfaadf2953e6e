"""Spectrograms of the teacher and the student for the same sentences, side by side.

    python -m train.spectrograms EVALUATION OUT [--id ID ...]

EVALUATION is the output folder of train.evaluate, which has the clips. Without ids the first
sentence of each language is drawn, as OUT/LANGUAGE.png.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import soundfile
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nightingale.validate.log_mel import HOP, hertz_to_band, log_mel

from .clips import RATE, read_index
from .evaluation_sentences import LANGUAGES
from .options import command_parser

MAX_BYTES = 150_000
INCHES, DPI = (9.6, 2.8), 100
SHADES = 20  # few, for small files
RANGE = 7.0  # nats from the loudest to black
TICKS = (100, 500, 1000, 2000, 4000, 7500)  # Hz


def draw(evaluation: Path, out: Path, ids: Sequence[str]) -> list[Path]:
    """Draws the sentences of these ids, or the first of each language. → the files"""
    said = {row["id"]: row for path in _teachers(evaluation) for row in read_index(path)}
    names = {id: id for id in ids} or {f"{code}-{code}-000": code for code in LANGUAGES}
    missing = [id for id in names if id not in said]
    if missing:
        raise SystemExit(f"the teacher has no clip of {', '.join(missing)} in {evaluation}")
    out.mkdir(parents=True, exist_ok=True)
    return [_draw(evaluation, said[id], out / f"{name}.png") for id, name in names.items()]


def _teachers(evaluation: Path) -> list[Path]:
    return [path.parent for path in sorted(evaluation.glob("teacher*/index.jsonl"))]


def _draw(evaluation: Path, row: dict, path: Path) -> Path:
    clips = {
        "teacher": next(evaluation.glob(f"teacher*/{row['id']}.wav")),
        "student": evaluation / "student" / f"{row['id']}.wav",
    }
    mels = {who: log_mel(soundfile.read(clip, dtype="float32")[0]) for who, clip in clips.items()}
    draw_figure(row["text"], mels).savefig(path, dpi=DPI)
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise SystemExit(f"{path} has {size} bytes, more than {MAX_BYTES}: draw a shorter clip")
    return path


def draw_figure(text: str, mels: dict[str, np.ndarray]) -> Figure:
    """mels: [80, frames] of each speaker, drawn with the same scales"""
    figure = Figure(figsize=INCHES, layout="constrained")
    figure.suptitle(textwrap.shorten(text, 90, placeholder=" …"), fontsize=11, parse_math=False)
    loudest = max(mel.max() for mel in mels.values())
    longest = max(mel.shape[1] for mel in mels.values()) * HOP / RATE
    panels = figure.subplots(1, len(mels), sharey=True)
    for axes, (who, mel) in zip(panels, mels.items(), strict=True):
        _draw_mel(axes, mel, loudest)
        axes.set_xlim(0, longest)
        axes.set_title(f"{who}, {mel.shape[1] * HOP / RATE:.2f} s", fontsize=9)
        axes.set_xlabel("seconds", fontsize=8)
        axes.tick_params(labelsize=7)
    return figure


def _draw_mel(axes: Axes, mel: np.ndarray, loudest: float) -> None:
    shade = np.clip(np.ceil((mel - loudest + RANGE) / RANGE * SHADES), 0, SHADES)
    axes.imshow(
        shade,
        origin="lower",
        aspect="auto",
        extent=(0, mel.shape[1] * HOP / RATE, -0.5, len(mel) - 0.5),
        cmap="magma",
        vmin=0,
        vmax=SHADES,
        interpolation="nearest",
    )
    axes.set_yticks([hertz_to_band(tick) for tick in TICKS], [f"{tick:,}" for tick in TICKS])


def main(arguments: list[str]) -> None:
    parser = command_parser("spectrograms", __doc__, "evaluation", "out")
    parser.add_argument("--id", action="append", default=[], dest="ids", help="of a sentence")
    for path in draw(**vars(parser.parse_args(arguments))):
        print(path)


if __name__ == "__main__":
    main(sys.argv[1:])
