"""Comparison with the reference itself, where it is installed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nightingale
from tools.reference.client import run_reference
from tools.synthetic import write_checkpoint

from . import cases, t3_runs
from .live import needs_reference
from .test_alignment import analyse
from .test_sampling import assert_same_choice, probabilities

pytestmark = needs_reference

MANY = 1000


@pytest.fixture(scope="module")
def full_checkpoint(tmp_path_factory: pytest.TempPathFactory):
    """Writes the full-size checkpoint of a seed; one is kept at a time."""
    folder = tmp_path_factory.mktemp("full") / "checkpoint"

    def write(seed: int) -> Path:
        write_checkpoint(folder, size="full", seed=seed)
        return folder

    return write


def compare_logits(
    folder: Path,
    indices: range,
    longer: tuple[tuple[int, int], ...],
    vocabulary: int = cases.TEXT_VOCABULARY,
) -> float:
    """Largest relative error of teacher-forced and stepwise logits over the cases."""
    runs = [cases.logits_case(i, vocabulary) for i in indices]
    for text, speech in longer:
        runs.append(
            {
                "text_tokens": cases.text_tokens(text, "long", vocabulary=vocabulary),
                "speech_tokens": cases.speech_tokens(speech, "long"),
                "prompt": True,
                "emotion": 0.5,
            }
        )
    jobs = [
        {"name": str(i), "kind": "logits", "folder": folder, **run} for i, run in enumerate(runs)
    ]
    expected = run_reference(jobs)
    tts = nightingale.load(folder, device="cpu")
    worst = 0.0
    for i, run in enumerate(runs):
        reference = expected[f"{i}/logits"]
        for chunk in (0, 1):
            error = t3_runs.relative_error(t3_runs.logits(tts, run, chunk), reference)
            worst = max(worst, error)
    return worst


def compare_greedy(folder: Path, languages: tuple[str, ...], steps: int) -> tuple[int, int]:
    """(steps compared, toss-ups): every other token must be the reference's."""
    tts = nightingale.load(folder, device="cpu")
    texts = {"en": "The birch canoe slid on the smooth planks.", "fr": "Où est la bibliothèque ?"}
    compared = toss_ups = 0
    for language in languages:
        case = {"text_tokens": tts.tokenize(texts[language], language), "steps": steps}
        job = {"name": "run", "kind": "decode", "folder": folder, **case}
        ours = t3_runs.greedy(tts, case)
        # Forced along our tokens, the reference says at every step what it would have chosen.
        expected = run_reference([job | {"forced_tokens": ours}])
        differs = expected["run/choices"] != ours
        assert (expected["run/gaps"][differs] < t3_runs.LOGITS_BOUND).all()
        compared += len(ours)
        toss_ups += int(differs.sum())
    return compared, toss_ups


def test_logits_equal_the_reference(checkpoint: Path) -> None:
    assert compare_logits(checkpoint, range(6, 16), ((300, 400),)) < t3_runs.LOGITS_BOUND


def test_greedy_tokens_equal_the_reference(checkpoint: Path) -> None:
    compared, toss_ups = compare_greedy(checkpoint, ("en", "fr"), 200)
    assert compared == 400
    assert toss_ups <= 2


def test_1000_sampler_cases_equal_transformers() -> None:
    jobs = [{"name": str(i), "kind": "sample", **cases.sampler_case(i)} for i in range(MANY)]
    expected = run_reference(jobs)
    for index in range(MANY):
        case, reference = cases.sampler_case(index), expected[f"{index}/probabilities"]
        found = probabilities(case, "cpu")
        assert_same_choice(case, found, reference > 0)
        if not ((found > 0) != (reference > 0)).any():
            np.testing.assert_allclose(found, reference, rtol=2e-5, atol=1e-7)


def test_1000_scripted_analyses_equal_the_reference() -> None:
    scripts = [cases.analyser_case(i) for i in range(MANY)]
    jobs = [
        {"name": str(i), "kind": "analyse", "heads": script.heads, "tokens": script.tokens}
        for i, script in enumerate(scripts)
    ]
    expected = run_reference(jobs)
    reached = 0
    for index, script in enumerate(scripts):
        found = analyse(script, "cpu")
        for name in ("text_position", "started", "complete", "suppressed", "forced"):
            np.testing.assert_array_equal(found[name], expected[f"{index}/{name}"])
        reached |= int(np.bitwise_or.reduce(found["forced"]))
    assert reached == 7  # long tail, text repetition, token repetition


@pytest.mark.full_size
def test_full_size_logits_equal_the_reference(full_checkpoint) -> None:
    worst = compare_logits(full_checkpoint(0), range(6), ((60, 120), (300, 400)))
    assert worst < t3_runs.LOGITS_BOUND


@pytest.mark.full_size
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_full_size_greedy_tokens_equal_the_reference(full_checkpoint, seed: int) -> None:
    compared, toss_ups = compare_greedy(full_checkpoint(seed), ("en", "fr"), 200)
    assert compared == 400
    assert toss_ups <= 4
