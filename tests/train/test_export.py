"""The whole recipe with two steps per stage, and the exported checkpoint."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

pytest.importorskip("torch")

import torch

import nightingale
from nightingale.checkpoint import find_checkpoint
from nightingale.quantization import write_folder
from train.export import export
from train.flow import load_flow
from train.networks.flow import Flow
from train.networks.speech_tokenizer import TOKENIZER_SIZES, SpeechTokenizer
from train.state import load_stage, save_stage
from train.unpack import plain_flow, read_floats, tokenizer_size, unpack

from .baking import speech

# Of every stage, so small that a step takes a moment.
BATCHES = {
    "speech_tokenizer": "--batch-seconds 10",
    "speakers": "--batch-seconds 10",
    "phoneme_classifier": "--batch-seconds 10",
    "flow": "--batch-seconds 10",
    "vocoder": "--batch-windows 2",
    "t3": "--batch-positions 1000",
}


@pytest.fixture(scope="module")
def stages(tiny_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output of the stages, of tiny size, after two steps."""
    out = tmp_path_factory.mktemp("stages")
    slice = ["--device", "cpu", "--size", "tiny", "--steps", "2", "--minutes", "20"]
    batches = [
        word for stage, batch in BATCHES.items() for word in ("--stage-options", stage, batch)
    ]
    subprocess.run(
        [sys.executable, "-m", "train.recipe", tiny_corpus, out, *slice, *batches],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2]), "OMP_NUM_THREADS": "1"},
        check=True,
    )
    return out


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("recordings")
    found = {}
    for number, name in enumerate(("Anna", "Ben")):
        found[name] = folder / f"{name}.wav"
        soundfile.write(found[name], speech(6, first=30 * number), 24000)
    return found


@pytest.mark.parametrize("bits", [None, 4])
def test_unpacking_inverts_the_export(stages: Path, tmp_path: Path, bits: int | None) -> None:
    model, out, again = tmp_path / "model", tmp_path / "out", tmp_path / "again"
    export(stages, model, {}, temperature=0.4)
    if bits:
        coded = tmp_path / "coded"
        write_folder(find_checkpoint(model), coded, bits, s3gen=True, tables=True)
        model = coded
    made = unpack(model, out, 0.4, "tiny")
    assert set(made) == {"t3", "speech_tokenizer", "vocoder", "flow", "meanflow", "speakers"}
    facts = [load_stage(folder / "speech_tokenizer.safetensors")[1] for folder in (out, stages)]
    assert {key: facts[1][key] for key in facts[0]} == facts[0]
    for stage in set(made) - {"flow"}:
        ours, theirs = (load_stage(folder / f"{stage}.safetensors")[0] for folder in (out, stages))
        assert ours.keys() == theirs.keys()
        for name, tensor in ours.items():
            truth = theirs[name].float()
            step = truth.abs().max() / (4 if bits and stage == "t3" else 100 if bits else 1000)
            assert tensor.shape == truth.shape
            assert (tensor - truth).abs().max() <= step, name
    if not bits:
        export(out, again, {}, temperature=0.4)
        for file in ("t3_mtl23ls_v2", "s3gen_meanflow", "ve"):
            ours, theirs = (read_floats(x / f"{file}.safetensors") for x in (again, model))
            assert all(torch.allclose(ours[name], x, rtol=2e-3) for name, x in theirs.items())


@pytest.mark.parametrize("size", ["medium", "small", "tiny"])
def test_the_size_of_a_tokenizer_is_read_from_its_tensors(size: str) -> None:
    expected = TOKENIZER_SIZES[size]
    tensors = SpeechTokenizer(expected).state_dict()
    assert tokenizer_size({f"tokenizer.{name}": x for name, x in tensors.items()}) == expected


