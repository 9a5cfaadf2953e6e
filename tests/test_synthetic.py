"""Synthetic checkpoints and the command that writes them."""

from __future__ import annotations

import errno
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nightingale.checkpoint import find_checkpoint
from nightingale.torch_file import open_tensors
from tools import synthetic
from tools.synthetic import checkpoint as writer
from tools.synthetic.__main__ import main
from tools.synthetic.torch_file import stream_torch

from .command import PATIENCE, names_in, run, start

ROOT = Path(__file__).parents[1]
SYNTHETIC = [sys.executable, "-m", "tools.synthetic"]
FILES = ["Cangjie5_TC.json", "conds.pt", "grapheme_mtl_merged_expanded_v1.json"]
FILES += ["nightingale.json", "s3gen.pt", "t3_mtl23ls_v2.safetensors", "ve.pt"]
MIXER = "flow.decoder.estimator.time_embed_mixer.weight"
TABLES = {"tokenizer._mel_filters", "tokenizer.window"}


def read_all(path: Path) -> dict[str, np.ndarray]:
    file = open_tensors(path)
    return {name: file.read(name) for name in file.names()}


@pytest.fixture(scope="module")
def s3gen(checkpoints: Path) -> dict[str, np.ndarray]:
    return read_all(checkpoints / "english" / "s3gen.safetensors")


def test_every_model_has_the_same_s3gen(checkpoints: Path, s3gen: dict[str, np.ndarray]) -> None:
    for model in ("multilingual", "multilingual-v3"):
        found = read_all(checkpoints / model / "s3gen.pt")
        assert found.keys() - s3gen.keys() == TABLES
        for name, array in s3gen.items():
            np.testing.assert_array_equal(found[name], array, err_msg=name)


def test_every_model_has_the_same_voice_encoder(checkpoints: Path) -> None:
    expected = read_all(checkpoints / "english" / "ve.safetensors")
    for model in ("multilingual", "multilingual-v3"):
        found = read_all(checkpoints / model / "ve.pt")
        assert found.keys() == expected.keys()
        for name, array in expected.items():
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
    assert found.keys() - s3gen.keys() == {MIXER} | TABLES
    assert found[MIXER].shape == (256, 512)
    for name, array in s3gen.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)


def test_a_voice_may_be_short() -> None:
    short, long = (synthetic.default_voice(s3gen_prompt_tokens=count) for count in (25, 250))
    assert short["gen"]["prompt_token_len"].tolist() == [25]
    assert short["gen"]["prompt_token"].shape == (1, 25)
    assert short["gen"]["prompt_feat"].shape == (1, 50, 80)
    for part, name in (("t3", "speaker_emb"), ("t3", "cond_prompt_speech_tokens")):
        np.testing.assert_array_equal(short[part][name], long[part][name])
    np.testing.assert_array_equal(short["gen"]["embedding"], long["gen"]["embedding"])


def test_progress_counts_every_weight(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    synthetic.write_checkpoint(tmp_path, progress=lambda done, total: told.append((done, total)))
    files = [tmp_path / name for name in ("t3_mtl23ls_v2.safetensors", "s3gen.pt", "ve.pt")]
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


def test_full_size_voice_models_have_the_parameters_of_the_official_ones() -> None:
    size = synthetic.VOICE_SIZES["full"]
    counts = {
        build.__name__: sum(
            int(np.prod(weights.shape))
            for name, weights in build(size).items()
            if name.split(".")[-1] not in ("running_mean", "running_var", "num_batches_tracked")
        )
        for build in (
            synthetic.voice_encoder_weights,
            synthetic.speech_tokenizer_weights,
            synthetic.speaker_encoder_weights,
        )
    }
    assert counts == {
        "voice_encoder_weights": 1_423_618,
        "speech_tokenizer_weights": 123_714_568,
        "speaker_encoder_weights": 6_848_544,
    }


@pytest.mark.parametrize("model", ["multilingual", "english"])
def test_batch_norms_divide_by_positive_variances(checkpoints: Path, model: str) -> None:
    (path,) = (checkpoints / model).glob("s3gen.*")
    file = open_tensors(path)
    variances = [file.read(name) for name in file.names() if name.endswith(".running_var")]
    assert len(variances) == 122
    assert min(array.min() for array in variances) > 0.5
    counts = [name for name in file.names() if name.endswith(".num_batches_tracked")]
    assert len(counts) == 122
    assert {(file.dtype(name), int(file.read(name))) for name in counts} == {("int64", 1000)}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_keeps_counts_and_tables(tmp_path: Path, dtype: str) -> None:
    synthetic.write_checkpoint(tmp_path, dtype=dtype)
    file = open_tensors(tmp_path / "s3gen.pt")
    others = {name: file.dtype(name) for name in file.names() if file.dtype(name) != dtype}
    assert {name for name, kind in others.items() if kind == "float32"} == TABLES
    assert {kind for name, kind in others.items() if name not in TABLES} == {"int64"}


def test_mel_filters_are_slaneys(checkpoints: Path) -> None:
    tensors = read_all(checkpoints / "multilingual" / "s3gen.pt")
    filters, window = tensors["tokenizer._mel_filters"], tensors["tokenizer.window"]
    assert filters.shape == (128, 201)
    # Each is a triangle of area 1; only the wide ones are sampled finely enough to show it.
    np.testing.assert_allclose(filters[-20:].sum(axis=1) * 40, 1, atol=0.02)
    peaks = np.argmax(filters, axis=1) * 40
    assert peaks[-1] == 7800  # Hz, of bins 40 Hz apart
    assert (np.diff(peaks) >= 0).all()
    np.testing.assert_allclose(window + np.roll(window, 200), 1, atol=1e-6)


def test_only_some_rows_have_the_mean() -> None:
    values = synthetic.Weights((6, 50), std=0.1, mean=3.0, mean_rows=(2, 4)).values(0, "any")
    np.testing.assert_allclose(values.mean(axis=1), [0, 0, 3, 3, 0, 0], atol=0.1)


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
    file = open_tensors(tmp_path / "file.pt")
    assert {file.dtype(name) for name in file.names()} == {dtype}
    for i, (name, (_, shape)) in enumerate(layout.items()):
        found = np.asarray(file.read(name), np.float32)
        np.testing.assert_array_equal(found, np.full(shape, i + 1, np.float32))


def test_the_command_writes_a_checkpoint_and_one_line_where_there_is_no_terminal(
    tmp_path: Path,
) -> None:
    folder, same = tmp_path / "new" / "model", tmp_path / "same"
    done = run(folder, command=SYNTHETIC, cwd=ROOT)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == f"{folder}: a small multilingual checkpoint; its audio is noise\n"
    assert names_in(folder) == FILES
    assert names_in(folder.parent) == ["model"]
    synthetic.write_checkpoint(same)
    for name in FILES:
        assert (folder / name).read_bytes() == (same / name).read_bytes(), name


def test_the_command_replaces_its_own_files_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path)]) == 0
    assert main([str(tmp_path), "--seed", "1"]) == 0
    before = (tmp_path / "t3_mtl23ls_v2.safetensors").read_bytes()
    (tmp_path / "notes.txt").write_text("mine")
    capsys.readouterr()

    assert main([str(tmp_path), "--seed", "2"]) == 1
    output, errors = capsys.readouterr()
    assert output == ""
    assert errors == (
        f"nightingale: {tmp_path} holds notes.txt, which this checkpoint would not replace; "
        "give a new or empty folder\n"
    )
    assert names_in(tmp_path) == sorted([*FILES, "notes.txt"])
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert (tmp_path / "t3_mtl23ls_v2.safetensors").read_bytes() == before


