from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile

pytest.importorskip("torch")
pytest.importorskip("matplotlib")

from matplotlib.image import imread

from train import spectrograms

from ..recordings import speech


@pytest.fixture
def evaluation(tmp_path: Path) -> Path:
    """As train.evaluate leaves it: speech by the teacher, a tone and silence by the student."""
    folder = tmp_path / "evaluation"
    (folder / "teacher-000").mkdir(parents=True)
    (folder / "student").mkdir()
    rows = [
        {"id": f"{code}-{code}-{number:03d}", "text": "It costs $5 or $6."}
        for code in spectrograms.LANGUAGES
        for number in range(2)
    ]
    index = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "teacher-000" / "index.jsonl").write_text(index, "utf-8")
    tone = 0.5 * np.sin(2 * np.pi * 1000 * np.arange(48000) / 24000)
    for row in rows:
        soundfile.write(folder / "teacher-000" / f"{row['id']}.wav", speech(6, 24000), 24000)
        soundfile.write(folder / "student" / f"{row['id']}.wav", tone, 24000)
    return folder


def test_the_first_sentence_of_each_language_is_drawn_in_a_small_file(
    evaluation: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "spectrograms"
    spectrograms.main([str(evaluation), str(out)])
    drawn = sorted(out.iterdir())
    assert [path.name for path in drawn] == ["en.png", "es.png", "fr.png", "it.png", "pt.png"]
    assert sorted(capsys.readouterr().out.split()) == [str(path) for path in drawn]
    for path in drawn:
        assert imread(path).shape[:2] == (280, 960)
        assert path.stat().st_size < spectrograms.MAX_BYTES


def test_a_sentence_can_be_asked_for_by_its_id(evaluation: Path, tmp_path: Path) -> None:
    assert spectrograms.draw(evaluation, tmp_path, ["fr-fr-001"]) == [tmp_path / "fr-fr-001.png"]
    with pytest.raises(SystemExit, match="the teacher has no clip of de-de-000"):
        spectrograms.draw(evaluation, tmp_path, ["de-de-000"])


def test_both_are_drawn_to_one_scale() -> None:
    loud, soft = np.full((80, 100), 2.0), np.full((80, 50), 2.0 - spectrograms.RANGE / 2)
    figure = spectrograms.draw_figure("Hello.", {"teacher": loud, "student": soft})
    teacher, student = figure.axes
    assert teacher.get_xlim() == student.get_xlim() == (0, 2.0)
    assert teacher.images[0].get_array().max() == spectrograms.SHADES
    assert student.images[0].get_array().max() == spectrograms.SHADES / 2
    assert student.get_title() == "student, 1.00 s"
