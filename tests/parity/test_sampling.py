"""The sampler against transformers' logits processors, and its draws against chance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from nightingale._core import ops
from nightingale.options import SpeechOptions

from . import cases

GOLDEN = Path(__file__).with_name("golden") / "sampler.npz"
FORMS = ("cpu", "gpu")


def probabilities(case: dict[str, Any], form: str) -> np.ndarray:
    """What a token would be drawn from, with our ops."""
    seen = np.zeros(cases.SPEECH_VOCABULARY, np.uint8)
    seen[case["seen"]] = 1
    names = ("temperature", "repetition_penalty", "min_p", "top_p")
    options = SpeechOptions(**{name: float(case[name]) for name in names}).resolved({})
    kept = ops.filter_logits(mx.array(case["logits"]), mx.array(seen), options, form)
    scores = np.array(kept, dtype=np.float64)
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


def assert_same_choice(case: dict[str, Any], found: np.ndarray, kept: np.ndarray) -> None:
    differing = (found > 0) != kept
    uncertain = cases.uncertain_tokens(case)
    assert not (differing & ~uncertain).any(), np.flatnonzero(differing & ~uncertain)


@pytest.mark.parametrize("form", FORMS)
def test_kept_set_and_probabilities_equal_transformers(form: str) -> None:
    with np.load(GOLDEN) as file:
        golden = dict(file)
    for index in range(len(golden["kept"])):
        case = cases.sampler_case(index)
        found = probabilities(case, form)
        kept = np.unpackbits(golden["kept"][index])[: cases.SPEECH_VOCABULARY].astype(bool)
        assert_same_choice(case, found, kept)
        if not ((found > 0) != kept).any():
            most_likely = golden["ids"][index]
            np.testing.assert_allclose(
                found[most_likely], golden["probabilities"][index], rtol=2e-5, atol=1e-7
            )


@pytest.mark.slow
def test_both_forms_keep_the_same_on_1000_cases() -> None:
    for index in range(1000):
        case = cases.sampler_case(index)
        ours, graph = probabilities(case, "cpu"), probabilities(case, "gpu")
        assert_same_choice(case, ours, graph > 0)
        if not ((ours > 0) != (graph > 0)).any():
            np.testing.assert_allclose(ours, graph, rtol=2e-5, atol=1e-9)


def draws(logits: np.ndarray, count: int, form: str) -> np.ndarray:
    array = mx.array(logits.astype(np.float32))
    tokens = [ops.draw_token(array, 7, 0, position, form) for position in range(count)]
    return np.array(mx.concatenate(tokens))


@pytest.mark.parametrize("form", FORMS)
def test_draws_follow_the_distribution(form: str) -> None:
    """Chi-square over 12 tokens, 4,000 draws: 31.3 is passed by chance once in a thousand."""
    expected = np.array([0.3, 0.2, 0.15, 0.1, 0.08, 0.05, 0.04, 0.03, 0.02, 0.015, 0.01, 0.005])
    logits = np.full(cases.SPEECH_VOCABULARY, -np.inf)
    ids = np.linspace(0, cases.SPEECH_VOCABULARY - 1, len(expected)).astype(int)
    logits[ids] = np.log(expected)
    found = draws(logits, 4000, form)
    assert np.isin(found, ids).all()
    counts = np.array([(found == token).sum() for token in ids])
    chi_square = ((counts - 4000 * expected) ** 2 / (4000 * expected)).sum()
    assert chi_square < 31.3


def test_both_forms_draw_the_same() -> None:
    logits = cases.sampler_case(0)["logits"]
    np.testing.assert_array_equal(draws(logits, 500, "cpu"), draws(logits, 500, "gpu"))


def test_a_draw_depends_on_seed_sentence_and_position_only() -> None:
    logits = mx.array(cases.sampler_case(1)["logits"])

    def draw(seed: int, sentence: int, position: int) -> int:
        return ops.draw_token(logits, seed, sentence, position).item()

    again = {draw(3, 1, 5) for _ in range(5)}
    assert len(again) == 1
    assert len({draw(seed, 1, 5) for seed in range(40)}) > 20
    assert len({draw(3, sentence, 5) for sentence in range(40)}) > 20
    assert len({draw(3, 1, position) for position in range(40)}) > 20
