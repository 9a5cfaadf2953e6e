"""The error budget, with a model and a judge that cost nothing."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile

torch = pytest.importorskip("torch")

from train import budget, evaluate  # noqa: E402
from train.networks.speech_tokenizer import TOKENIZER_SIZES, SpeechTokenizer  # noqa: E402
from train.networks.tokenizer_heads import HEADS_SIZES, Heads  # noqa: E402
from train.speech_tokenizer import PREFIX  # noqa: E402
from train.state import save_stage  # noqa: E402

from .toy_teacher import write_teacher  # noqa: E402

SENTENCES = {
    language: [f"The {language} sentence number {n} is long." for n in range(20)]
    for language in ("en", "es", "fr", "it", "pt")
}
# Hears a word wrongly in each clip of the flow.
SCORE = """
import json, sys
for line in open(sys.argv[-1], encoding="utf-8"):
    path, language, text = line.rstrip("\\n").split("\\t")
    said = " ".join(text.lower().strip(".!?").split())
    heard = said.replace("long", "wrong") if "/flow" in path else said
    row = {"path": path, "language": language, "text": said, "whisper": heard}
    row |= {"moonshine": said} if language == "en" else {}
    print(json.dumps(row | {"mos": 4.5 if "/teacher" in path else 4.0}))
print(json.dumps({"clips": 1}))
"""


class StubTTS:
    voices = ("af_heart", "am_puck")

    def __init__(self) -> None:
        self.mels: list[np.ndarray] = []
        self.tokens: list[tuple[np.ndarray, str, int | None]] = []

    def vocode(self, mel: np.ndarray) -> np.ndarray:
        self.mels.append(mel)
        return np.zeros(480 * mel.shape[1], np.float32)

    def synthesize(self, tokens: np.ndarray, voice: str, steps: int | None) -> SimpleNamespace:
        self.tokens.append((tokens, voice, steps))
        return SimpleNamespace(samples=np.zeros(960 * len(tokens), np.float32))

    def generate(self, text: str, voice: str, language: str) -> SimpleNamespace:
        samples = np.zeros(24000, np.float32)
        return SimpleNamespace(save=lambda path: soundfile.write(path, samples, 24000))


@pytest.fixture
def tts(monkeypatch: pytest.MonkeyPatch) -> StubTTS:
    stub = StubTTS()
    monkeypatch.setattr("nightingale.load", lambda model: stub)
    monkeypatch.setattr(evaluate, "evaluation_sentences", lambda data: SENTENCES)
    monkeypatch.setattr(evaluate, "Phonemizer", lambda: lambda text, accent: text.lower())
    for language, speakers in evaluate.SPEAKERS.items():
        accents = [speaker.split()[0] for speaker in speakers]
        named = tuple(f"{accent} af_heart" for accent in accents)
        monkeypatch.setitem(evaluate.SPEAKERS, language, named)
    return stub


@pytest.fixture
def tokenizer(tmp_path: Path) -> Path:
    """A tiny speech tokenizer of a training run, with its heads, and a model that has it, too."""
    size = TOKENIZER_SIZES["tiny"]
    tensors = SpeechTokenizer(size).state_dict()
    named = {PREFIX + name: x for name, x in tensors.items()}
    facts = {"width": size.width, "layers": size.layers}
    path = save_stage(tmp_path / "stages", "speech_tokenizer", named, facts)
    heads = Heads(HEADS_SIZES["tiny"], voices=2, letters=3, phonemes=4, pitches=5)
    labels = {"voices": ["af_heart", "am_puck"]}
    save_stage(path.parent, "speech_tokenizer_heads", heads.state_dict(), labels, torch.float16)
    save_stage(tmp_path / "model", "s3gen_meanflow", named, {})
    return path


def run(tmp_path: Path, *more: str, language: str = "en") -> dict:
    judge = tmp_path / "judge"
    if not judge.exists():
        (judge / "venv/bin").mkdir(parents=True)
        (judge / "venv/bin/python").symlink_to(sys.executable)
        (judge / "score.py").write_text(SCORE, encoding="utf-8")
    teacher = write_teacher(tmp_path / "teacher") if not (tmp_path / "teacher").exists() else None
    words = [str(tmp_path / "model"), str(tmp_path / "out"), "--data", "data"]
    words += ["--judge", str(judge), "--sentences", "2", *more]
    words += ["--language", language]
    budget.main([*words, "--teacher", str(teacher)] if teacher else words)
    return json.loads((tmp_path / f"out/budget-{language}.json").read_text("utf-8"))


def test_each_row_has_the_scores_of_its_stages(
    tts: StubTTS, tokenizer: Path, tmp_path: Path
) -> None:
    found = run(tmp_path, "--tokenizer", str(tokenizer))
    assert list(found) == list(budget.ROWS)
    assert {row["sentences"] for row in found.values()} == {2}
    wrong = {name for name, row in found.items() if row["wer_whisper"] > 0}
    assert wrong == {"flow-10", "flow"}
    assert found["flow"]["wer_whisper"] == pytest.approx(100 / 7, abs=0.01)
    assert found["flow"]["wer_moonshine"] == 0.0
    assert found["teacher"]["mos"] == 4.5
    assert found["decoder"]["mos"] == 4.0
    assert [steps for _, _, steps in tts.tokens] == [10, 10, None, None]
    assert {voice for _, voice, _ in tts.tokens} == {"af_heart"}
    seconds = soundfile.info(tmp_path / "out/vocoder/en-en-000.wav").duration
    assert len(tts.tokens[0][0]) == round(25 * seconds)
    copied, decoded = tts.mels[0], tts.mels[2]
    assert copied.shape == decoded.shape == (80, round(50 * seconds))
    table = (tmp_path / "out/budget-en.md").read_text("utf-8")
    assert "| its mel, vocoder | 2 | 0.0 | 0.0 | 4.0 |" in table


def test_clips_and_scores_are_reused_and_the_decoder_is_optional(
    tts: StubTTS, tokenizer: Path, tmp_path: Path
) -> None:
    first = run(tmp_path)
    assert list(first) == [name for name in budget.ROWS if name != "decoder"]
    made = len(tts.tokens)
    assert run(tmp_path) == first
    assert len(tts.tokens) == made


def test_a_language_without_a_second_recognizer(
    tts: StubTTS, tokenizer: Path, tmp_path: Path
) -> None:
    found = run(tmp_path, language="it")
    assert found["vocoder"]["wer_moonshine"] is None
    table = (tmp_path / "out/budget-it.md").read_text("utf-8")
    assert "| its mel, vocoder | 2 | 0.0 |  | 4.0 |" in table
    assert (tmp_path / "out/flow/it-it-000.wav").exists()


def test_a_decoder_needs_the_voice(tts: StubTTS, tokenizer: Path, tmp_path: Path) -> None:
    decoder = budget.TokenizerDecoder(tokenizer)
    with pytest.raises(SystemExit, match="was not trained on the voice bf_emma"):
        decoder.mel("bf_emma", torch.zeros(9600))
