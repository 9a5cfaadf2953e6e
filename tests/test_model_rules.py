"""What Turbo and Nano do differently around T3, with the rules alone: any model stands in."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nightingale
from nightingale import cli
from nightingale.model_rules import RULES, SILENCE
from nightingale.speaking_rate import SpeakingRate

TEXT = "Hello there, my friend."
TOKEN_SAMPLES = 960
SETTINGS = {"max_tokens": 20, "seed": 3}


@pytest.fixture
def turbo(quick_tts: nightingale.TTS, monkeypatch: pytest.MonkeyPatch) -> nightingale.TTS:
    monkeypatch.setattr(quick_tts._loaded, "rules", RULES["gpt2"])
    return quick_tts


def test_three_tokens_of_silence_follow_each_sentence(
    quick_tts: nightingale.TTS, turbo: nightingale.TTS, monkeypatch: pytest.MonkeyPatch
) -> None:
    audio = turbo.generate(TEXT, **SETTINGS)
    closed = quick_tts.synthesize([*audio.tokens, SILENCE, SILENCE, SILENCE], seed=3)
    kept = len(audio.samples) - 480  # but for the end, which is faded out
    np.testing.assert_array_equal(audio.samples[:kept], closed.samples[:kept])
    monkeypatch.setattr(quick_tts._loaded, "rules", RULES["llama"])
    without = quick_tts.generate(TEXT, **SETTINGS)
    np.testing.assert_array_equal(audio.tokens, without.tokens)
    assert len(audio.samples) == len(without.samples) + 3 * TOKEN_SAMPLES


def test_a_stream_has_the_tokens_and_samples_of_the_whole(turbo: nightingale.TTS) -> None:
    audio = turbo.generate(TEXT, **SETTINGS)
    chunks = list(turbo.stream(TEXT, first_chunk=8, **SETTINGS))
    assert len(chunks) > 1
    tokens = np.concatenate([chunk.tokens for chunk in chunks])
    np.testing.assert_array_equal(tokens, audio.tokens)
    assert sum(len(chunk.samples) for chunk in chunks) == len(audio.samples)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"cfg_weight": 0.9}, "no cfg_weight: ignored"),
        ({"min_p": 0.3, "exaggeration": 0.9}, "no exaggeration and no min_p: ignored"),
    ],
)
def test_options_that_turbo_ignores_change_nothing_and_warn(
    given: dict[str, float], named: str, turbo: nightingale.TTS
) -> None:
    expected = turbo.generate(TEXT, **SETTINGS)
    with pytest.warns(nightingale.IgnoredOptionWarning, match=named):
        audio = turbo.generate(TEXT, **SETTINGS, **given)
    np.testing.assert_array_equal(audio.samples, expected.samples)
    with pytest.warns(nightingale.IgnoredOptionWarning, match=named):
        chunks = list(turbo.stream(TEXT, first_chunk=8, **SETTINGS, **given))
    assert chunks[0].ignored == sorted(given)
    assert all(chunk.ignored == [] for chunk in chunks[1:])
    with pytest.warns(nightingale.IgnoredOptionWarning, match=named):
        tokens = turbo.speech_tokens(TEXT, **SETTINGS, **given)
    np.testing.assert_array_equal(tokens, expected.tokens)


@pytest.mark.parametrize(
    "given", [{}, {"cfg_weight": 0.0}, {"exaggeration": 0.0, "min_p": 0.0}, {"top_p": 0.5}]
)
def test_nothing_is_told_of_options_that_are_not_given_or_off(
    given: dict[str, float], turbo: nightingale.TTS
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        turbo.speech_tokens("Hi.", max_tokens=2, **given)


def test_other_models_ignore_nothing(quick_tts: nightingale.TTS) -> None:
    given = {"cfg_weight": 0.9, "min_p": 0.3, "exaggeration": 0.9}
    assert quick_tts._loaded.rules.ignored(nightingale.SpeechOptions(**given)) == []


def test_the_command_line_tells_it_on_standard_error(
    turbo: nightingale.TTS,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("nightingale.load", lambda *given, **options: turbo)
    command = ["say", "Hi.", "--max-tokens", "5", "--cfg-weight", "0.7", "-o"]
    assert cli.main([*command, str(tmp_path / "hi.wav")]) == 0
    assert "nightingale: this model has no --cfg-weight: ignored" in capsys.readouterr().err


@pytest.fixture(scope="module")
def client(quick_checkpoint: Path) -> Iterator[Any]:
    """Of a server whose model follows Turbo's rules."""
    testclient = pytest.importorskip("starlette.testclient")
    from nightingale.server import Settings, create_app
    from nightingale.server.jobs import EngineThread

    def load() -> nightingale.TTS:
        tts = nightingale.load(quick_checkpoint)
        tts._loaded.rules = RULES["gpt2"]
        return tts

    engine = EngineThread(load)
    engine.start()
    app = create_app(Settings(), engine)
    with testclient.TestClient(app, base_url="http://localhost") as client:
        yield client


@pytest.mark.slow
def test_the_server_tells_it_and_the_page_does_not_offer_them(client: Any) -> None:
    asked = {"model": "nightingale", "input": "Hi.", "stream_format": "json"}
    answer = client.post("/v1/audio/speech", json=asked | {"cfg_weight": 0.7, "exaggeration": 1})
    assert answer.headers["nightingale-ignored"] == "cfg_weight, exaggeration"
    assert answer.json()["ignored"] == ["cfg_weight", "exaggeration"]
    plain = client.post("/v1/audio/speech", json=asked | {"cfg_weight": 0})
    assert "nightingale-ignored" not in plain.headers
    assert plain.json()["ignored"] == []
    shown = [control["name"] for control in client.get("/page/options.json").json()]
    assert "temperature" in shown
    assert not {"cfg_weight", "exaggeration"} & set(shown)