def test_t3_can_be_the_average_of_the_best_and_the_last(stages: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    for file in stages.iterdir():
        if file.is_file():
            (out / file.name).symlink_to(file)
    for suffix in ("safetensors", "json"):
        (out / f"t3_last.{suffix}").unlink(missing_ok=True)
    best, facts = load_stage(out / "t3.safetensors")
    export(out, tmp_path / "best", {}, average_t3=True)
    save_stage(out, "t3_last", {name: 3 * x for name, x in best.items()}, facts)
    export(out, tmp_path / "mean", {}, average_t3=True)
    ours, theirs = (
        read_floats(tmp_path / x / "t3_mtl23ls_v2.safetensors") for x in ("mean", "best")
    )
    for name, tensor in theirs.items():
        torch.testing.assert_close(ours[name], 2 * tensor, rtol=2e-3, atol=1e-6)


def test_a_meanflow_converts_to_a_plain_flow(stages: Path) -> None:
    torch.manual_seed(0)
    meanflow = load_flow(stages / "meanflow.safetensors")
    torch.nn.init.normal_(meanflow.estimator.time_embed_mixer.weight, std=0.1)
    plain = Flow(meanflow.size)
    plain.load_official(plain_flow(meanflow.official_tensors()))
    x, known = torch.randn(2, 8, 80), torch.randn(2, 8, 240)
    heard, t = torch.ones(2, 8, dtype=torch.bool), torch.tensor([0.2, 0.7])
    with torch.no_grad():
        found, truth = plain.velocity(x, known, heard, t), meanflow.velocity(x, known, heard, t, t)
    torch.testing.assert_close(found, truth, rtol=1e-4, atol=1e-4)


def test_a_folder_without_models_is_not_unpacked(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="t3_mtl23ls_v2"):
        unpack(tmp_path, tmp_path / "out", 0.8, "tiny")
    assert not (tmp_path / "out").exists()


def test_the_stages_make_a_checkpoint_that_speaks(
    stages: Path, recordings: dict[str, Path], tmp_path: Path
) -> None:
    model = tmp_path / "model"
    export(stages, model, recordings, language_voices={"fr": "Ben"})
    assert sorted(path.name for path in model.iterdir()) == [
        "conds.safetensors",
        "grapheme_mtl_merged_expanded_v1.json",
        "nightingale.json",
        "s3gen_meanflow.safetensors",
        "t3_mtl23ls_v2.safetensors",
        "ve.safetensors",
        "voices",
    ]
    tts = nightingale.load(model, device="cpu")
    assert tts.voices == ["default", "Anna", "Ben"]
    assert tts.info["language_voices"] == {"fr": "Ben"}
    assert set(tts.languages) == {"en", "es", "fr", "it", "pt"}
    assert find_checkpoint(model).languages == tts.languages
    assert tts.info["flow"]["steps"] == 2
    audio = tts.generate("Hello.", max_tokens=20)
    assert np.isfinite(audio.samples).all()
    assert 0 < len(audio.tokens) <= 20
    # A prompt may end in the middle of a token.
    assert abs(len(audio.samples) - 960 * len(audio.tokens)) <= 960
    other = tts.generate("Hello.", voice="Ben", max_tokens=20)
    assert not np.array_equal(other.samples[: len(audio.samples)], audio.samples)

    with pytest.raises(FileExistsError, match="already exists"):
        export(stages, model, {})
    with pytest.raises(ValueError, match="no voice 'Eve' to speak a language"):
        export(stages, tmp_path / "other", recordings, language_voices={"fr": "Eve"})
    assert not (tmp_path / "other").exists()


def test_the_flow_that_is_named_is_taken(stages: Path, tmp_path: Path) -> None:
    export(stages, tmp_path / "model", {}, "flow")
    assert (tmp_path / "model" / "s3gen.safetensors").exists()
    assert not (tmp_path / "model" / "s3gen_meanflow.safetensors").exists()


def test_logits_are_scaled_by_the_temperature(
    stages: Path, recordings: dict[str, Path], tmp_path: Path
) -> None:
    voice = {"Anna": recordings["Anna"]}
    said = []
    for name, exported, asked in (("plain", 0.8, 0.4), ("steady", 0.4, 0.8)):
        export(stages, tmp_path / name, voice, temperature=exported)
        tts = nightingale.load(tmp_path / name, device="cpu")
        said.append(tts.speech_tokens("Hello.", temperature=asked, max_tokens=20).tolist())
    assert said[0] == said[1]


def test_a_failed_export_leaves_nothing(
    stages: Path, recordings: dict[str, Path], tmp_path: Path
) -> None:
    with pytest.raises(nightingale.Error, match="there is no file"):
        export(stages, tmp_path / "model", {**recordings, "Eve": tmp_path / "missing.wav"})
    assert list(tmp_path.iterdir()) == []
