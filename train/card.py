"""The model card of a checkpoint that the recipe made.

    python -m train.card MODEL EVALUATION.json CARD.md [--stages OUT]

MODEL is the folder that is shipped, EVALUATION.json what train.evaluate wrote of it, OUT the folder
that the stages wrote to. All figures are read from these; what else there is to say is in card.md.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import defaultdict
from pathlib import Path
from typing import Any

from nightingale._core import TensorFile
from nightingale.checkpoint import Checkpoint, find_checkpoint

from .evaluate import in_markdown

S3GEN_PARTS = {  # by how the names of their tensors begin; the other files hold one part each
    "flow.": "S3Gen flow",
    "mel2wav.": "HiFT vocoder",
    "tokenizer.": "speech tokenizer",
    "speaker_encoder.": "speaker encoder (x-vector)",
}
STAGES = ("speech_tokenizer", "speakers", "vocoder", "flow", "meanflow", "t3")
TEXT = Path(__file__).with_suffix(".md")


def parameters(checkpoint: Checkpoint) -> dict[str, int]:
    """Numbers in the tensors of each part."""
    found: dict[str, int] = defaultdict(int)
    files = {"T3": checkpoint.t3, "": checkpoint.s3gen, "voice encoder": checkpoint.voice_encoder}
    for whole, path in files.items():
        if path is None:
            continue
        file = TensorFile.open(str(path))
        for name in file.names():
            part = next((part for at, part in S3GEN_PARTS.items() if name.startswith(at)), whole)
            found[part] += math.prod(file.shape(name))
    return dict(found)


def sizes(checkpoint: Checkpoint) -> dict[str, int]:
    """Bytes of each file of the folder, but for the card itself, by its path in it."""
    folder = checkpoint.folder
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".md")
    return {path.relative_to(folder).as_posix(): path.stat().st_size for path in files}


def stage_facts(out: Path) -> dict[str, dict[str, Any]]:
    """What the stages wrote of themselves, of those that were run."""
    paths = {stage: out / f"{stage}.json" for stage in STAGES}
    return {
        stage: json.loads(path.read_text("utf-8")) for stage, path in paths.items() if path.exists()
    }


def card(checkpoint: Checkpoint, evaluation: dict, stages: dict[str, dict[str, Any]]) -> str:
    """The model card, in Markdown."""
    return TEXT.read_text("utf-8").format(
        languages=", ".join(checkpoint.languages.values()),
        voices=", ".join(checkpoint.voices),
        sizes=_size_tables(checkpoint),
        training=_training_table(stages),
        scores=in_markdown(evaluation).rstrip(),
    )


def _size_tables(checkpoint: Checkpoint) -> str:
    found, counts = sizes(checkpoint), parameters(checkpoint)
    lines = [f"{sum(found.values()) / 1e6:.1f} MB in all.", "", "| file | MB |", "|---|---|"]
    lines += [f"| `{name}` | {size / 1e6:.2f} |" for name, size in found.items()]
    lines += ["", "| part | million parameters |", "|---|---|"]
    lines += [f"| {part} | {count / 1e6:.2f} |" for part, count in counts.items()]
    return "\n".join([*lines, f"| all | {sum(counts.values()) / 1e6:.2f} |"])


def _training_table(stages: dict[str, dict[str, Any]]) -> str:
    if not stages:
        return "How long each stage was trained was not kept."
    lines = ["| stage | steps | hours of speech |", "|---|---|---|"]
    for stage, facts in stages.items():
        hours = f"{facts['hours']:.1f}" if "hours" in facts else ""
        lines.append(f"| {stage} | {facts['steps']:,} | {hours} |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m train.card",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("evaluation", type=Path)
    parser.add_argument("card", type=Path)
    parser.add_argument("--stages", type=Path)
    given = parser.parse_args(arguments)
    evaluation = json.loads(given.evaluation.read_text("utf-8"))
    stages = stage_facts(given.stages) if given.stages else {}
    text = card(find_checkpoint(given.model), evaluation, stages)
    given.card.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
