"""`say` and `stream`: what they read, where the sound goes and what they tell of it."""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
import re
import struct
import sys
import termios
from pathlib import Path

import numpy as np
import pytest
import soundfile

import nightingale
from nightingale import cli
from nightingale.audio_writer import FORMATS
from nightingale.cli.options import factor_text

from .command import PATIENCE, names_in, run, start

pytestmark = pytest.mark.slow

TEXT = "Hello there."
SETTINGS = {"max_tokens": 30, "steps": 2}


@pytest.fixture(scope="module")
def model(checkpoint: Path, device: str) -> list[str]:
    options = ["--model", str(checkpoint), "--device", device]
    for name, value in SETTINGS.items():
        options += [f"--{name.replace('_', '-')}", str(value)]
    return options


@pytest.fixture(scope="module")
def expected(tts: nightingale.TTS) -> nightingale.Audio:
    return tts.generate(TEXT, **SETTINGS)


def sha256(samples: np.ndarray) -> str:
    return hashlib.sha256(samples.astype("<f4").tobytes()).hexdigest()


def decoded(path: Path) -> tuple[np.ndarray, int]:
    if path.suffix != ".m4a":
        return soundfile.read(path, dtype="float32")
    av = pytest.importorskip("av", reason="pip install 'nightingale-tts[server]'")
    with av.open(path) as file:
        (stream,) = file.streams.audio
        samples = np.concatenate([frame.to_ndarray()[0] for frame in file.decode(stream)])
        return samples[: round(stream.duration * stream.time_base * stream.rate)], stream.rate


@pytest.mark.parametrize("command", ["say", "stream"])
@pytest.mark.parametrize("kind", FORMATS)
def test_each_format_holds_all_of_the_speech(
    command: str,
    kind: str,
    model: list[str],
    expected: nightingale.Audio,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / f"hello.{kind}"
    assert cli.main([command, TEXT, "-o", str(path), *model]) == 0
    assert capsys.readouterr().out == ""
    assert names_in(tmp_path) == [path.name]
    samples, rate = decoded(path)
    assert (samples.shape, rate) == (expected.samples.shape, 24000)
    if command == "say" and kind in ("wav", "flac"):
        np.testing.assert_allclose(samples, expected.samples, rtol=0, atol=1 / 32767)
    else:  # the synthetic model's speech is noise, which codecs replace by other noise
        least = 0.7 if kind in ("opus", "m4a") else 0.8
        assert np.corrcoef(samples, expected.samples)[0, 1] > least
        late = np.corrcoef(samples[5:], expected.samples[:-5])[0, 1]
        assert late < 0.5


@pytest.mark.parametrize(
    ("factor", "told"),
    [
        (0.5, "real-time factor 0.50 (faster than real time)"),
        (0.9949, "real-time factor 0.99 (faster than real time)"),
        (1.0, "real-time factor 1.00 (slower than real time)"),
        (2.219, "real-time factor 2.22 (slower than real time)"),
    ],
)
def test_a_real_time_factor_says_which_side_it_is_on(factor: float, told: str) -> None:
    assert factor_text(factor) == told


def test_say_is_quiet_where_no_one_watches(model: list[str], tmp_path: Path) -> None:
    done = run("say", TEXT, "-o", tmp_path / "hello.wav", *model)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("source", ["argument", "dash", "pipe", "file"])
def test_the_text_comes_from_where_it_is_said_to(
    source: str,
    model: list[str],
    expected: nightingale.Audio,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "text.txt").write_bytes(b"\xef\xbb\xbf" + TEXT.encode() + b"\n")
    arguments = {"argument": [TEXT], "dash": ["-"], "pipe": []}
    arguments["file"] = ["-f", str(tmp_path / "text.txt")]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode() + b"\n")))
    output = ["-o", str(tmp_path / "hello.wav"), "--json"]
    assert cli.main(["say", *arguments[source], *output, *model]) == 0
    assert json.loads(capsys.readouterr().out)["sha256"] == sha256(expected.samples)


