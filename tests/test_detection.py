"""The language of a text, detected among those of the model."""

# ruff: noqa: RUF001

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import nightingale
from nightingale import cli
from nightingale.batch_requests import Requests
from nightingale.checkpoint import LANGUAGES, find_checkpoint
from nightingale.manifest import Line
from nightingale.options import LoadOptions
from nightingale.text import detection
from nightingale.text.detection import can_detect, detect

EMBEDDED = ("en", "es", "fr", "it", "pt")
BY_SCRIPT = {
    "ar": "السلام عليكم",
    "el": "Καλημέρα σας.",
    "he": "שלום עולם",
    "hi": "नमस्ते, आप कैसे हैं?",
    "ja": "東京は大きな都市です。",
    "ko": "안녕하세요.",
    "ru": "Привет, мир!",
    "zh": "今天天气很好。",
}
BY_LETTERS = {
    "da": "Det regner næsten hver dag, men vi går alligevel en tur i skoven.",
    "de": "Es regnet fast jeden Tag, aber wir gehen trotzdem im Wald spazieren.",
    "en": "It rains almost every day, but we still go for a walk in the woods.",
    "es": "Llueve casi todos los días, pero aun así paseamos por el bosque.",
    "fi": "Melkein joka päivä sataa, mutta kävelemme silti metsässä.",
    "fr": "Il pleut presque tous les jours, mais nous marchons quand même en forêt.",
    "it": "Piove quasi tutti i giorni, ma facciamo lo stesso una passeggiata nel bosco.",
    "ms": "Hujan turun hampir setiap hari, tetapi kami tetap berjalan di dalam hutan.",
    "nl": "Het regent bijna elke dag, maar toch wandelen we in het bos.",
    "no": "Det regner nesten hver dag, men vi går likevel en tur i skogen.",
    "pl": "Prawie codziennie pada deszcz, ale i tak chodzimy na spacer do lasu.",
    "pt": "Chove quase todos os dias, mas mesmo assim passeamos na floresta.",
    "sv": "Det regnar nästan varje dag, men vi går ändå en promenad i skogen.",
    "sw": "Mvua hunyesha karibu kila siku, lakini bado tunatembea msituni.",
    "tr": "Neredeyse her gün yağmur yağıyor ama yine de ormanda yürüyoruz.",
}


class Letters:
    """In place of py3langid's identifier: French where there is an accent, else the first."""

    def set_languages(self, languages: tuple[str, ...]) -> None:
        self.languages = languages

    def classify(self, text: str) -> tuple[str, float]:
        accents = "fr" in self.languages and any(c in text for c in "éèêçà")
        return ("fr" if accents else self.languages[0]), 1.0


