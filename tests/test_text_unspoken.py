"""Text that a model cannot speak, in whole or in part."""

# ruff: noqa: RUF001

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import nightingale
from nightingale import cli
from nightingale.text.unspoken import named

from .command import names_in

pytestmark = pytest.mark.slow

# What is not spoken by a model for languages of the Latin script, by what it is.
UNSPEAKABLE = {
    "Chinese": "今天天气很好。",
    "Japanese": "こんにちは",
    "Korean": "안녕하세요",
    "Arabic": "السلام عليكم",
    "Hebrew": "שלום עולם",
    "Russian": "Привет, мир!",
    "Greek": "Καλημέρα",
    "Hindi": "नमस्ते",
    "Thai": "สวัสดี",
    "emoji": "🙂 👨‍👩‍👧 🇩🇪 👍🏽",
    "arrows": "→ ⇒ ■",
    "private use": "\ue000\uf8ff",
    "unassigned": "\U000e0fff \u0378",
}
PUNCTUATION = ["...", "?!", "— – -", "«»", "\u200b", "¿?", "( )", "。、"]


@pytest.fixture(scope="module")
def tts() -> nightingale.TTS:
    return nightingale.load()


@pytest.mark.parametrize("kind", UNSPEAKABLE)
def test_text_without_anything_the_model_knows_is_refused(kind: str, tts: nightingale.TTS) -> None:
    text = UNSPEAKABLE[kind]
    first = next(character for character in text if not character.isspace())
    for language in ("en", "fr"):
        with pytest.raises(ValueError, match="this model cannot speak") as refused:
            tts.generate(text, language=language)
        assert f"U+{ord(first):04X}" in str(refused.value)
        assert "English (en), Spanish (es)" in str(refused.value)


@pytest.mark.parametrize("text", PUNCTUATION)
def test_marks_alone_are_refused(text: str, tts: nightingale.TTS) -> None:
    with pytest.raises(ValueError, match=r"nothing to speak|no text to speak"):
        tts.generate(text)
    with pytest.raises(ValueError, match=r"nothing to speak|no text to speak"):
        tts.stream(text)


def test_a_pause_alone_is_silence(tts: nightingale.TTS) -> None:
    assert not tts.generate("[pause 100ms]").samples.any()


def test_the_rest_is_spoken_and_a_warning_names_what_is_not(tts: nightingale.TTS) -> None:
    with pytest.warns(nightingale.UnspokenWarning, match=r"🙂 \(U\+1F642\), 好 \(U\+597D\)"):
        audio = tts.generate("Hello 🙂 there, 好 friend.")
    assert audio.unspoken == ["🙂", "好"]
    expected = tts.generate("Hello there, friend.")
    np.testing.assert_array_equal(audio.samples, expected.samples)
    assert expected.unspoken == []
    assert [word.text for word in audio.words] == ["Hello", "there", "friend"]
    assert audio.words[2].source_start == len("Hello 🙂 there, 好 ")


def test_a_stream_tells_it_with_its_first_chunk(tts: nightingale.TTS) -> None:
    with pytest.warns(nightingale.UnspokenWarning, match="好"):
        chunks = list(tts.stream("Hello 好 there. And so on."))
    assert chunks[0].unspoken == ["好"]
    assert all(chunk.unspoken == [] for chunk in chunks[1:])


def test_a_sentence_that_cannot_be_spoken_leaves_its_pause(tts: nightingale.TTS) -> None:
    with pytest.warns(nightingale.UnspokenWarning):
        audio = tts.generate("Hi. 今天天气很好。 [pause 500ms] Hi.")
    expected = tts.generate("Hi. [pause 500ms] Hi.")
    assert abs(audio.duration - expected.duration) < 0.3


@pytest.mark.parametrize(
    "text",
    [
        "Œuvre, straße, Ærø, Łódź, Þór.",
        "Señor Muñoz; ¿qué? ¡No!",
        "naïve café",
        "ﬁne",
        "ＡＢＣ １２",
    ],
)
def test_letters_with_marks_and_ligatures_are_spoken(text: str, tts: nightingale.TTS) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        segments = tts.prepare(text, "es")
    assert all(segment.unspoken == () for segment in segments)
    assert "".join(segment.text for segment in segments).rstrip(".") == text.rstrip(".")


def test_a_message_names_a_few() -> None:
    assert named(["好", "e\u0301"]) == "好 (U+597D), e\u0301 (U+0065 U+0301)"
    assert named([chr(0x4E00 + i) for i in range(13)]).endswith("(U+4E09) and 3 more")


def test_the_command_line_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.wav"
    assert cli.main(["say", "今天天气很好。", "-o", str(file)]) == 1
    assert "cannot speak 今 (U+4ECA)" in capsys.readouterr().err
    assert names_in(tmp_path) == []
    assert cli.main(["say", "Hello 🙂.", "-o", str(file)]) == 0
    assert "left out of the speech: 🙂 (U+1F642)" in capsys.readouterr().err
    assert names_in(tmp_path) == ["a.wav"]
