"""Steps that leave out what is no number."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from train.descent import Descent  # noqa: E402


def test_a_gradient_is_clipped_group_by_group() -> None:
    first, second = (torch.nn.Parameter(torch.zeros(2)) for _ in range(2))
    descent = Descent(torch.optim.SGD([first, second]), "cpu")
    descent.step((30 * first).sum() + (0.1 * second).sum(), 1.0, [first], [second])
    assert torch.allclose(first.detach(), torch.full((2,), -(0.5**0.5)))
    assert torch.allclose(second.detach(), torch.full((2,), -0.1))


def test_a_step_that_is_no_number_is_left_out() -> None:
    weight = torch.nn.Parameter(torch.ones(3))
    descent = Descent(torch.optim.AdamW([weight]), "cpu")
    for factor in (float("nan"), float("inf")):
        descent.step((factor * weight).sum(), 0.1, [weight])
        assert weight.tolist() == [1, 1, 1]
    descent.step(weight.sum(), 0.1, [weight])
    assert (weight < 0.95).all()
