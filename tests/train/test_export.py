"""The whole recipe on a slice: every stage for a moment, and a checkpoint that speaks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

pytest.importorskip("torch")

import nightingale
from nightingale.checkpoint import find_checkpoint
from train.export import export

from .baking import speech

# Of every stage, so small that a step takes a moment.
BATCHES = {
    "speech_tokenizer": "--seconds 10",
    "speakers": "--seconds 10",
    "flow": "--seconds 10",
    "vocoder": "--windows 2",
    "t3": "--positions 1000",
}


@pytest.fixture(scope="module")
def stages(tiny_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the stages write, each of tiny size and after two steps."""
    out = tmp_path_factory.mktemp("stages")
    slice = ["--device", "cpu", "--size", "tiny", "--steps", "2", "--minutes", "20"]
    batches = [word for stage, batch in BATCHES.items() for word in ("--of", stage, batch)]
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


def test_the_stages_make_a_checkpoint_that_speaks(
    stages: Path, recordings: dict[str, Path], tmp_path: Path
) -> None:
    model = tmp_path / "model"
    export(stages, model, recordings)
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

    with pytest.raises(FileExistsError, match="is there already"):
        export(stages, model, {})


def test_the_flow_that_is_named_is_taken(stages: Path, tmp_path: Path) -> None:
    export(stages, tmp_path / "model", {}, "flow")
    assert (tmp_path / "model" / "s3gen.safetensors").exists()
    assert not (tmp_path / "model" / "s3gen_meanflow.safetensors").exists()


def test_the_temperature_that_is_named_is_the_usual_one(
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