def test_the_command_does_not_write_over_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "model").write_text("mine")
    assert main([str(tmp_path / "model")]) == 1
    assert capsys.readouterr().err.endswith("model is a file, expected a folder\n")
    assert (tmp_path / "model").read_text() == "mine"


def test_a_full_disk_leaves_nothing_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(path: Path, tree: Any) -> None:
        assert (path.parent / "t3_mtl23ls_v2.safetensors").is_file()  # half the work is done
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(writer, "write_torch", fail)
    assert main([str(tmp_path / "model")]) == 1
    output, errors = capsys.readouterr()
    assert output == ""
    assert errors.endswith("conds.pt: No space left on device\n")
    assert len(errors.splitlines()) == 1
    assert names_in(tmp_path) == []


def test_ctrl_c_leaves_nothing_half_written(tmp_path: Path) -> None:
    with start(tmp_path / "model", "--size", "full", command=SYNTHETIC, cwd=ROOT) as process:
        try:
            deadline = time.monotonic() + PATIENCE
            while not any(tmp_path.glob(".model.*/.t3_*.partial")):
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    assert (process.returncode, output, errors) == (130, "", "nightingale: stopped\n")
    assert names_in(tmp_path) == []


def test_wrong_usage_of_the_command_exits_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["folder", "--size", "huge"])
    assert caught.value.code == 2
    output, errors = capsys.readouterr()
    assert output == ""
    assert errors.startswith("usage: tools.synthetic")
    assert "argument --size: invalid choice: 'huge'" in errors


def test_turbo_and_nano_have_the_official_shapes() -> None:
    for name, hidden, layers in (("turbo", 1024, 24), ("nano", 768, 12)):
        size = synthetic.GPT2_SIZES[name]["full"]
        shapes = {name: each.shape for name, each in synthetic.gpt2_t3_weights(size).items()}
        last = f"tfmr.h.{layers - 1}."
        assert f"tfmr.h.{layers}.ln_1.weight" not in shapes
        assert shapes[last + "attn.c_attn.weight"] == (hidden, 3 * hidden)
        assert shapes[last + "mlp.c_proj.weight"] == (4 * hidden, hidden)
        assert shapes["tfmr.wpe.weight"] == (8196, hidden)
        assert shapes["text_emb.weight"] == shapes["text_head.weight"] == (50276, hidden)
        assert shapes["speech_head.bias"] == (6563,)


@pytest.mark.parametrize("model", ["multilingual-v1", "turbo", "nano", "pt-br"])
def test_every_member_has_the_official_layout(tmp_path: Path, model: str) -> None:
    synthetic.write_checkpoint(tmp_path, model=model)
    found = find_checkpoint(tmp_path)
    assert found.family.variant == model.removeprefix("multilingual-")
    assert found.t3.name in found.family.t3
    assert found.s3gen is not None
    meanflow = "flow.decoder.estimator.time_embed_mixer.weight" in open_tensors(found.s3gen)
    assert meanflow == (model in ("turbo", "nano"))
    prompt = open_tensors(tmp_path / "conds.pt").shape("t3.cond_prompt_speech_tokens")
    assert prompt == (1, 375 if meanflow else 150)
