"""The rates that a model is found to speak at."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("torch")

import nightingale
from nightingale.model_settings import ModelSettings
from train import speaking_rate


class Spoken:
    """Stands in for a model: the tokens of a text by the value of its emotion input."""

    voices = ("a", "b")

    def __init__(self, tokens: Callable[[float], int]) -> None:
        self._tokens = tokens

    def speech_tokens(self, text: str, voice: str, exaggeration: float, seed: int) -> list[int]:
        return [0] * (len(text) * self._tokens(exaggeration))


def write_texts(folder: Path, text: str) -> tuple[Path, Path]:
    (folder / "nightingale.json").write_text('{"languages": ["en"], "speaking_rate": 3}')
    (folder / "texts.txt").write_text(text)
    return folder / "nightingale.json", folder / "texts.txt"


def test_rates_are_lengths_beside_the_usual_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, texts = write_texts(tmp_path, "One.\n\nAnother.\n")
    monkeypatch.setattr(nightingale, "load", lambda _: Spoken(lambda v: round(6000 / (1 + v))))
    speaking_rate.main([str(tmp_path), "--text", str(texts)])
    found = json.loads(settings.read_text())
    assert found["languages"] == ["en"]
    assert [value for _, value in found["speaking_rate"]] == list(speaking_rate.VALUES)
    rates = {value: rate for rate, value in found["speaking_rate"]}
    for value, rate in rates.items():
        assert rate == pytest.approx((1 + value) / 1.5, rel=0.01)
    read = ModelSettings.of(tmp_path, {"en": "English"}, "none").speaking_rate
    assert read is not None
    assert read.split(1.0) == (0.5, 1.0)


def test_a_model_that_does_not_follow_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, texts = write_texts(tmp_path, "One.\n")
    monkeypatch.setattr(nightingale, "load", lambda _: Spoken(lambda v: 10))
    with pytest.raises(SystemExit, match="does not follow the speaking rate"):
        speaking_rate.main([str(tmp_path), "--text", str(texts)])
    assert json.loads(settings.read_text()) == {"languages": ["en"]}


def test_a_file_without_sentences_is_refused(tmp_path: Path) -> None:
    settings, texts = write_texts(tmp_path, "\n \n")
    before = settings.read_text()
    with pytest.raises(SystemExit):
        speaking_rate.main([str(tmp_path), "--text", str(texts)])
    assert settings.read_text() == before
