"""`nightingale convert`: where recordings come from, where the sound goes, and what is refused."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import numpy as np
import pytest
import soundfile

import nightingale
from nightingale import cli

from .command import names_in, run, start
from .recordings import speech

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def model(quick_checkpoint: Path, device: str) -> list[str]:
    return ["--model", str(quick_checkpoint), "--device", device]


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recording") / "speech.wav"
    soundfile.write(path, speech(1.2, 22050, 2), 22050)
    return path


@pytest.fixture
def no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is wrong must be found before a model is loaded."""

    def load(*args: object) -> None:
        raise AssertionError("a model was loaded")

    monkeypatch.setattr("nightingale.load", load)


def test_a_recording_becomes_a_file_in_another_voice(
    model: list[str], recording: Path, quick_tts: nightingale.TTS, tmp_path: Path
) -> None:
    quick_tts.bake_voice(speech(3, 24000), 24000).save(tmp_path / "me.safetensors")
    path = tmp_path / "out.wav"
    options = ["--voice", tmp_path / "me.safetensors", "--seed", "3", "--json"]
    done = run("convert", recording, "-o", path, *options, *model)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    told = json.loads(done.stdout)
    expected = quick_tts.convert(recording, voice=tmp_path / "me.safetensors", seed=3)
    assert told["file"] == str(path)
    assert told["tokens"] == expected.tokens.tolist()
    assert told["samples"] == len(expected.samples)
    assert told["timings"]["rtf"] > 0
    samples, rate = soundfile.read(path, dtype="float32")
    assert rate == told["sample_rate"] == 24000
    np.testing.assert_allclose(samples, expected.samples, atol=2**-15)


def test_standard_input_becomes_raw_sound_on_standard_output(
    model: list[str], recording: Path, quick_tts: nightingale.TTS
) -> None:
    with recording.open("rb") as file:
        process = start(
            "convert", "-", "-o", "-", "--raw-format", "f32le", *model, stdin=file, text=False
        )
        output, errors = process.communicate(timeout=300)
    assert (process.returncode, errors) == (0, b"")
    expected = quick_tts.convert(recording)
    np.testing.assert_array_equal(np.frombuffer(output, "<f4"), expected.samples)


def test_an_interrupted_conversion_leaves_nothing(model: list[str], tmp_path: Path) -> None:
    source = tmp_path / "long.wav"
    soundfile.write(source, speech(600, 16000), 16000)
    out = tmp_path / "out"
    out.mkdir()
    process = start("convert", source, "-o", out / "out.wav", *model)
    deadline = time.monotonic() + 120
    while not names_in(out) and time.monotonic() < deadline:  # it has begun to write
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert names_in(out) == []


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("none.wav", "there is no file none.wav"),
        ("text.wav", "text.wav is damaged or not audio"),
        (".", ". is a folder; expected a WAV, FLAC, OGG or MP3 file"),
    ],
)
@pytest.mark.usefixtures("no_model")
def test_what_is_no_recording_is_told_in_one_line(
    source: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.wav").write_text("This is no sound.")
    assert cli.main(["convert", source, "-o", "out.wav"]) == 1
    errors = capsys.readouterr().err
    assert errors.startswith(f"nightingale: {message}")
    assert errors.count("\n") == 1
    assert names_in(tmp_path) == ["text.wav"]


@pytest.mark.usefixtures("no_model")
def test_a_name_that_no_sound_can_have_is_told_first(recording: Path, capsys: Capture) -> None:
    assert cli.main(["convert", str(recording), "-o", "out.txt"]) == 1
    assert "'out.txt' must end in one of .wav" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("seconds", "gain", "options", "message"),
    [
        (0.1, 1, [], "is 0.100 s long; 0.2 s are the least"),
        (1, 1e-5, [], "is silent"),
        (1, 1, ["--voice", "nobody"], "unknown voice 'nobody'"),
        (1, 1, ["--speed", "5"], "speed must be between 0.25 and 4"),
    ],
)
def test_what_cannot_be_converted_leaves_no_file(
    seconds: float,
    gain: float,
    options: list[str],
    message: str,
    quick_tts: nightingale.TTS,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    monkeypatch.setattr("nightingale.load", lambda *_: quick_tts)
    monkeypatch.setattr("nightingale.voice_folder.default_voice_folder", lambda: tmp_path / "none")
    soundfile.write(tmp_path / "in.wav", gain * speech(seconds, 16000), 16000, subtype="FLOAT")
    path = str(tmp_path / "in.wav")
    assert cli.main(["convert", path, "-o", str(tmp_path / "out.wav"), *options]) == 1
    errors = capsys.readouterr().err
    assert message in errors
    assert errors.count("\n") == 1
    assert names_in(tmp_path) == ["in.wav"]


def test_options_of_speech_tokens_are_unknown(recording: Path, capsys: Capture) -> None:
    with pytest.raises(SystemExit):
        cli.main(["convert", str(recording), "--temperature", "0.5"])
    assert "unrecognized arguments: --temperature" in capsys.readouterr().err
