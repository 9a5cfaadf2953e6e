from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from train.state import load_stage, save_stage  # noqa: E402


def test_a_stage_is_saved_with_its_facts(tmp_path: Path) -> None:
    shared = torch.randn(3, 4)
    tensors = {"a.weight": shared, "b.weight": shared.T, "count": torch.tensor([3])}
    path = save_stage(tmp_path / "out", "flow", tensors, {"steps": 7}, torch.float16)
    found, facts = load_stage(path)
    assert path.name == "flow.safetensors"
    assert facts == {"steps": 7}
    torch.testing.assert_close(found["b.weight"], shared.T.half(), rtol=0, atol=0)
    assert found["count"].dtype == torch.int64
    assert sorted(file.name for file in path.parent.iterdir()) == ["flow.json", "flow.safetensors"]


def test_a_stage_that_cannot_be_written_leaves_the_last_one(tmp_path: Path) -> None:
    path = save_stage(tmp_path, "t3", {"w": torch.ones(2)}, {"steps": 1})
    with pytest.raises(TypeError):
        save_stage(tmp_path, "t3", {"w": torch.zeros(2)}, {"steps": object()})
    assert load_stage(path)[1] == {"steps": 1}
