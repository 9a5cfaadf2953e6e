"""The alignment analyser against the reference's, step by step."""

from __future__ import annotations

from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

from nightingale._core import ops

from . import cases

GOLDEN = Path(__file__).with_name("golden") / "analyser.npz"
# Places in the state's marks: csrc/nightingale/ops/alignment.h.
MARKS = ("frame", "text_position", "started", "complete", "token", "count", "suppressed", "forced")


def analyse(script: cases.AnalyserCase, form: str) -> dict[str, np.ndarray]:
    """Our analyser's marks after every step, and the stop logit it left."""
    marks, sums = ops.alignment_start()
    logits = mx.zeros(cases.STOP_SPEECH + 1)
    steps, stops, others = [], [], []
    for step, token in enumerate(script.tokens):
        rows = slice(0, 2) if step == 0 else slice(step + 1, step + 2)
        result, marks, sums = ops.alignment_step(
            [mx.array(head[rows]) for head in script.heads],
            logits,
            mx.array([int(token)]),
            marks,
            sums,
            cases.STOP_SPEECH,
            form,
        )
        steps.append(marks)
        stops.append(result[cases.STOP_SPEECH])
        others.append(result[0])
    table = np.array(mx.stack(steps))
    found = {name: table[:, place] for place, name in enumerate(MARKS)}
    return found | {"stop": np.array(mx.stack(stops)), "other": np.array(mx.stack(others))}


@pytest.mark.slow
@pytest.mark.parametrize("form", ["cpu", "gpu"])
def test_decisions_equal_the_reference(form: str) -> None:
    with np.load(GOLDEN) as file:
        golden = dict(file)
    ends = np.cumsum(golden["lengths"])
    for index, end in enumerate(ends):
        steps = slice(end - golden["lengths"][index], end)
        found = analyse(cases.analyser_case(index), form)
        for name in ("text_position", "started", "complete", "suppressed", "forced"):
            np.testing.assert_array_equal(found[name], golden[name][steps], err_msg=f"{index}")
        forced, suppressed = golden["forced"][steps] > 0, golden["suppressed"][steps] > 0
        expected = np.where(forced, 2.0**15, np.where(suppressed, -(2.0**15), 0))
        np.testing.assert_array_equal(found["stop"], expected)
        np.testing.assert_array_equal(found["other"], np.where(forced, -(2.0**15), 0))


def test_the_golden_scripts_reach_every_branch() -> None:
    with np.load(GOLDEN) as file:
        golden = dict(file)
    for fault in (1, 2, 4):  # long tail, text repetition, token repetition
        assert (golden["forced"] & fault).any()
    assert (golden["suppressed"] == 1).any()
    assert (golden["started"] == 0).any()  # a false start
    assert (golden["complete"] == 1).any()


@pytest.mark.parametrize("form", ["cpu", "gpu"])
@pytest.mark.parametrize("length", [1, 2, 3, 5])
def test_texts_the_reference_crashes_on_are_analysed(length: int, form: str) -> None:
    """Five text tokens or fewer: complete at once where the end is in reach, never suppressed."""
    heads = np.full((3, 9, length), 1 / length, np.float32)
    script = cases.AnalyserCase("short", heads, np.arange(8, dtype=np.int32))
    found = analyse(script, form)
    assert found["suppressed"].sum() == 0
    assert found["complete"][0] == (length <= 3)
