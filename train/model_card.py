"""The model card of a checkpoint that the recipe made.

    python -m train.model_card MODEL EVALUATION.json CARD.md [--stages OUT]

MODEL is the folder that is shipped, EVALUATION.json the output of train.evaluate, OUT the output
folder of the stages. All figures are read from these; the text is in model_card.md.
"""

from __future__ import annotations

import json
import math
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from nightingale.checkpoint import Checkpoint, find_checkpoint
from nightingale.torch_file import open_tensors

from .evaluate import to_markdown
from .options import command_parser

S3GEN_PARTS = {  # by the prefix of their tensors; the other files have one part each
    "flow.": "S3Gen flow",
    "mel2wav.": "HiFT vocoder",
    "tokenizer.": "speech tokenizer",
    "speaker_encoder.": "speaker encoder (x-vector)",
}
STAGES = ("speech_tokenizer", "speakers", "vocoder", "flow", "meanflow", "t3")
TEXT = Path(__file__).with_suffix(".md")


def parameters(checkpoint: Checkpoint) -> dict[str, int]:
    """The number of parameters of each part."""
    found: dict[str, int] = defaultdict(int)
    files = {"T3": checkpoint.t3, "": checkpoint.s3gen, "voice encoder": checkpoint.voice_encoder}
    for whole, path in files.items():
        if path is None:
            continue
        file = open_tensors(path)
        for name in file.names():
            part = next((part for at, part in S3GEN_PARTS.items() if name.startswith(at)), whole)
            found[part] += math.prod(file.shape(name))
    return dict(found)


def sizes(checkpoint: Checkpoint) -> dict[str, int]:
    """The size of each file in the folder except the card, by relative path."""
    folder = checkpoint.folder
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".md")
    return {path.relative_to(folder).as_posix(): path.stat().st_size for path in files}


def stage_facts(out: Path) -> dict[str, dict[str, Any]]:
    """The JSON files of the stages that were run."""
    paths = {stage: out / f"{stage}.json" for stage in STAGES}
    return {
        stage: json.loads(path.read_text("utf-8")) for stage, path in paths.items() if path.exists()
    }


def model_card(checkpoint: Checkpoint, evaluation: dict, stages: dict[str, dict[str, Any]]) -> str:
    """The model card, in Markdown."""
    return TEXT.read_text("utf-8").format(
        language_tags=", ".join(checkpoint.languages),
        languages=", ".join(checkpoint.languages.values()),
        voices=", ".join(checkpoint.voices),
        sizes=_size_tables(checkpoint),
        training=_training_table(stages),
        scores=to_markdown(evaluation).rstrip(),
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
        return "The steps of each stage were not kept."
    lines = ["| stage | steps | hours of speech |", "|---|---|---|"]
    for stage, facts in stages.items():
        hours = f"{facts['hours']:.1f}" if "hours" in facts else ""
        lines.append(f"| {stage} | {facts['steps']:,} | {hours} |")
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    parser = command_parser("model_card", __doc__, "model", "evaluation", "card")
    parser.add_argument("--stages", type=Path, help="the output folder of the stages")
    options = parser.parse_args(arguments)
    evaluation = json.loads(options.evaluation.read_text("utf-8"))
    stages = stage_facts(options.stages) if options.stages else {}
    text = model_card(find_checkpoint(options.model), evaluation, stages)
    options.card.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
