"""Other members of the family than v2 beside the reference itself, where it is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.synthetic import write_checkpoint

from . import cases, t3_runs
from .live import needs_reference
from .test_live import compare_greedy, compare_logits

pytestmark = needs_reference


@pytest.mark.parametrize("model", cases.MEMBERS)
def test_logits_and_greedy_tokens_equal_the_reference(model: str, tmp_path: Path) -> None:
    folder = tmp_path / model
    write_checkpoint(folder, model=model)
    worst = compare_logits(folder, range(6, 10), ((300, 400),), cases.MEMBERS[model])
    assert worst < t3_runs.LOGITS_BOUND
    compared, toss_ups = compare_greedy(folder, ("en",), 200)
    assert compared == 200
    assert toss_ups <= 2


@pytest.mark.full_size
@pytest.mark.parametrize("model", ["multilingual-v3", *cases.MEMBERS])
def test_full_size_logits_and_greedy_tokens_equal_the_reference(model: str, tmp_path: Path) -> None:
    folder = tmp_path / model
    write_checkpoint(folder, size="full", model=model)
    vocabulary = cases.MEMBERS.get(model, cases.TEXT_VOCABULARY)
    assert compare_logits(folder, range(2), ((60, 120),), vocabulary) < t3_runs.LOGITS_BOUND
    compared, toss_ups = compare_greedy(folder, ("en",), 200)
    assert compared == 200
    assert toss_ups <= 2
