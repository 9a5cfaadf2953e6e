"""The `nightingale` command, run as users run it: usage and `tokens`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import nightingale
from nightingale import cli, hub
from nightingale.cli.options import in_flags
from nightingale.text import detection

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


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("device='gpu', but there is none: use device='cpu'",
         "--device gpu, but there is none: use --device cpu"),
        ("kv_budget works on the CPU only", "--kv-budget works on the CPU only"),
        ("draft needs a whole KV cache: leave out kv_budget, or the draft",
         "--draft needs a whole KV cache: leave out --kv-budget, or the draft"),
        ('language="auto" needs py3langid', "--language auto needs py3langid"),
        ("check the network, or pass offline=True to", "check the network, or pass --offline to"),
        ("the text and max_tokens take 9.", "the text and --max-tokens take 9."),
        ("this model has no cfg_weight and no min_p: ignored",
         "this model has no --cfg-weight and no --min-p: ignored"),
        ("the voice is one of the language's, seed and speed: no",) * 2,
        ("unknown voice 'max_tokens'; x/top_k.wav, top_k/x and my-top_k.wav are not there",) * 2,
    ],
)  # fmt: skip
def test_a_message_names_flags(message: str, told: str) -> None:
    assert in_flags(message) == told


PYTHON = re.compile(r"\w=|\w\(|tts\.|\b(?!no_)[a-z]+_[a-z]+")


@pytest.mark.parametrize(
    ("options", "phrase"),
    [
        (["--kv-budget", "0.5", "--draft", "ngram"], "leave out --kv-budget, or the draft"),
        (["--device", "gpu"], "use --device cpu"),
        (["--model", "no-one/nothing"], "or pass --offline to use an earlier download"),
        (["--language", "auto"], "--language auto needs py3langid"),
        (["--voice", "turbo.safetensors"], "bake its recording again with this model"),
        (["--cfg-weight", "-1"], "--cfg-weight must be 0 or more"),
        (["--max-tokens", "5000"], "--max-tokens is 5000; this model has positions for"),
        (["--draft", "nothing"], "draft"),
    ],
)
def test_errors_speak_of_flags_and_not_of_python(
    checkpoint: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    phrase: str,
) -> None:
    def offline(repository: str, *rest: Any) -> None:
        raise hub._no_network(repository)

    turbo = replace(nightingale.Voice.load(checkpoint / "conds.pt"), prompt="turbo")
    turbo.save(tmp_path / "turbo.safetensors")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("nightingale.loading._core.gpu_available", lambda: False)
    monkeypatch.setattr(hub, "download", offline)
    monkeypatch.setitem(sys.modules, "py3langid.langid", None)
    monkeypatch.setattr(detection, "_all_languages", detection._load)
    given = options if "--model" in options else [*options, "--model", str(checkpoint)]
    assert cli.main(["tokens", "Bonjour.", *given]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert phrase in line
    assert not PYTHON.search(line.replace(str(checkpoint), "")), line


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
