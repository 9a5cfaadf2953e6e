"""Where no model is named, the one in the package is used: here a stand-in that makes noise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import soundfile

import nightingale
from nightingale import cli, hub
from nightingale.server import Settings
from nightingale.server.app import make_engine

from .recordings import speech

pytestmark = pytest.mark.slow

CPU = ("--device", "cpu")
SHORT = ("--max-tokens", "10", *CPU)


@pytest.fixture(autouse=True)
def folder(embedded_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the commands run; nobody may ask the hub."""

    def refuse(*args: object) -> None:
        raise AssertionError("the hub was asked")

    monkeypatch.setattr(hub, "download", refuse)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_load_takes_it(embedded_checkpoint: Path) -> None:
    tts = nightingale.load(device="cpu")
    assert tts.info["model"] == str(embedded_checkpoint)
    assert tts.voices == ["default", "Anna"]
    assert tts.languages == {"en": "English", "es": "Spanish"}
    named = nightingale.load(embedded_checkpoint, device="cpu")
    tokens = [each.speech_tokens("Hello.", max_tokens=5).tolist() for each in (tts, named)]
    assert tokens[0] == tokens[1]


def test_a_language_that_it_has_not_is_told_with_where_to_find_it() -> None:
    with pytest.raises(ValueError, match="unknown language 'de'") as caught:
        nightingale.load(device="cpu").generate("Guten Tag.", language="de")
    assert str(caught.value) == (
        "unknown language 'de'; this model speaks en, es; for German load a multilingual "
        "checkpoint, such as ResembleAI/chatterbox, which speaks 23 languages"
    )


@pytest.mark.parametrize("command", ["say", "stream"])
def test_it_speaks_to_a_file(command: str, folder: Path) -> None:
    assert cli.main([command, "Hello.", "-o", "hello.wav", "--voice", "Anna", *SHORT]) == 0
    assert soundfile.info(folder / "hello.wav").frames > 0


def test_it_bakes_voices(folder: Path) -> None:
    soundfile.write("me.wav", speech(6, 24000), 24000)
    assert cli.main(["bake", "me.wav", "-o", "me.safetensors", *CPU]) == 0
    assert nightingale.Voice.load(folder / "me.safetensors").prompt_token is not None


def test_its_voices_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["voices"]) == 0
    assert capsys.readouterr().out == "".join(
        f"{name}\tany language\tof the model\n" for name in ("default", "Anna")
    )


def test_the_doctor_examines_it(
    embedded_checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["doctor", "--json", *CPU]) == 0
    told = json.loads(capsys.readouterr().out)["model"]
    assert told["model"] == str(embedded_checkpoint)
    assert (told["voices"], told["languages"]) == (["default", "Anna"], ["en", "es"])
    assert told["self_test"]["seconds"] > 0


def test_the_doctor_is_content_without_it(
    no_embedded_checkpoint: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["doctor", "--json"]) == 0
    assert "model" not in json.loads(capsys.readouterr().out)


def test_it_is_timed_and_validated(
    embedded_checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["bench", "Hello.", "--rounds", "1", "--json", *SHORT]) == 0
    assert json.loads(capsys.readouterr().out)["model"]["model"] == str(embedded_checkpoint)
    cli.main(["validate", "--quick", "--runs", "2", "--text", "Hello.", "--json", *SHORT])
    assert json.loads(capsys.readouterr().out)["model"] == str(embedded_checkpoint)


def test_a_batch_is_checked_against_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "lines.jsonl").write_text('{"text": "Guten Tag.", "language": "de"}\n')
    assert cli.main(["batch", "lines.jsonl", "-o", "out"]) == 1
    assert "line 1: unknown language 'de'; this model speaks en, es;" in capsys.readouterr().err


def test_it_is_served() -> None:
    engine = make_engine(Settings(load=nightingale.LoadOptions(device="cpu")))
    engine.start()
    assert engine.facts.voices == ("default", "Anna")
    engine.stop()
