"""The `nightingale` command, run as users run it: usage and `tokens`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import nightingale
from nightingale import cli

from .command import run, start


@pytest.fixture(scope="module")
def model(checkpoint: Path, device: str) -> list[str]:
    return ["--model", str(checkpoint), "--device", device, "--max-tokens", "6"]


@pytest.fixture(scope="module")
def expected(tts: nightingale.TTS) -> list[int]:
    return tts.speech_tokens("Hello there.", max_tokens=6).tolist()


def test_tokens_prints_one_line_of_numbers(model: list[str], expected: list[int]) -> None:
    done = run("tokens", "Hello there.", *model)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("\n")
    assert [int(word) for word in done.stdout.split()] == expected
    assert len(done.stdout.splitlines()) == 1


def test_tokens_as_json_from_standard_input(model: list[str], expected: list[int]) -> None:
    done = run("tokens", "-", "--json", *model, input="Hello\nthere.\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == expected


def test_tokens_takes_the_settings_of_the_package(model: list[str], tts: nightingale.TTS) -> None:
    options = ["--seed", "5", "--temperature", "1.5", "--language", "fr", "--threads", "1"]
    done = run("tokens", "Bonjour.", "--json", *model, *options)
    settings = {"seed": 5, "temperature": 1.5, "language": "fr", "max_tokens": 6}
    assert json.loads(done.stdout) == tts.speech_tokens("Bonjour.", **settings).tolist()


def test_tokens_of_a_voice_file_and_another_dtype(
    model: list[str], tts: nightingale.TTS, checkpoint: Path, tmp_path: Path, device: str
) -> None:
    voice = nightingale.Voice(nightingale.Voice.load(checkpoint / "conds.pt").speaker_emb)
    voice.save(tmp_path / "me.safetensors")
    options = ["--voice", tmp_path / "me.safetensors", "--dtype", "bfloat16"]
    done = run("tokens", "Hello there.", "--json", *model, *options)
    short = nightingale.load(checkpoint, dtype="bfloat16", device=device)
    expected = short.speech_tokens("Hello there.", voice=voice, max_tokens=6)
    assert json.loads(done.stdout) == expected.tolist()


@pytest.mark.parametrize(
    ("text", "options", "phrase"),
    [
        (" ", [], "there is no text to speak"),
        ("Hello.", ["--max-tokens", "5000"], "--max-tokens is 5000; this model has positions for"),
        ("Hello.", ["--temperature", "nan"], "--temperature must be 0 or more, not nan"),
        ("Hello.", ["--language", "xx"], "unknown language 'xx'; this model speaks ar, da, de"),
        ("Hello.", ["--voice", "nobody"], "unknown voice 'nobody'"),
        ("Hello.", ["--threads", "0"], "--threads must be a whole number from 1 to 1024, not 0"),
        ("Hello.", ["--model", "no/such/folder"], "there is no folder no/such/folder"),
        ("\udcff", [], "the text holds bytes that are not valid UTF-8"),
    ],
)
def test_an_error_is_one_line_on_standard_error(
    model: list[str], text: str, options: list[str], phrase: str
) -> None:
    done = run("tokens", text, *model, *options)
    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith(f"nightingale: {phrase}")


def test_a_message_of_several_lines_becomes_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*args: Any, **kwargs: Any) -> None:
        raise nightingale.Error("first\n  second")

    monkeypatch.setattr(nightingale, "load", fail)
    assert cli.main(["tokens", "Hello.", "--model", "any"]) == 1
    assert capsys.readouterr() == ("", "nightingale: first second\n")


@pytest.mark.parametrize(
    ("args", "phrase"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["sing"], "invalid choice: 'sing'"),
        (["tokens", "Hello.", "-f", "x"], "argument -f/--file: not allowed with argument TEXT"),
        (["tokens", "Hello.", "--model", "m", "--seed", "x"], "argument --seed: invalid int"),
        (["tokens", "Hello.", "--model", "m", "--loud"], "unrecognized arguments: --loud"),
        (["tokens", "Hello.", "--dtype", "huge"], "argument --dtype: invalid choice: 'huge'"),
    ],
)
def test_wrong_usage_exits_with_2(
    args: list[str], phrase: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(args)
    assert caught.value.code == 2
    output, errors = capsys.readouterr()
    assert output == ""
    assert errors.startswith("usage: nightingale")
    assert phrase in errors


def test_wrong_usage_exits_with_2_as_a_process() -> None:
    done = run("tokens", "--loud")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: nightingale")


def test_a_reader_that_leaves_early_causes_no_traceback(model: list[str]) -> None:
    with start("tokens", "Hello. " * 20, *model, "--max-tokens", "3000") as speaker:
        assert speaker.stdout.read(1).isdigit()
        speaker.stdout.close()
        errors = speaker.stderr.read()
    assert (speaker.returncode, errors) == (141, "")


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr() == (f"nightingale {metadata.version('nightingale-tts')}\n", "")


def test_without_a_model_the_error_says_how_to_get_one(
    no_embedded_checkpoint: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["tokens", "Hello."]) == 1
    output, errors = capsys.readouterr()
    assert output == ""
    assert errors.startswith("nightingale: no model was named")
    assert len(errors.splitlines()) == 1


def test_an_error_of_no_known_kind_is_one_line_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(nightingale, "load", lambda *args, **kwargs: {}["a\nkey"])
    assert cli.main(["tokens", "Hello.", "--model", "any"]) == 1
    output, errors = capsys.readouterr()
    assert output == ""
    assert re.fullmatch(
        r"nightingale: unexpected KeyError \(test_cli.py, line \d+\): 'a\\nkey'\n", errors
    )


def test_usage_is_told_without_what_only_speaking_needs() -> None:
    program = "import sys, nightingale.cli\ntry: nightingale.cli.main(['--help'])\n"
    program += "except SystemExit: print(*{name.split('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0
    late = {"tqdm", "soundfile", "sounddevice", "tokenizers", "huggingface_hub", "mlx"}
    assert set(done.stdout.splitlines()[-1].split()) & late == set()
