from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile

pytest.importorskip("torch")

from train import evaluate, metrics, rate_evaluation, synthesis, voice_similarity
from train.voices import HELD_OUT_VOICES

from .toy_teacher import write_teacher

SENTENCES = {
    language: [f"The {language} sentence number {n} is long." for n in range(90)]
    for language in ("en", "es", "fr", "it", "pt")
}

SCORE = """
import json, sys
for line in open(sys.argv[-1], encoding="utf-8"):
    path, language, text = line.rstrip("\\n").split("\\t")
    said = " ".join(text.lower().strip(".!?").split())
    heard = said.replace("long", "wrong") if "student" in path else said
    row = {"path": path, "language": language, "text": said, "whisper": heard, "mos": 4.0}
    print(json.dumps(row | ({"moonshine": said} if language == "en" else {})))
print(json.dumps({"clips": 1}))
"""


class StubTTS:
    """Speaks at half the teacher's speed, in tones."""

    voices = ("af_heart", "own")

    def __init__(self) -> None:
        self.said: list[tuple[str, object, str]] = []

    def generate(self, text: str, voice: object, language: str) -> SimpleNamespace:
        self.said.append((text, voice, language))
        samples = np.sin(np.arange(4800 * len(text)) / 10).astype(np.float32)
        return SimpleNamespace(save=lambda path: soundfile.write(path, samples, 24000))

    def bake_voice(self, recording: Path) -> str:
        return f"clone of {recording.stem}"


@pytest.fixture
def tts(monkeypatch: pytest.MonkeyPatch) -> StubTTS:
    stub = StubTTS()
    monkeypatch.setattr("nightingale.load", lambda model: stub)
    return stub


@pytest.fixture
def judge_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "judge"
    (folder / "venv/bin").mkdir(parents=True)
    (folder / "venv/bin/python").symlink_to(sys.executable)
    (folder / "score.py").write_text(SCORE, encoding="utf-8")
    return folder


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> list[dict]:
    monkeypatch.setattr(evaluate, "evaluation_sentences", lambda data: SENTENCES)
    monkeypatch.setattr(evaluate, "Phonemizer", lambda: lambda text, accent: text.lower())
    found = evaluate.rows_to_speak(Path("data"))
    for row in found:
        row["voice"] = "am_puck" if row["voice"] == "am_michael" else "af_heart"
    return found


@pytest.fixture
def evaluation(tts: StubTTS, judge_folder: Path, tmp_path: Path) -> evaluate.Evaluation:
    teacher = write_teacher(tmp_path / "teacher-folder")
    out = tmp_path / "out"
    out.mkdir()
    return evaluate.Evaluation(
        synthesis.Student(out, Path("model")), synthesis.Teacher(out, teacher), judge_folder, out
    )


@pytest.mark.parametrize(
    ("said", "heard", "errors"),
    [
        ("a b c", "a b c", 0),
        ("a b c", "a x c", 1),
        ("a b c", "b c d", 2),
        ("a b", "", 2),
        ("", "a", 1),
        ("the cat sat down", "cat sat right down", 2),
    ],
)
def test_word_errors_are_the_fewest_changes(said: str, heard: str, errors: int) -> None:
    assert metrics.word_errors(said, heard) == errors


def test_error_rates_are_over_all_words() -> None:
    heard = [
        {"text": "a b c d", "whisper": "a b c d"},
        {"text": "a", "whisper": "b c", "moonshine": "a"},
    ]
    assert metrics.error_rate(heard, "whisper") == 40.0
    assert metrics.error_rate(heard, "moonshine") == 0.0
    assert metrics.error_rate(heard[:1], "moonshine") is None


def test_a_table_sets_the_student_beside_the_teacher() -> None:
    teacher = [{"text": "a b", "whisper": "a b", "mos": 4.5}] * 4
    student = [{"text": "a b", "whisper": "a c", "mos": 4.0}] * 4
    found = metrics.summary(student, teacher, [0.5, 1.0, 1.1, 1.6])
    assert found["durations_within"] == 75.0
    assert found["duration_ratio"] == 1.05
    table = metrics.markdown({"it": found})
    assert "| it | 4 | 0.0 → 50.0 |  | 4.5 → 4.0 | 1.05 | 75.0 |" in table


def test_differences_are_of_pairs_of_sentences() -> None:
    teacher = [{"text": "a b", "whisper": "a b", "mos": 4.0 + i % 7 / 10} for i in range(50)]
    worse = [row | {"whisper": "a c" if i % 5 == 0 else "a b"} for i, row in enumerate(teacher)]
    student = [row | {"mos": row["mos"] - 0.25} for row in worse]
    value, low, high = metrics.paired_difference(student, teacher, "whisper") or []
    assert value == 10.0
    assert 3.0 < low < 8.0
    assert 12.0 < high < 18.0
    # Sentences differ in naturalness; by how much the two do is always the same.
    assert metrics.paired_difference(student, teacher, "mos") == [-0.25, -0.25, -0.25]
    assert metrics.paired_difference(student, teacher, "moonshine") is None
    found = metrics.summary(student, teacher, [1.0] * 50)
    assert f"| it | +10.00 (+{low:.2f} to +{high:.2f}) |  | -0.25 (-0.25 to -0.25) |" in (
        metrics.markdown({"it": found})
    )


def test_everything_is_spoken_by_voices_of_the_language(rows: list[dict]) -> None:
    sets = {name: [row for row in rows if row["set"] == name] for name in evaluate.SETS}
    assert [row["text"] for row in sets["en"]] == SENTENCES["en"]
    assert {row["lang"] for row in sets["en"]} == {"en-us", "en-gb"}
    assert {"Hi.", "Yes.", "42."} <= {row["text"] for row in sets["short"]}
    assert len({row["id"] for row in rows}) == len(rows)
    assert len(sets["clone"]) == 3 * len(HELD_OUT_VOICES)


