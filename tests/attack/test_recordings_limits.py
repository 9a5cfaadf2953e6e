"""Recordings that are made to take long or much memory to decode."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest
import soundfile

import nightingale
from nightingale import recording
from nightingale.recording import read_recording
from nightingale.recording_process import pack, unpack
from nightingale.server import recordings
from nightingale.server.recordings import RecordingReader

from ..command import PATIENCE
from ..recordings import assert_same, refusal, speech, wav_bytes
from ..serving import Running, serving, until
from .first_audio import assert_hardly_later

# Reads for ever, where a second of the processor's time is allowed.
ENDLESS = """
from nightingale import recording_process
def read(file):
    while True: pass
recording_process.read_recording = read
recording_process.MOST_SECONDS = 1
recording_process.main()
"""


def read_outside(file: io.BufferedIOBase) -> recording.Recording:
    async def read() -> recording.Recording:
        return await RecordingReader().read(file)

    return asyncio.run(read())


def test_more_samples_than_a_voice_needs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "MOST_SAMPLES", 48_000)
    accepted, many = speech(1.5, 16000, 2), speech(1.6, 16000, 2)
    read_recording(accepted, 16000)
    read_recording(io.BytesIO(wav_bytes(accepted, 16000)))
    told = "2 channels of 25600 samples in its first 60 s; together they may have 48000"
    assert told in refusal(ValueError, many, 16000)
    assert told in refusal(nightingale.Error, io.BytesIO(wav_bytes(many, 16000)))


def test_255_channels_of_a_minute_are_refused_before_they_are_decoded(tmp_path: Path) -> None:
    path = tmp_path / "many.wav"
    header = wav_bytes(np.zeros((10, 255), np.float32), 8000)
    size = 255 * 2 * 8000 * 60
    at = header.index(b"data") + 4
    with path.open("wb") as file:
        file.write(header[:at] + size.to_bytes(4, "little") + header[at + 4 :])
        file.truncate(at + 4 + size)  # a hole, which takes no space
    told = "255 channels of 480000 samples in its first 60 s; together they may have 50000000"
    assert told in refusal(nightingale.Error, path)


def test_a_recording_is_read_outside_as_inside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "speech.wav"
    path.write_bytes(wav_bytes(speech(3, 8000, 2), 8000))
    with path.open("rb") as file:
        inside = read_recording(file)
        warned = [message.replace(str(path), "the recording") for message in caplog.messages]
        caplog.clear()
        assert_same(read_outside(file), inside)
    assert warned
    assert caplog.messages == warned


@pytest.mark.parametrize("error", [ValueError("too short"), nightingale.Error("not audio")])
def test_an_error_outside_is_the_same_inside(error: Exception) -> None:
    with pytest.raises(type(error), match=str(error)) as caught:
        unpack(pack(error, []))
    assert type(caught.value) is type(error)


def test_what_is_no_recording_is_refused_outside(tmp_path: Path) -> None:
    path = tmp_path / "text.wav"
    path.write_bytes(b"hello")
    with path.open("rb") as file, pytest.raises(nightingale.Error, match="expected a WAV"):
        read_outside(file)


def test_decoding_without_end_is_ended() -> None:
    done = subprocess.run([sys.executable, "-c", ENDLESS], timeout=PATIENCE, check=False)
    assert done.returncode == -signal.SIGXCPU


def test_a_process_that_was_ended_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    command = tmp_path / "python"
    command.write_text("#!/bin/sh\nkill -XCPU $$\n")
    command.chmod(0o755)
    monkeypatch.setattr(recordings.sys, "executable", str(command))
    with command.open("rb") as file, pytest.raises(ValueError, match="more than 10 s to decode"):
        read_outside(file)


def test_a_process_whose_reader_was_killed_says_nothing(tmp_path: Path) -> None:
    file = tmp_path / "a.wav"
    file.write_bytes(wav_bytes(speech(2, 24000), 24000))
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "nightingale.recording_process"]
    with file.open("rb") as given:
        done = subprocess.run(
            command, stdin=given, stdout=writer, stderr=subprocess.PIPE, timeout=PATIENCE
        )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_process_ends_when_nobody_waits_for_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    command, told = tmp_path / "python", tmp_path / "pid"
    command.write_text(f"#!/bin/sh\necho $$ > {told}.part; mv {told}.part {told}; exec sleep 600\n")
    command.chmod(0o755)
    monkeypatch.setattr(recordings.sys, "executable", str(command))

    async def leave() -> None:
        with command.open("rb") as file:
            reading = asyncio.create_task(RecordingReader().read(file))
            await asyncio.to_thread(until, told.exists)
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    asyncio.run(leave())
    with pytest.raises(ProcessLookupError):
        os.kill(int(told.read_text()), 0)


@pytest.fixture(scope="module")
def server(quick_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(quick_checkpoint, tmp_path_factory.mktemp("voices")) as running:
        yield running


@pytest.mark.nightly
def test_recordings_that_take_long_to_decode_hold_nobody_up(server: Running) -> None:
    # Almost silent, so that it is refused after it was decoded.
    quiet = np.tile(speech(1, 384_000) * 1e-3, (50, 1))
    file = io.BytesIO()
    soundfile.write(file, quiet, 384_000, format="FLAC", subtype="PCM_24")
    sample = file.getvalue()
    refused = []

    def upload() -> None:
        answer = httpx.post(
            f"{server.url}/v1/audio/voices",
            data={"name": "Eve"},
            files={"audio_sample": ("a.flac", sample)},
            timeout=PATIENCE,
            verify=False,
        )
        refused.append(answer.status_code)

    assert_hardly_later(server, upload, clients=3)
    assert set(refused) == {400}
