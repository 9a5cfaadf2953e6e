"""T3 of Turbo and Nano against the reference itself, where it is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.reference.client import run_reference

from . import turbo_runs
from .live import needs_reference
from .t3_runs import LOGITS_BOUND, relative_error

pytestmark = needs_reference

MANY = 1000


def compare_logits(path: Path, indices: range) -> float:
    """Largest relative error of teacher-forced and stepwise logits over the cases."""
    cases = {str(i): turbo_runs.logits_case(i) for i in indices}
    jobs = [
        {"name": name, "kind": "turbo_logits", "checkpoint": path, **case}
        for name, case in cases.items()
    ]
    expected = run_reference(jobs)
    model = turbo_runs.load(path)
    return max(
        relative_error(turbo_runs.logits(model, case, chunk), expected[f"{name}/logits"])
        for name, case in cases.items()
        for chunk in (0, 1)
    )


def compare_greedy(path: Path, count: int) -> tuple[int, int]:
    """(steps compared, toss-ups): every other token must be the reference's."""
    model = turbo_runs.load(path)
    compared = toss_ups = 0
    for index in range(count):
        case = turbo_runs.decode_case(index)
        ours = turbo_runs.greedy(model, case)
        job = {"name": "run", "kind": "turbo_decode", "checkpoint": path, **case}
        # Forced along our tokens, the reference says at every step what it would have chosen.
        expected = run_reference([job | {"forced_tokens": ours}])
        differs = expected["run/choices"] != ours
        assert (expected["run/gaps"][differs] < LOGITS_BOUND).all()
        compared += len(ours)
        toss_ups += int(differs.sum())
    return compared, toss_ups


@pytest.mark.parametrize("model", turbo_runs.MODELS)
def test_a_small_model_equals_the_reference(tmp_path: Path, model: str) -> None:
    path = turbo_runs.write_t3(tmp_path, model, seed=1)
    assert compare_logits(path, range(12)) < LOGITS_BOUND
    compared, toss_ups = compare_greedy(path, 2)
    assert compared == 400
    assert toss_ups <= 2


def test_1000_sampler_cases_equal_the_reference() -> None:
    cases = [turbo_runs.sampler_case(i) for i in range(MANY)]
    jobs = [{"name": str(i), "kind": "turbo_sample", **case} for i, case in enumerate(cases)]
    expected = run_reference(jobs)
    for index, case in enumerate(cases):
        for step in ("first", "later"):
            found = turbo_runs.probabilities(case, "cpu", step == "first")
            turbo_runs.assert_same_probabilities(case, found, expected[f"{index}/{step}"])


@pytest.mark.full_size
@pytest.mark.parametrize("model", turbo_runs.MODELS)
def test_a_full_size_model_equals_the_reference(tmp_path: Path, model: str) -> None:
    path = turbo_runs.write_t3(tmp_path, model, size="full")
    assert compare_logits(path, range(len(turbo_runs.LOGITS_CORNERS))) < LOGITS_BOUND
    compared, toss_ups = compare_greedy(path, 1)
    assert compared == 200
    assert toss_ups <= 2