def test_a_long_text_is_made_of_the_sentences(rows: list[dict]) -> None:
    row, used = evaluate.long_row(rows)
    assert 600 <= len(row["text"].split()) <= 607
    assert row["text"].split() == " ".join(row["text"] for row in used).split()
    assert row["text"].count("\n\n") == len(used) // 6


def test_a_model_is_scored_beside_the_teacher(
    evaluation: evaluate.Evaluation, rows: list[dict], tts: StubTTS, tmp_path: Path
) -> None:
    found = evaluate.evaluate(evaluation, rows, {"en", "fr", "short"}, limit=3)
    english = found["sentences"]["en"]
    assert english["sentences"] == 3
    assert english["teacher_wer_whisper"] == 0.0
    assert english["student_wer_whisper"] == pytest.approx(100 / 7, abs=0.01)
    assert english["student_wer_moonshine"] == 0.0
    assert 1.9 < english["duration_ratio"] < 2.1
    assert english["durations_within"] == 0.0
    assert found["sentences"]["fr"]["student_wer_moonshine"] is None
    assert found["sentences"]["short"]["sentences"] == 100
    assert found["recognition_errors"] == []
    assert {voice for _, voice, _ in tts.said} == {"af_heart", "own"}


def test_existing_clips_and_scores_are_reused(
    evaluation: evaluate.Evaluation,
    rows: list[dict],
    tts: StubTTS,
    judge_folder: Path,
    tmp_path: Path,
) -> None:
    first = evaluate.evaluate(evaluation, rows, {"es"}, limit=2)
    said = len(tts.said)
    (judge_folder / "score.py").unlink()
    (tmp_path / "teacher-folder" / "speak.py").unlink()
    assert evaluate.evaluate(evaluation, rows, {"es"}, limit=2) == first
    assert len(tts.said) == said == 2


def test_a_teacher_that_is_not_there_cannot_speak(tmp_path: Path, rows: list[dict]) -> None:
    with pytest.raises(SystemExit, match="has no clip of en-en-000; give --teacher"):
        synthesis.Teacher(tmp_path, None).synthesize(rows[:1])


def test_clones_are_compared_with_their_own_and_other_voices(
    evaluation: evaluate.Evaluation,
    rows: list[dict],
    tts: StubTTS,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class StubEmbedder:
        def embed(self, wav: Path) -> np.ndarray:
            voice = list(HELD_OUT_VOICES).index(wav.stem.split("-")[1])
            vector = np.eye(9)[voice]
            return 0.8 * vector + 0.6 * np.eye(9)[8] if wav.parent.name == "student" else vector

    monkeypatch.setattr(voice_similarity, "SpeakerEmbedder", StubEmbedder)
    for row in rows:  # the toy teacher has two voices: which one says it does not matter here
        if row["set"] == "clone":
            row["voice"] = row["id"].split("-")[1]
    monkeypatch.setattr(
        evaluation._teacher,
        "synthesize",
        lambda rows: {row["id"]: Path(row["id"] + ".wav") for row in rows},
    )
    found = evaluate.evaluate(evaluation, rows, {"clone"}, limit=None)
    assert found["clone"]["bm_lewis"] == {"clone": 0.8, "others": 0.0, "itself": 1.0}
    assert ("clone of clone-bm_lewis-reference") in {voice for _, voice, _ in tts.said}
    assert "| mean | 0.8 | 0.0 | 1.0 |" in evaluate.to_markdown(found)


def test_scores_are_kept_as_they_come(tmp_path: Path, judge_folder: Path) -> None:
    kept = tmp_path / "metrics.jsonl"
    clips = {f"student/{n}": (tmp_path / f"student{n}.wav", "fr", "Trop long.") for n in range(45)}
    found = metrics.judge(clips, judge_folder, kept)
    assert len(kept.read_text("utf-8").splitlines()) == 45
    assert json.loads(kept.read_text("utf-8").splitlines()[44])["name"] == "student/44"
    assert found["student/44"]["whisper"] == "trop wrong"


class SlowTTS:
    """Speaks two per cent longer than it is asked to, other than at the usual rate."""

    voices = ("af_heart", "own")

    def generate(self, text: str, voice: str, language: str, speed: float, seed: int) -> object:
        assert (voice, language) == ("af_heart", "en")
        seconds = len(text) / 10 / speed * (1 if speed == 1 else 1.02)
        samples = np.full(round(24000 * seconds), 0.1, np.float32)
        return SimpleNamespace(save=lambda path: soundfile.write(path, samples, 24000))


def test_rates_are_compared_with_the_usual_one(
    judge_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rate_evaluation, "evaluation_sentences", lambda data: SENTENCES)
    monkeypatch.setattr("nightingale.load", lambda model: SlowTTS())
    out = tmp_path / "student"
    paths = [str(tmp_path), str(out), "--data", "data", "--judge", str(judge_folder)]
    rate_evaluation.main([*paths, "--rates", "0.5,1,2", "--sentences", "3"])
    found = json.loads((out / "rates.json").read_text())
    assert list(found) == ["0.5", "1", "2"]
    assert found["1"]["length"] == 1
    for rate in ("0.5", "2"):
        assert found[rate]["length"] == pytest.approx(1.02, abs=1e-3)
    for figures in found.values():
        assert (figures["mos"], figures["wer_moonshine"]) == (4.0, 0.0)
        assert figures["wer_whisper"] == pytest.approx(100 / 7, abs=0.01)
