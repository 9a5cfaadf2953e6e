"""Made-up checkpoints: their files, and that each tensor is the same in all of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nightingale import _core, synthetic
from nightingale.tensor_writers import stream_torch

MIXER = "flow.decoder.estimator.time_embed_mixer.weight"


def read_all(path: Path) -> dict[str, np.ndarray]:
    file = _core.TensorFile.open(str(path))
    return {name: file.read(name) for name in file.names()}


@pytest.fixture(scope="module")
def s3gen(checkpoints: Path) -> dict[str, np.ndarray]:
    return read_all(checkpoints / "english" / "s3gen.safetensors")


def test_every_model_has_the_same_s3gen(checkpoints: Path, s3gen: dict[str, np.ndarray]) -> None:
    for model in ("multilingual", "multilingual-v3"):
        found = read_all(checkpoints / model / "s3gen.pt")
        assert found.keys() == s3gen.keys()
        for name, array in s3gen.items():
            np.testing.assert_array_equal(found[name], array, err_msg=name)


def test_older_names_of_weight_norm_hold_the_same_values(
    tmp_path: Path, s3gen: dict[str, np.ndarray]
) -> None:
    synthetic.write_checkpoint(tmp_path, model="english", legacy_weight_norm=True)
    found = read_all(tmp_path / "s3gen.safetensors")
    assert len(found) == len(s3gen)
    renamed = 0
    for name, array in s3gen.items():
        old = name.replace("parametrizations.weight.original0", "weight_g")
        old = old.replace("parametrizations.weight.original1", "weight_v")
        renamed += old != name
        np.testing.assert_array_equal(found[old], array, err_msg=old)
    assert renamed == 2 * 82  # convolutions of the vocoder and of its F0 predictor


def test_meanflow_adds_a_time_mixer_in_a_file_of_its_own(
    tmp_path: Path, s3gen: dict[str, np.ndarray]
) -> None:
    synthetic.write_checkpoint(tmp_path, meanflow=True)
    assert sorted(path.name for path in tmp_path.glob("s3gen*")) == ["s3gen_meanflow.safetensors"]
    found = read_all(tmp_path / "s3gen_meanflow.safetensors")
    assert found.keys() - s3gen.keys() == {MIXER}
    assert found[MIXER].shape == (256, 512)
    for name, array in s3gen.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)


def test_progress_counts_every_weight(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    synthetic.write_checkpoint(tmp_path, progress=lambda done, total: told.append((done, total)))
    files = (tmp_path / "t3_mtl23ls_v2.safetensors", tmp_path / "s3gen.pt")
    total = sum(array.size for path in files for array in read_all(path).values())
    assert {of for _, of in told} == {total}
    assert [done for done, _ in told] == sorted({done for done, _ in told})
    assert told[-1] == (total, total)


def test_full_size_s3gen_has_the_parameters_of_the_official_one() -> None:
    size = synthetic.S3GEN_SIZES["full"]
    for meanflow, flow in ((False, 112_549_360), (True, 114_646_512)):
        tensors = synthetic.s3gen_weights(size, meanflow)
        counts = {"flow": 0, "mel2wav": 0}
        for name, weights in tensors.items():
            counts[name.split(".")[0]] += int(np.prod(weights.shape))
        assert counts == {"flow": flow, "mel2wav": 20_821_295}


def test_centred_rows_add_up_to_zero() -> None:
    weights = synthetic.Weights((6, 8, 3), std=2.0, centred=2)
    halves = weights.values(0, "any").reshape(12, 12)
    assert np.abs(halves.sum(axis=1)).max() < 1e-5
    assert 1.5 < halves.std() < 2.5


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_a_streamed_torch_file_asks_for_one_tensor_at_a_time(tmp_path: Path, dtype: str) -> None:
    layout = {"a.weight": (dtype, (3, 4)), "b": (dtype, (5,)), "c": (dtype, ())}
    asked: list[str] = []

    def values(name: str) -> np.ndarray:
        asked.append(name)
        return np.full(layout[name][1], len(asked), np.float32)

    stream_torch(tmp_path / "file.pt", layout, values)
    assert asked == list(layout)
    file = _core.TensorFile.open(str(tmp_path / "file.pt"))
    assert {file.dtype(name) for name in file.names()} == {dtype}
    for i, (name, (_, shape)) in enumerate(layout.items()):
        found = np.asarray(file.read(name), np.float32)
        np.testing.assert_array_equal(found, np.full(shape, i + 1, np.float32))
