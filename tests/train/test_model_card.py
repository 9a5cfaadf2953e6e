from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")

from huggingface_hub import ModelCard

from nightingale import cli
from nightingale._core import TensorFile
from nightingale.checkpoint import find_checkpoint
from train import model_card

SCORES = {
    "sentences": 3,
    "teacher_wer_whisper": 1.5,
    "teacher_wer_moonshine": 2.5,
    "teacher_mos": 4.5,
    "student_wer_whisper": 3.25,
    "student_wer_moonshine": 4.75,
    "student_mos": 4.125,
    "durations_within": 100.0,
    "duration_ratio": 1.01,
}
EVALUATION = {
    "sentences": {"en": SCORES},
    "recognition_errors": [["hi", "high"]],
    "long": {"words": 601, "wer_whisper": 2.5, "mos": 4.0, "duration_ratio": 0.98},
    "clone": {"bm_lewis": {"clone": 0.875, "others": 0.5, "itself": 0.9375}},
}


@pytest.fixture
def written(embedded_checkpoint: Path, tmp_path: Path) -> str:
    stages = tmp_path / "stages"
    stages.mkdir()
    (stages / "flow.json").write_text(json.dumps({"steps": 12_345, "hours": 51.27}))
    (stages / "t3.json").write_text(json.dumps({"steps": 678}))
    (tmp_path / "evaluation.json").write_text(json.dumps(EVALUATION))
    out = embedded_checkpoint / "MODEL_CARD.md"
    out.write_text("An earlier one, to be replaced.")
    paths = [embedded_checkpoint, tmp_path / "evaluation.json", out]
    model_card.main([*map(str, paths), "--stages", str(stages)])
    return out.read_text("utf-8")


def test_the_card_has_the_scores(written: str) -> None:
    assert "| en | 3 | 1.5 → 3.25 | 2.5 → 4.75 | 4.5 → 4.125 | 1.01 | 100.0 |" in written
    assert "- 'hi' was heard as 'high'" in written
    assert "words 601, wer_whisper 2.5" in written
    assert "| bm_lewis | 0.875 | 0.5 | 0.9375 |" in written


def test_the_card_has_the_fields_of_the_hub(written: str) -> None:
    data = ModelCard(written).data
    assert (data.license, data.pipeline_tag) == ("mit", "text-to-speech")
    assert sorted(data.language) == ["en", "es"]


def test_the_card_has_the_contents_of_the_folder(written: str, embedded_checkpoint: Path) -> None:
    assert "- Languages: English, Spanish\n- Voices: Anna\n" in written
    assert "It speaks English, Spanish, and no other language." in written
    t3 = (embedded_checkpoint / "t3_mtl23ls_v2.safetensors").stat().st_size
    assert f"| `t3_mtl23ls_v2.safetensors` | {t3 / 1e6:.2f} |" in written
    assert "| `voices/Anna.safetensors` |" in written
    assert "MODEL_CARD" not in written
    files = [path for path in embedded_checkpoint.rglob("*") if path.is_file()]
    whole = sum(path.stat().st_size for path in files if path.name != "MODEL_CARD.md")
    assert f"{whole / 1e6:.1f} MB in all." in written


def test_the_card_has_the_training_steps(written: str) -> None:
    assert "| flow | 12,345 | 51.3 |" in written
    assert "| t3 | 678 |  |" in written
    assert "| vocoder |" not in written


def test_the_card_names_the_teacher_and_the_licences(written: str) -> None:
    assert "**Kokoro-82M v1.0** by hexgrad (Apache-2.0)" in written
    assert "> Kokoro-82M v1.0 by hexgrad, Apache-2.0" in written
    assert "| Common Voice sentences | en, es, fr, it, pt | CC0 |" in written
    assert "The weights are under the MIT licence" in written


def test_parameters_are_counted_by_part_and_equal_when_quantized(
    embedded_checkpoint: Path, tmp_path: Path
) -> None:
    found = model_card.parameters(find_checkpoint(embedded_checkpoint))
    assert set(found) == {"T3", "voice encoder", *model_card.S3GEN_PARTS.values()}
    file = TensorFile.open(str(embedded_checkpoint / "t3_mtl23ls_v2.safetensors"))
    assert found["T3"] == sum(file.read(name).size for name in file.names())
    quantized = tmp_path / "quantized"
    given = [str(embedded_checkpoint), "--bits", "8", "-o", str(quantized), "--s3gen", "--tables"]
    assert cli.main(["quantize", *given]) == 0
    assert model_card.parameters(find_checkpoint(quantized)) == found
