"""The whole recipe on a slice: every stage for a moment, and a checkpoint that speaks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

pytest.importorskip("torch")

import nightingale
from train import flow, flow_validation, speakers, speech_tokenizer, t3, vocoder
from train.export import export

from .baking import speech

CPU = ("--device", "cpu")


@pytest.fixture(scope="module")
def stages(tiny_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the stages write, each of tiny size and after two steps."""
    out = tmp_path_factory.mktemp("stages")
    here = [str(tiny_corpus), str(out)]
    slice = ["--steps", "2", "--size", "tiny", "--minutes", "1000", *CPU]
    speech_tokenizer.main([*here, *slice, "--seconds", "10"])
    speakers.main([*here, *slice, "--seconds", "10"])
    for stage, command, of in (
        (speech_tokenizer, "tokens", "speech_tokenizer"),
        (speakers, "embed", "speakers"),
    ):
        made = out / ("tokens.npz" if command == "tokens" else "speakers.npz")
        trained = str(out / f"{of}.safetensors")
        stage.main([command, here[0], trained, str(made), *CPU, "--seconds", "20"])
    with pytest.MonkeyPatch.context() as quicker:
        quicker.setattr(flow_validation, "EXAMPLES", 6)
        flow.main([*here, *slice, "--seconds", "10"])
        flow.main([*here, *slice, "--seconds", "10", "--meanflow", str(out / "flow.safetensors")])
    vocoder.main([*here, *slice, "--windows", "2"])
    t3.Stage(t3.parse([*here, *slice, "--positions", "1000"])).run()
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


def test_a_failed_export_leaves_nothing(
    stages: Path, recordings: dict[str, Path], tmp_path: Path
) -> None:
    with pytest.raises(nightingale.Error, match="there is no file"):
        export(stages, tmp_path / "model", {**recordings, "Eve": tmp_path / "missing.wav"})
    assert list(tmp_path.iterdir()) == []