@pytest.fixture
def letters(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(detection, "_all_languages", Letters)
    detection._identifier.cache_clear()
    yield
    detection._identifier.cache_clear()


@pytest.fixture
def no_library(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As where the extra is not installed."""
    monkeypatch.setitem(sys.modules, "py3langid.langid", None)
    monkeypatch.setattr(detection, "_all_languages", detection.Once(detection._load))
    detection._identifier.cache_clear()
    yield
    detection._identifier.cache_clear()


@pytest.mark.parametrize("language", BY_SCRIPT)
def test_a_script_of_one_language_decides_alone(language: str, no_library: None) -> None:
    assert detect(BY_SCRIPT[language], LANGUAGES) == language
    assert detect(f"123 {BY_SCRIPT[language]} 🙂 [pause 1s]", LANGUAGES) == language
    assert detect(f"{BY_SCRIPT[language]} https://example.com/a/b", LANGUAGES) == language


@pytest.mark.parametrize(
    ("text", "languages", "language"),
    [
        ("ALSA は Linux Sound Architecture の略称です。", LANGUAGES, "ja"),
        ("查看 Django 的 release notes", LANGUAGES, "zh"),
        ("鲜の味餐厅的菜很好吃，我们每个星期都去。", LANGUAGES, "zh"),
        ("東京都", LANGUAGES, "zh"),
        ("東京都", ("en", "ja"), "ja"),
        ("カタカナ", ("en", "zh", "ja"), "ja"),
        ("漢字かな", ("en", "zh"), "zh"),
        ("Привет, Windows!", ("en", "ru"), "ru"),
        ("The word λόγος means reason, speech or account.", ("en", "el"), "en"),
        ("[laughter] Привет", LANGUAGES, "ru"),
        ("Hello there.", ("en", "ru", "zh"), "en"),
        ("Hello there.", ("ru", "zh", "fr"), "fr"),
    ],
)
def test_scripts_are_weighed(
    text: str, languages: tuple[str, ...], language: str, no_library: None
) -> None:
    assert detect(text, languages) == language


def test_a_model_of_one_language_has_no_choice(no_library: None) -> None:
    for text in ("Bonjour à tous.", "Привет", "", "123"):
        assert detect(text, ("en",)) == "en"


@pytest.mark.parametrize("text", ["", " ", "123", "?!…", "🙂", "สวัสดี", "[pause 1s]"])
def test_what_cannot_be_told_is_the_model_s_default(
    text: str, no_library: None, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert detect(text, EMBEDDED) == "en"
        assert detect(text, ("fr", "it")) == "fr"
    assert "the language of the text cannot be told: it is read as 'en'" in caplog.messages


def test_detection_needs_a_choice_and_for_one_script_the_library(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert can_detect(EMBEDDED)
    assert not can_detect(["en"])
    assert not can_detect(["ja"])
    monkeypatch.setitem(sys.modules, "py3langid", None)
    assert not can_detect(EMBEDDED)
    assert can_detect(["en", "ja", "zh", "ru"])


def test_without_the_library_the_error_names_the_extra(no_library: None) -> None:
    with pytest.raises(nightingale.Error, match=r"pip install 'nightingale-tts\[detection\]'"):
        detect("Bonjour à tous.", EMBEDDED)


@pytest.mark.parametrize("language", BY_LETTERS)
def test_languages_of_the_latin_script_are_told_apart(language: str) -> None:
    pytest.importorskip("py3langid", reason="pip install 'nightingale-tts[detection]'")
    assert detect(BY_LETTERS[language], LANGUAGES) == language
    assert detect(BY_LETTERS[language].upper(), LANGUAGES) == language
    if language in EMBEDDED:
        assert detect(BY_LETTERS[language], EMBEDDED) == language


FRENCH = "Un café, s'il vous plaît, à côté."


@pytest.mark.slow
def test_the_text_s_language_is_spoken_and_told(
    quick_tts: nightingale.TTS, letters: None, caplog: pytest.LogCaptureFixture
) -> None:
    french = quick_tts.generate(FRENCH, language="fr", max_tokens=4)
    found = quick_tts.generate(FRENCH, language="auto", max_tokens=4)
    assert found.samples.tobytes() == french.samples.tobytes()
    assert (found.language, french.language) == ("fr", "fr")
    assert quick_tts.tokenize(FRENCH, "Auto").tolist() == quick_tts.tokenize(FRENCH, "fr").tolist()
    tokens = quick_tts.speech_tokens(FRENCH, language="auto", max_tokens=4)
    assert tokens.tolist() == found.tokens.tolist()
    prepared = quick_tts.prepare(FRENCH, "auto")
    chunks = [c for c in quick_tts.stepwise(prepared, language="auto", max_tokens=4) if c]
    assert {chunk.language for chunk in chunks} == {"fr"}
    assert quick_tts.generate("12", language="auto", max_tokens=4).language == "en"
    assert "the language of the text cannot be told: it is read as 'en'" in caplog.messages
    for bad in ("", " "):
        with pytest.raises(ValueError, match="no text to speak"):
            quick_tts.generate(bad, language="auto")
    with pytest.raises(ValueError, match="text must be a string, not int"):
        quick_tts.generate(5, language="auto")


@pytest.mark.slow
def test_text_that_is_in_no_script_of_the_model_is_refused(
    embedded_checkpoint: Path, letters: None
) -> None:
    tts = nightingale.load()
    with pytest.raises(ValueError, match=r"there is no letter|cannot speak"):
        tts.generate("🙂", language="auto")


@pytest.mark.slow
def test_the_command_line_tells_the_language(
    quick_checkpoint: Path, letters: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--language", "auto", "--model", str(quick_checkpoint), "--max-tokens", "4", "--json"]
    for command in ("say", "stream"):
        assert cli.main([command, FRENCH, *words, "-o", str(tmp_path / "a.wav")]) == 0
        assert json.loads(capsys.readouterr().out.splitlines()[0])["language"] == "fr"


def test_a_batch_takes_auto(quick_checkpoint: Path) -> None:
    requests = Requests(find_checkpoint(quick_checkpoint), LoadOptions(), {"language": "auto"})
    lines = [Line(1, FRENCH, "1.wav", options) for options in ({}, {"language": "fr"})]
    for line in lines:
        requests.check(line.options)
    assert len({requests.request(line).digest for line in lines}) == 2
    with pytest.raises(ValueError, match="unknown language 'automatic'"):
        requests.check({"language": "automatic"})


def messages(socket: Any) -> Iterator[dict[str, Any]]:
    """What a WebSocket is told, without the sound, up to `done`."""
    told: dict[str, Any] = {}
    while told.get("type") != "done":
        told = json.loads(socket.receive().get("text") or "{}")
        yield told


@pytest.mark.slow
def test_http_and_websocket_detect_and_tell(quick_checkpoint: Path, letters: None) -> None:
    pytest.importorskip("fastapi", reason="pip install 'nightingale-tts[server]'")
    from starlette.testclient import TestClient

    from nightingale.server import Settings, create_app

    app = create_app(Settings(model=str(quick_checkpoint)))
    with TestClient(app, base_url="http://localhost") as client:
        body = {"model": "nightingale", "input": "Né.", "language": "auto"}
        answer = client.post("/v1/audio/speech", json=body | {"stream_format": "json"})
        assert answer.headers["nightingale-language"] == answer.json()["language"] == "fr"
        with client.websocket_connect("ws://localhost/v1/audio/speech/live") as socket:
            socket.send_json({"type": "begin", "language": "auto"})
            socket.send_json({"type": "text", "text": "Né."})
            socket.send_json({"type": "end"})
            told = list(messages(socket))
        assert [m["language"] for m in told if m.get("type") == "language"] == ["fr"]


def test_the_first_sentence_decides_for_the_rest_of_a_socket_s_text() -> None:
    pytest.importorskip("fastapi", reason="pip install 'nightingale-tts[server]'")
    import asyncio

    from nightingale.server.live import Begin, _Session

    async def run() -> list[Any]:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            if message["type"] != "begin":
                sent.append(message)

        facts = SimpleNamespace(voices=[], languages={"es": "Spanish"})
        server = SimpleNamespace(
            engine=SimpleNamespace(facts=facts), find_voice=lambda name, voices: None
        )
        session = _Session(SimpleNamespace(send_json=send), server)  # type: ignore[arg-type]
        await session.take(Begin(type="begin", language="auto"))
        settings = session._settings
        for language in ("fr", "it"):
            await session._tell_language(settings, language)
        sent.append((session._detected, session._incoming.language))
        await session.take(Begin(type="begin", language="es"))
        session._detected = ""
        await session._tell_language(settings, "pt")
        sent.append(session._incoming.language)
        await session.stop()
        return sent

    assert asyncio.run(run()) == [
        {"type": "language", "language": "fr"},
        ("fr", "fr"),
        {"type": "language", "language": "pt"},
        "es",
    ]