@pytest.mark.slow
def test_a_websocket_tells_it_once_up_to_the_end(client: Any) -> None:
    with client.websocket_connect("ws://localhost/v1/audio/speech/live") as socket:
        socket.send_json({"type": "begin", "cfg_weight": 0.7})
        for text in ("Hi. ", "No."):
            socket.send_json({"type": "text", "text": text})
            socket.send_json({"type": "flush"})
        socket.send_json({"type": "end"})
        told: list[dict[str, Any]] = []
        while not told or told[-1]["type"] != "done":
            message = socket.receive()
            if message.get("text"):
                told.append(json.loads(message["text"]))
    kinds = [event["type"] for event in told]
    assert kinds.count("sentence") == 2
    assert [event for event in told if event["type"] == "ignored"] == [
        {"type": "ignored", "options": ["cfg_weight"]}
    ]


RATE = SpeakingRate(((0.8, 0.1), (1.0, 0.5), (1.25, 1.3)))


@pytest.fixture
def paced(quick_tts: nightingale.TTS, monkeypatch: pytest.MonkeyPatch) -> nightingale.TTS:
    """A model whose T3 is told the speaking rate."""
    monkeypatch.setattr(quick_tts._loaded, "rules", RULES["llama"].with_speaking_rate(RATE))
    return quick_tts


def test_a_speed_is_spoken_as_far_as_t3_can_and_stretched_beyond() -> None:
    assert RATE.split(1.0) == (0.5, 1.0)
    assert RATE.split(0.8) == (pytest.approx(0.1), 1.0)
    assert RATE.split(1.25) == (pytest.approx(1.3), 1.0)
    value, rest = RATE.split(1.1)
    assert 0.5 < value < 1.3
    assert rest == 1.0
    assert RATE.split(2.0) == (pytest.approx(1.3), pytest.approx(1.6))
    assert RATE.split(0.5) == (pytest.approx(0.1), pytest.approx(0.625))


def test_speed_changes_the_tokens_of_a_model_that_is_told_the_rate(
    paced: nightingale.TTS, quick_tts: nightingale.TTS, monkeypatch: pytest.MonkeyPatch
) -> None:
    fast = paced.generate(TEXT, speed=1.25, **SETTINGS)
    faster = paced.generate(TEXT, speed=2.0, **SETTINGS)
    usual = paced.generate(TEXT, **SETTINGS)
    np.testing.assert_array_equal(paced.speech_tokens(TEXT, speed=1.25, **SETTINGS), fast.tokens)
    monkeypatch.setattr(quick_tts._loaded, "rules", RULES["llama"])
    np.testing.assert_array_equal(quick_tts.generate(TEXT, **SETTINGS).samples, usual.samples)
    told = quick_tts.generate(TEXT, exaggeration=1.3, **SETTINGS)
    np.testing.assert_array_equal(fast.samples, told.samples)
    np.testing.assert_array_equal(faster.tokens, told.tokens)
    stretched = quick_tts.generate(TEXT, exaggeration=1.3, speed=1.6, **SETTINGS)
    np.testing.assert_array_equal(faster.samples, stretched.samples)


def test_exaggeration_is_ignored_by_a_model_that_is_told_the_rate(paced: nightingale.TTS) -> None:
    with pytest.warns(nightingale.IgnoredOptionWarning, match="no exaggeration: ignored"):
        audio = paced.generate(TEXT, exaggeration=1.9, **SETTINGS)
    np.testing.assert_array_equal(audio.samples, paced.generate(TEXT, **SETTINGS).samples)


def test_the_settings_of_a_model_name_the_rates(checkpoint: Path, tmp_path: Path) -> None:
    for file in checkpoint.iterdir():
        if file.is_file() and file.name != "nightingale.json":
            (tmp_path / file.name).symlink_to(file)
    settings = json.loads((checkpoint / "nightingale.json").read_text())
    settings["speaking_rate"] = [[0.7, 0.0], [1, 0.5], [1.5, 1.1]]
    (tmp_path / "nightingale.json").write_text(json.dumps(settings))
    tts = nightingale.load(tmp_path, device="cpu")
    assert tts._loaded.rules.speaking_rate == SpeakingRate(((0.7, 0.0), (1.0, 0.5), (1.5, 1.1)))
    assert "exaggeration" in tts.info["ignored_options"]


def test_a_language_may_have_a_voice_of_its_own(quick_checkpoint: Path, tmp_path: Path) -> None:
    default = nightingale.Voice.load(quick_checkpoint / "conds.pt")
    other = replace(default, speaker_emb=default.speaker_emb[::-1].copy())
    for file in quick_checkpoint.iterdir():
        if file.is_file() and file.name != "nightingale.json":
            (tmp_path / file.name).symlink_to(file)
    (tmp_path / "voices").mkdir()
    other.save(tmp_path / "voices" / "ff_other.safetensors")
    settings = json.loads((quick_checkpoint / "nightingale.json").read_text())
    settings["voices"] = {"fr": "ff_other"}
    (tmp_path / "nightingale.json").write_text(json.dumps(settings))
    tts = nightingale.load(tmp_path, device="cpu")
    assert tts.info["language_voices"] == {"fr": "ff_other"}

    def said(**options: Any) -> bytes:
        return tts.generate("Bonjour, mon ami.", **SETTINGS, **options).samples.tobytes()

    native, usual = (said(voice=name, language="fr") for name in ("ff_other", "default"))
    assert said(language="fr") == native != usual
    assert said(language="auto") == native
    assert said(language="en") == said(language="en", voice="default")
