"""Every stage saves its weights, reports and exits with status 0 on SIGTERM."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

# The stage gets the signal in its second step of nine.
ASKED_TO_END = """
import os, runpy, signal, sys
import torch
from train.schedule import Schedule

torch.set_num_threads(1)
next_step = Schedule.next_step

def next_step_and_end(schedule):
    if schedule.step == 2 and schedule.minutes is not None:
        os.kill(os.getpid(), signal.SIGTERM)
    return next_step(schedule)

Schedule.next_step = next_step_and_end
sys.argv = sys.argv[1:]
runpy.run_module(sys.argv[0], run_name="__main__")
"""


@pytest.mark.parametrize(
    ("stage", "options"),
    [
        ("speech_tokenizer", ["--batch-seconds", "10"]),
        ("speakers", ["--batch-seconds", "10"]),
        ("vocoder", ["--batch-windows", "2"]),
        ("t3", ["--batch-positions", "512"]),
    ],
)
def test_a_stage_saves_and_exits_with_0_on_sigterm(
    spoken_corpus: Path, tmp_path: Path, stage: str, options: list[str]
) -> None:
    if stage == "t3":
        options = [*options, "--tokens", spoken_corpus / "tokens.npz"]
        options += ["--speakers", spoken_corpus / "speakers.npz"]
    fixed = ["--size", "tiny", "--device", "cpu", "--minutes", "1000", "--steps", "9"]
    command = [sys.executable, "-c", ASKED_TO_END, f"train.{stage}", spoken_corpus, tmp_path]
    root = Path(__file__).parents[2]
    ended = subprocess.run(
        [*command, *fixed, *options],
        env=os.environ | {"PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / f"{stage}.safetensors").exists()
    facts = json.loads((tmp_path / f"{stage}.json").read_text())
    assert facts["steps"] == 3
    assert "step 3" in ended.stdout


# The signal reaches the processes that make batches, too.
ALL_ASKED_TO_END = """
import os, signal, sys
from pathlib import Path
import numpy as np
from train.alignment import PhonemeVocabulary
from train.schedule import Schedule
from train.data import Corpus, load_tokens
from train.networks.t3 import SIZES
from train.t3_examples import batch_loader
from train.t3_examples import Examples, batch_loader, spoken_rows

folder = Path(sys.argv[1])
rows = Corpus(folder, "cpu").rows
phonemes = PhonemeVocabulary(rows)
made = spoken_rows(rows, range(len(rows)), load_tokens(folder / "tokens.npz"), phonemes)
examples = Examples(made, np.ones((len(rows), 256), np.float32), SIZES["tiny"], 0)
schedule = Schedule(steps=1000).stop_on_sigterm()
after = 0
for batch in batch_loader(examples, 512, 0, on_gpu=False, workers=2):
    if schedule.next_step() and schedule.step == 2:
        os.killpg(0, signal.SIGTERM)
    after += schedule.terminated
    if after == 20:  # more than were made ahead
        break
print("ended after", schedule.step, "batches")
"""


def test_batch_workers_ignore_sigterm(spoken_corpus: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", ALL_ASKED_TO_END, spoken_corpus],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "ended after 21 batches\n"
