from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

import nightingale
from train import word_times

PHONEMES = "bed, it"
DURATIONS = [20, 8, 16, 8, 4, 12, 12, 8, 20]  # of 25 ms each, silence around them


@pytest.fixture
def evaluation(tmp_path: Path) -> Path:
    """As train.evaluate leaves it: three sentences of the teacher's, one of them French."""
    folder = tmp_path / "teacher-000"
    folder.mkdir()
    frames = np.repeat(np.arange(len(DURATIONS)), DURATIONS)
    loud = np.isin(frames, (1, 2, 3, 6, 7))
    time = np.arange(600 * len(frames)) / 24000
    clip = np.round(8000 * np.repeat(loud, 600) * np.sin(2 * np.pi * 200 * time)).astype(np.int16)
    np.save(folder / "audio.npy", np.tile(clip, 3))
    rows = [
        {
            "id": id,
            "text": text,
            "voice": "af_heart",
            "phonemes": PHONEMES,
            "durations": DURATIONS,
            "shard": "audio.npy",
            "start": number * len(clip),
            "samples": len(clip),
        }
        for number, (id, text) in enumerate(
            [("en-en-000", "Bed, it."), ("fr-fr-000", "Bed, it."), ("en-en-001", "Bed it is.")]
        )
    ]
    index = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "index.jsonl").write_text(index, "utf-8")
    return tmp_path


def test_the_teachers_words_are_where_its_durations_have_them(evaluation: Path) -> None:
    said = list(word_times.teacher_clips(evaluation))
    assert [each.text for each in said] == ["Bed, it.", "Bed it is."]
    begin, second = said[0].starts
    assert second - begin == pytest.approx(0.025 * (8 + 16 + 8 + 4 + 12))
    clip = said[0].clip
    assert np.flatnonzero(clip)[0] / 24000 == pytest.approx(begin, abs=1e-3)
    assert len(clip) % 960 == 0


def test_errors_are_those_of_sentences_with_the_same_words(
    evaluation: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(tts: None, said: word_times.TeacherClip) -> np.ndarray:
        by = [0.03, 0.07, 0.0][: len(said.text.split())]
        return np.array([*said.starts, 1.0][: len(by)]) + by

    monkeypatch.setattr(word_times, "model_starts", late)
    found = word_times.measure(None, evaluation, 50)
    assert (found["sentences"], found["words"]) == (1, 2)
    assert found["median"] == pytest.approx(0.05)
    assert found["nine_in_ten"] == pytest.approx(0.066)
    with pytest.raises(SystemExit, match="has no suitable sentence"):
        word_times.measure(None, evaluation / "elsewhere", 50)


def test_word_starts_come_from_the_alignment_of_a_clip(
    evaluation: Path, tts: nightingale.TTS, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = next(word_times.teacher_clips(evaluation))
    tokens = len(said.clip) // 960
    asked: list[int] = []

    def positions(text: np.ndarray, speech: np.ndarray, voice: nightingale.Voice) -> list[int]:
        asked.extend([len(text), len(speech)])
        return reached

    monkeypatch.setattr(tts._engine, "text_positions", positions)
    # The start, the tag, the letters b e d, the mark, the space, i: from its letters on.
    reached = [0] * 3 + [2] * 7 + [7] * (tokens - 10)
    assert word_times.model_starts(tts, said).tolist() == pytest.approx([0.12, 0.4])
    assert asked == [len(tts.tokenize("Bed, it.")), tokens]
    reached = [2] * tokens
    assert word_times.model_starts(tts, said).tolist() == pytest.approx([0, tokens / 25])
