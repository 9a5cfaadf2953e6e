"""Optimizer steps that skip gradients which are not finite."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from train.nan_guard import GuardedOptimizer  # noqa: E402


def test_a_gradient_is_clipped_group_by_group() -> None:
    first, second = (torch.nn.Parameter(torch.zeros(2)) for _ in range(2))
    optimizer = GuardedOptimizer(torch.optim.SGD([first, second]), "cpu")
    optimizer.step((30 * first).sum() + (0.1 * second).sum(), 1.0, [first], [second])
    assert torch.allclose(first.detach(), torch.full((2,), -(0.5**0.5)))
    assert torch.allclose(second.detach(), torch.full((2,), -0.1))


def test_a_step_with_a_gradient_that_is_not_finite_is_skipped() -> None:
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = GuardedOptimizer(torch.optim.AdamW([weight]), "cpu")
    for factor in (float("nan"), float("inf")):
        optimizer.step((factor * weight).sum(), 0.1, [weight])
        assert weight.tolist() == [1, 1, 1]
    optimizer.step(weight.sum(), 0.1, [weight])
    assert (weight < 0.95).all()
