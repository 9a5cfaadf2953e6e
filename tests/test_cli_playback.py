"""Playing: through sounddevice, or into speech.wav where that is not possible."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import soundfile

import nightingale
from nightingale import cli
from nightingale.cli.outputs import open_output

from .command import PATIENCE, names_in

TEXT = "Hello there."
SETTINGS = {"max_tokens": 20, "steps": 1}


class Device:
    """An OutputStream that keeps what it is given."""

    def __init__(self, **settings: Any) -> None:
        self.settings = settings
        self.blocks: list[np.ndarray] = []
        self.stopped = True
        self.closed = False
        self.block_seconds = 0.0
        self.ready = threading.Event()
        self.ready.set()
        self.fails = False

    def start(self) -> None:
        self.stopped = False

    def write(self, block: np.ndarray) -> None:
        assert not self.stopped
        assert (block.ndim, block.dtype) == (2, np.float32)
        assert self.ready.wait(PATIENCE)
        time.sleep(self.block_seconds)
        if self.fails:
            raise PortAudioError("the device is gone")
        self.blocks.append(block[:, 0])

    def stop(self) -> None:
        self.stopped = True

    def close(self) -> None:
        self.closed = True

    @property
    def samples(self) -> np.ndarray:
        return np.concatenate(self.blocks)


class PortAudioError(Exception):
    pass


@pytest.fixture
def speakers(monkeypatch: pytest.MonkeyPatch) -> Device:
    opened = Device()

    def open_stream(**settings: Any) -> Device:
        opened.settings = settings
        return opened

    module = ModuleType("sounddevice")
    module.OutputStream = open_stream
    module.PortAudioError = PortAudioError
    monkeypatch.setitem(sys.modules, "sounddevice", module)
    return opened


@pytest.fixture
def command(
    checkpoint: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> list[str]:
    monkeypatch.chdir(tmp_path)
    where = request.config.getoption("--device")
    return [TEXT, "--model", str(checkpoint), "--device", where, "--max-tokens=20", "--steps=1"]


@pytest.mark.parametrize("name", ["say", "stream"])
def test_everything_is_played(
    name: str, command: list[str], speakers: Device, tts: nightingale.TTS, tmp_path: Path
) -> None:
    assert cli.main([name, *command]) == 0
    assert speakers.settings == {"samplerate": 24000, "channels": 1, "dtype": "float32"}
    expected = tts.generate(TEXT, **SETTINGS)
    if name == "say":
        np.testing.assert_array_equal(speakers.samples, expected.samples)
    assert len(speakers.samples) == len(expected.samples)
    assert speakers.closed
    assert names_in(tmp_path) == []


def test_what_comes_next_is_made_while_the_device_plays(speakers: Device) -> None:
    speakers.ready.clear()
    with open_output(None, "s16le") as output:
        assert output.file is None
        for value in range(5):
            output.write(np.full(9600, value, np.float32))
        assert speakers.blocks == []
        speakers.ready.set()
    np.testing.assert_array_equal(speakers.samples, np.repeat(np.arange(5), 9600))


def test_stopping_does_not_wait_for_the_end(speakers: Device) -> None:
    def interrupt() -> None:
        with open_output(None, "s16le") as output:
            output.write(np.zeros(24000 * 60, np.float32))  # 600 blocks
            raise KeyboardInterrupt

    speakers.block_seconds = 0.05
    with pytest.raises(KeyboardInterrupt):
        interrupt()
    assert len(speakers.blocks) < 300
    assert speakers.closed
    assert "playback" not in {thread.name for thread in threading.enumerate()}


def test_a_device_that_fails_is_an_error(
    command: list[str], speakers: Device, capsys: pytest.CaptureFixture[str]
) -> None:
    speakers.fails = True
    assert cli.main(["say", *command]) == 1
    assert capsys.readouterr().err == "nightingale: playing failed: the device is gone\n"
    assert speakers.closed


def test_without_sounddevice_the_speech_is_in_speech_wav(
    command: list[str],
    tts: nightingale.TTS,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    told = "nightingale: cannot play: that needs sounddevice "
    told += "(pip install 'nightingale-tts[playback]'); writing speech.wav"
    assert cli.main(["say", *command]) == 0
    assert capsys.readouterr() == ("", f"{told}\n")
    assert soundfile.info("speech.wav").frames == len(tts.generate(TEXT, **SETTINGS).samples)
    assert names_in(tmp_path) == ["speech.wav"]

    assert cli.main(["say", *command]) == 0
    assert capsys.readouterr().err == f"{told}, in place of the one that was there\n"


def test_without_a_device_the_speech_is_in_speech_wav(
    command: list[str],
    speakers: Device,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def open_stream(**settings: Any) -> Device:
        raise PortAudioError("Error querying device -1")

    monkeypatch.setattr(sys.modules["sounddevice"], "OutputStream", open_stream)
    assert cli.main(["stream", *command]) == 0
    told = "nightingale: cannot play: Error querying device -1; writing speech.wav\n"
    assert capsys.readouterr().err.startswith(told)
    assert names_in(tmp_path) == ["speech.wav"]