def test_say_tells_all_of_the_speech_as_json(
    model: list[str], expected: nightingale.Audio, tmp_path: Path
) -> None:
    path = tmp_path / "hello.wav"
    done = run("say", "-o", path, "--json", *model, input=TEXT)
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert told["file"] == str(path)
    assert told["seconds"] == expected.duration
    assert (told["samples"], told["sample_rate"]) == (len(expected.samples), 24000)
    assert told["tokens"] == expected.tokens.tolist()
    assert told["words"] == [list(word) for word in expected.words]
    assert told["sha256"] == sha256(expected.samples)
    assert set(told["timings"]) == {"text", "t3", "flow", "vocoder", "total", "ttfa", "rtf"}


def test_say_makes_each_sentence_whole(
    model: list[str], tts: nightingale.TTS, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f"{TEXT}\n\n{TEXT}"
    assert cli.main(["say", text, "-o", str(tmp_path / "a.wav"), "--json", *model]) == 0
    audio = tts.generate(text, **SETTINGS)
    assert json.loads(capsys.readouterr().out)["sha256"] == sha256(audio.samples)


def test_raw_sound_is_16_bit_or_float(
    model: list[str], expected: nightingale.Audio, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    for options, kind in (([], "<i2"), (["--raw-format", "f32le"], "<f4")):
        assert cli.main(["say", TEXT, "-o", "-", *model, *options]) == 0
        output, errors = capfdbinary.readouterr()
        assert errors == b""
        samples = np.frombuffer(output, kind)
        assert len(samples) == len(expected.samples)
        if kind == "<f4":
            np.testing.assert_array_equal(samples, expected.samples)
        else:
            np.testing.assert_allclose(samples / 32767, expected.samples, rtol=0, atol=0.51 / 32767)


def test_the_words_are_printed_with_their_times(
    model: list[str],
    expected: nightingale.Audio,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert expected.words
    assert cli.main(["say", TEXT, "-o", str(tmp_path / "a.wav"), "--words", *model]) == 0
    lines = [f"{w.start:.2f}\t{w.end:.2f}\t{w.text}" for w in expected.words]
    assert capsys.readouterr().out.splitlines() == lines


def test_every_setting_reaches_the_model(
    model: list[str], tts: nightingale.TTS, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = {
        **{"language": "fr", "seed": 3, "temperature": 1.2, "cfg_weight": 0.7},
        **{"exaggeration": 0.9, "repetition_penalty": 1.3, "min_p": 0.02, "top_p": 0.9},
        **{"steps": 1, "speed": 1.25, "max_tokens": 20, "top_k": 500},
    }
    options = [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]
    command = ["say", "Bonjour.", "-o", str(tmp_path / "a.wav"), "--json", *model, *options]
    assert cli.main(command) == 0
    audio = tts.generate("Bonjour.", **settings)
    assert json.loads(capsys.readouterr().out)["sha256"] == sha256(audio.samples)


def test_stream_tells_of_every_chunk(
    model: list[str], tts: nightingale.TTS, expected: nightingale.Audio
) -> None:
    chunking = {"first_chunk": 8, "chunk": 12, "overlap": 2, "context": 20}
    options = [f"--{name.replace('_', '-')}={value}" for name, value in chunking.items()]
    with start("stream", TEXT, "-o", "-", "--json", *options, *model, text=False) as speaker:
        output, errors = speaker.communicate(timeout=PATIENCE)
    assert speaker.returncode == 0
    told = [json.loads(line) for line in errors.splitlines()]
    chunks = list(tts.stream(TEXT, **chunking, **SETTINGS))
    assert len(chunks) > 1
    assert [chunk["index"] for chunk in told] == list(range(len(chunks)))
    assert [chunk["samples"] for chunk in told] == [len(chunk.samples) for chunk in chunks]
    assert [chunk["tokens"] for chunk in told] == [chunk.tokens.tolist() for chunk in chunks]
    tokens = [token for chunk in told for token in chunk["tokens"]]
    assert tokens == expected.tokens.tolist()
    assert told[0]["start"] == 0
    assert told[1]["start"] == pytest.approx(told[0]["samples"] / 24000)
    assert told[0]["timings"]["ttfa"] == told[-1]["timings"]["ttfa"] > 0
    sound = np.concatenate([chunk.samples for chunk in chunks])
    np.testing.assert_allclose(
        np.frombuffer(output, "<i2") / 32767, sound, rtol=0, atol=0.51 / 32767
    )


def test_stream_gives_time_to_first_audio_and_real_time_factor(
    model: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["stream", TEXT, "-o", str(tmp_path / "a.ogg"), *model]) == 0
    output, errors = capsys.readouterr()
    assert output == ""
    found = re.fullmatch(
        r"first audio after (\S+) s; (\S+) s of speech in (\S+) s, real-time factor (\S+) "
        r"\((faster|slower) than real time\)\n",
        errors,
    )
    first, speech, total, factor = map(float, found.groups()[:4])
    assert found[5] == ("faster" if factor < 1 else "slower")
    assert 0 < first <= total
    assert factor == pytest.approx(total / speech, abs=0.05)


def test_progress_is_shown_on_a_terminal(model: list[str], tmp_path: Path) -> None:
    controller, terminal = os.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("4H", 24, 200, 0, 0))
    with start("say", TEXT, "-o", tmp_path / "a.wav", *model, stderr=terminal) as speaker:
        assert speaker.communicate(timeout=PATIENCE)[0] == ""
    os.close(terminal)
    shown = os.read(controller, 100_000).decode()
    os.close(controller)
    assert speaker.returncode == 0
    assert "loading: 0.0 s of speech" in shown
    assert "speaking: 0.0 s of speech" in shown
    last = shown.splitlines()[-1].split("\r")[-1]
    assert re.match(rf"{tmp_path}/a.wav: \S+ s of speech in \S+ s, real-time factor \S+", last)


@pytest.mark.parametrize(
    ("args", "phrase"),
    [
        ([TEXT, "-o", "a.aiff"], "'a.aiff' must end in one of .wav, .flac, .ogg, .mp3"),
        ([TEXT, "-o", "a"], "'a' must end in one of .wav"),
        (["-f", "none.txt", "-o", "a.wav"], "none.txt: No such file or directory"),
        (["-f", "latin.txt", "-o", "a.wav"], "latin.txt is not text in UTF-8: see its byte 4"),
        (["", "-o", "a.wav"], "there is no text to speak"),
        (
            [TEXT, "-o", "a.wav", "--speed", "9"],
            "--speed must be between 0.25 and 4.0, not 9.0",
        ),
        (
            [TEXT, "-o", "a.wav", "--steps", "0"],
            "--steps must be between 1 and 1000, not 0",
        ),
        ([TEXT, "-o", "a.wav", "--voice", "no"], "unknown voice 'no': the model has default, "),
    ],
)
def test_what_cannot_be_said_leaves_no_file(
    args: list[str],
    phrase: str,
    model: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "latin.txt").write_bytes("caf\xe9".encode("latin-1"))
    monkeypatch.chdir(tmp_path)
    assert cli.main(["say", *model, *args]) == 1
    output, errors = capsys.readouterr()
    assert output == ""
    assert errors.startswith(f"nightingale: {phrase}")
    assert len(errors.splitlines()) == 1
    assert names_in(tmp_path) == ["latin.txt"]


def test_no_text_on_a_terminal_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    assert cli.main(["say", "-o", "a.wav"]) == 1
    assert "there is no text: give it as an argument, with -f FILE" in capsys.readouterr().err


def test_sound_is_not_sent_to_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert cli.main(["say", TEXT, "-o", "-"]) == 1
    assert "standard output is a terminal; send the sound to" in capsys.readouterr().err


def test_a_model_whose_files_name_no_heads_tells_words_too(
    checkpoints: Path, device: str, tmp_path: Path
) -> None:
    options = [
        "--model",
        checkpoints / "english",
        "--device",
        device,
        "--max-tokens",
        "5",
        "--steps",
        "1",
    ]
    done = run("say", TEXT, "-o", tmp_path / "a.wav", "--words", *options)
    assert done.returncode == 0
    spoken = [line.split("\t")[2] for line in done.stdout.splitlines()]
    assert spoken == TEXT.rstrip(".").split()
