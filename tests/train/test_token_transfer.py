"""Weights carried over to another speech tokenizer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from train import token_transfer  # noqa: E402
from train.state import load_stage, save_stage, write_npz  # noqa: E402

TOKENS = 6561  # of the speech tokenizer


def tokens_file(path: Path, tokens: list[int]) -> Path:
    write_npz(path, starts=np.array([0, len(tokens)]), tokens=np.array(tokens, np.int16))
    return path


def test_a_row_is_the_mean_of_what_stood_at_its_places(tmp_path: Path) -> None:
    earlier = tokens_file(tmp_path / "earlier.npz", [5, 6, 5, 7])
    later = tokens_file(tmp_path / "later.npz", [1, 1, 1, 2])
    table = torch.randn(TOKENS + 2, 3)
    kept = torch.randn(4)
    tensors = {"speech_emb.weight": table, "norm": kept}
    weights = save_stage(tmp_path, "t3", tensors, {"steps": 7})
    out = tmp_path / "adapted" / "t3.safetensors"
    token_transfer.main([str(path) for path in (earlier, later, weights, out)])
    found, facts = load_stage(out)
    changed = found["speech_emb.weight"]
    torch.testing.assert_close(changed[1], (2 * table[5] + table[6]) / 3)
    torch.testing.assert_close(changed[2], table[7])
    torch.testing.assert_close(changed[3], (2 * table[5] + table[6] + table[7]) / 4)
    assert torch.equal(changed[TOKENS:], table[TOKENS:]), "start and stop are no tokens of speech"
    assert torch.equal(found["norm"], kept)
    assert facts == {"steps": 7}


def test_equal_tokens_change_nothing_that_is_heard(tmp_path: Path) -> None:
    spoken = [3, 9, 3, 4]
    files = [tokens_file(tmp_path / name, spoken) for name in ("a.npz", "b.npz")]
    table = torch.randn(TOKENS, 2)
    weights = save_stage(tmp_path, "flow", {"flow.input_embedding.weight": table}, {})
    out = tmp_path / "adapted.safetensors"
    token_transfer.transfer(*files, weights, out)
    found = load_stage(out)[0]["flow.input_embedding.weight"]
    torch.testing.assert_close(found[spoken], table[spoken])


def test_files_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    earlier = tokens_file(tmp_path / "earlier.npz", [5, 6])
    later = tokens_file(tmp_path / "later.npz", [1])
    weights = save_stage(tmp_path, "vocoder", {"norm": torch.zeros(2)}, {})
    with pytest.raises(SystemExit, match="not of the same corpus"):
        token_transfer.transfer(earlier, later, weights, tmp_path / "out.safetensors")
    with pytest.raises(SystemExit, match="no table of speech tokens"):
        token_transfer.transfer(earlier, earlier, weights, tmp_path / "out.safetensors")
