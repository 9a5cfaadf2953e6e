"""Every stage that is asked to end saves what it has, reports, and ends well."""

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
from train.clock import Clock

torch.set_num_threads(1)
tick = Clock.tick

def tick_and_end(clock):
    if clock.step == 2 and clock.minutes is not None:
        os.kill(os.getpid(), signal.SIGTERM)
    return tick(clock)

Clock.tick = tick_and_end
sys.argv = sys.argv[1:]
runpy.run_module(sys.argv[0], run_name="__main__")
"""


@pytest.mark.parametrize(
    ("stage", "options"),
    [
        ("speech_tokenizer", ["--seconds", "10"]),
        ("speakers", ["--seconds", "10"]),
        ("vocoder", ["--windows", "2"]),
        ("t3", ["--positions", "512"]),
    ],
)
def test_a_stage_that_is_asked_to_end_saves_and_ends_well(
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
from train.alignment import Phonemes
from train.clock import Clock
from train.data import Corpus, load_tokens
from train.networks.t3 import SIZES
from train.t3_batches import batch_loader
from train.t3_examples import Examples, spoken_rows

folder = Path(sys.argv[1])
rows = Corpus(folder, "cpu").rows
made = spoken_rows(rows, range(len(rows)), load_tokens(folder / "tokens.npz"), Phonemes(rows))
examples = Examples(made, np.ones((len(rows), 256), np.float32), SIZES["tiny"], 0)
clock = Clock(steps=1000).heed_termination()
after = 0
for batch in batch_loader(examples, 512, 0, on_gpu=False, workers=2):
    if clock.tick() and clock.step == 2:
        os.killpg(0, signal.SIGTERM)
    after += clock.terminated
    if after == 20:  # more than were made ahead
        break
print("ended after", clock.step, "batches")
"""


def test_processes_that_make_batches_outlive_a_signal_to_all(spoken_corpus: Path) -> None:
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
