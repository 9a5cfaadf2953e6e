"""Files of recordings: long, cut short, damaged, or no recordings at all."""

from __future__ import annotations

import io
import json
import os
import struct
import subprocess
import sys
import tracemalloc
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import soundfile

import nightingale
from nightingale import recording
from nightingale.recording import read_recording

from .command import PATIENCE
from .recordings import assert_same, refusal, speech, wav_bytes

EXPECTED = "expected a WAV, FLAC, OGG or MP3 file"


@pytest.mark.parametrize("kind", ["wav", "flac", "ogg", "mp3"])
def test_a_path_a_name_and_a_file_object_are_heard_alike(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"me.{kind}"
    samples = speech(6, 22050, 2)
    soundfile.write(path, samples, 22050)
    found = read_recording(path)
    assert found.duration == pytest.approx(6, abs=0.1)
    loss = np.abs(found.at_24k - read_recording(samples, 22050).at_24k[: len(found.at_24k)])
    assert loss.max() < (1e-4 if kind in ("wav", "flac") else 0.03)
    assert_same(read_recording(str(path)), found)
    with path.open("rb") as file:
        assert_same(read_recording(file), found)
        assert not file.closed
    buffer = io.BytesIO(path.read_bytes())
    buffer.seek(99)
    assert_same(read_recording(buffer), found)


@pytest.mark.parametrize("name", ["me", "me.raw", "me.mp3", "mé 声.dat"])
def test_the_content_says_what_it_is_not_the_name(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(wav_bytes(speech(5, 16000), 16000))
    assert read_recording(tmp_path / name).duration == 5


class CountingFile(io.FileIO):
    """A file that counts the bytes read from it."""

    count = 0

    def read(self, size: int = -1) -> bytes:
        found = super().read(size)
        self.count += len(found)
        return found


def test_of_an_hour_only_the_first_minute_is_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "hour.wav"
    minute = wav_bytes(speech(60, 16000), 16000)
    size = 3600 * 16000 * 2
    path.write_bytes(minute[:4] + struct.pack("<I", size + 36) + minute[8:40])
    with path.open("ab") as file:
        file.write(struct.pack("<I", size) + minute[44:])
        file.truncate(44 + size)
    assert soundfile.info(path).duration == 3600
    with CountingFile(path) as file:
        tracemalloc.start()
        found = read_recording(file)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert 60 * 16000 * 2 <= file.count < 60 * 16000 * 2 + 100_000
    assert peak < 30e6
    assert caplog.messages == [f"{path} is longer than 60 s; what follows is not used"]
    assert found.duration == 60
    assert_same(found, read_recording(io.BytesIO(minute)))


def test_blocks_join_without_a_seam(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.BytesIO(wav_bytes(speech(6, 44100, 2), 44100))
    expected = read_recording(file)
    monkeypatch.setattr(recording, "BLOCK_SAMPLES", 10_001)
    assert_same(read_recording(file), expected)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"R",
        b"hello\n" * 1000,
        b'{"format": "wav"}',
        b"\x89PNG\r\n\x1a\n" + bytes(5000),
        b"PK\x03\x04" + bytes(range(256)) * 20,
        b"\0\0\0\x20ftypM4A " + bytes(range(256)) * 20,
        bytes(20_000),
        b"\xff" * 20_000,
        np.random.default_rng(1).bytes(20_000),
    ],
    ids=["empty", "byte", "text", "json", "png", "zip", "m4a", "zeros", "ones", "random"],
)
def test_what_is_not_audio_is_named_with_what_is_accepted(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "me.wav"
    path.write_bytes(content)
    message = refusal(nightingale.Error, path)
    assert message.startswith(f"{path} is damaged or not audio (libsndfile: ")
    assert message.endswith(f"); {EXPECTED}")
    assert refusal(nightingale.Error, io.BytesIO(content)).startswith("the recording is damaged")


def test_what_is_not_a_file_is_refused(tmp_path: Path) -> None:
    assert refusal(nightingale.Error, tmp_path) == f"{tmp_path} is a folder; {EXPECTED}"
    missing = tmp_path / "missing.wav"
    assert refusal(nightingale.Error, missing) == f"there is no file {missing}"
    assert refusal(nightingale.Error, str(missing)) == f"there is no file {missing}"
    pipe = tmp_path / "pipe.wav"
    os.mkfifo(pipe)
    assert refusal(nightingale.Error, pipe) == f"{pipe} is not a regular file; {EXPECTED}"
    inside = tmp_path / "me.wav" / "me.wav"
    (tmp_path / "me.wav").touch()
    assert refusal(nightingale.Error, inside) == f"cannot read {inside}: Not a directory"
    assert refusal(nightingale.Error, "me\0.wav").startswith(r"cannot read 'me\x00.wav': ")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_one_may_not_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "me.wav"
    path.touch(mode=0)
    assert refusal(nightingale.Error, path) == f"cannot read {path}: Permission denied"


def test_a_wav_cut_short_is_read_as_far_as_it_goes(caplog: pytest.LogCaptureFixture) -> None:
    samples = speech(10, 16000)
    whole = wav_bytes(samples, 16000)
    found = read_recording(io.BytesIO(whole[: 44 + 2 * 96000]))
    assert_same(found, read_recording(io.BytesIO(wav_bytes(samples[:96000], 16000))))
    assert found.duration == 6
    assert caplog.messages == []
    assert "is 0.50 s long" in refusal(ValueError, io.BytesIO(whole[: 44 + 2 * 8000]))


def test_a_flac_cut_short_is_damaged() -> None:
    buffer = io.BytesIO()
    soundfile.write(buffer, speech(10, 16000), 16000, format="FLAC")
    message = refusal(
        nightingale.Error, io.BytesIO(buffer.getvalue()[: len(buffer.getvalue()) // 2])
    )
    assert message.startswith("the recording is damaged or not audio (libsndfile: ")


def with_field(wav: bytes, offset: int, layout: str, value: int) -> io.BytesIO:
    size = struct.calcsize(layout)
    return io.BytesIO(wav[:offset] + struct.pack(layout, value) + wav[offset + size :])


def test_a_header_that_lies_about_its_length_is_not_believed() -> None:
    wav = wav_bytes(speech(5, 16000), 16000)
    expected = read_recording(io.BytesIO(wav))
    for size in (0xFFFFFFFF, 0xFFFFFFFE, 0x7FFFFFFF):
        assert_same(read_recording(with_field(wav, 40, "<I", size)), expected)
    assert refusal(ValueError, with_field(wav, 40, "<I", 20_000)).startswith(
        "the recording is 0.62"
    )


def test_a_header_without_channels_is_refused() -> None:
    wav = wav_bytes(speech(5, 16000), 16000)
    for channels in (0, 65535):
        refusal(nightingale.Error, with_field(wav, 22, "<H", channels))


@pytest.mark.parametrize("rate", [1, 3999, 384_001, 2**31 - 1])
def test_a_rate_no_recording_has_is_refused(rate: int) -> None:
    wav = wav_bytes(speech(5, 16000), 16000)
    expected = f"the recording says it has {rate} samples a second; expected 4000 to 384000"
    assert refusal(nightingale.Error, with_field(wav, 24, "<I", rate)) == expected
    expected = f"sample_rate must be between 4000 and 384000, not {rate}"
    assert refusal(ValueError, speech(5, 16000), rate) == expected


def test_a_pipe_is_to_be_read_into_memory_first() -> None:
    reading, writing = os.pipe()
    os.close(writing)
    with open(reading, "rb") as pipe:
        message = refusal(ValueError, pipe)
    assert message == "the file object cannot seek; read it into io.BytesIO first"


class FailingFile(io.BytesIO):
    """A disk that goes away after the header."""

    def read(self, size: int | None = -1) -> bytes:
        if self.tell() > 40_000:
            raise OSError(5, "Input/output error")
        return super().read(size)


def test_a_file_that_fails_while_it_is_read_is_an_error(capfd: pytest.CaptureFixture[str]) -> None:
    message = refusal(nightingale.Error, FailingFile(wav_bytes(speech(9, 16000), 16000)))
    assert message == "cannot read the recording: [Errno 5] Input/output error"
    assert capfd.readouterr().err == ""


def mutated(content: bytes, draws: np.random.Generator) -> bytes:
    """Some bytes changed, put in or cut off, most of them in the header."""
    mutant = bytearray(content)
    for _ in range(draws.integers(1, 6)):
        reach = len(mutant) if draws.uniform() < 0.4 else min(len(mutant), 120)
        place = int(draws.integers(reach))
        match draws.integers(4):
            case 0:
                mutant[place] = int(draws.integers(256))
            case 1:
                mutant[place] ^= 1 << int(draws.integers(8))
            case 2:
                mutant[place:place] = draws.bytes(int(draws.integers(1, 40)))
            case 3:
                del mutant[max(1, int(len(mutant) * draws.uniform(0.2, 1.2))) :]
    return bytes(mutant)


def outcomes_of_mutants(folder: Path, count: int) -> dict[str, int]:
    """How often reading a mutant gave a recording, a ValueError or an Error."""
    files = []
    for kind, subtype in (
        ("WAV", "PCM_16"),
        ("WAV", "FLOAT"),
        ("FLAC", "PCM_16"),
        ("OGG", "VORBIS"),
        ("MP3", "MPEG_LAYER_III"),
    ):
        buffer = io.BytesIO()
        soundfile.write(buffer, speech(1.5, 8000), 8000, format=kind, subtype=subtype)
        files.append(buffer.getvalue())
    outcomes: Counter[str] = Counter()
    for seed in range(count):
        mutant = mutated(files[seed % len(files)], np.random.default_rng(seed))
        path = folder / "mutant"
        path.write_bytes(mutant)
        for source in (path, io.BytesIO(mutant)):
            try:
                found = read_recording(source)
            except (nightingale.Error, ValueError) as error:
                outcomes[type(error).__name__] += 1
            else:
                assert np.isfinite(found.at_16k).all()
                assert found.duration >= 1
                outcomes["Recording"] += 1
    return outcomes


def test_mutated_files_never_crash_the_process(tmp_path: Path) -> None:
    program = (
        "import sys, json, pathlib; from tests.test_recording_files import outcomes_of_mutants; "
        "print(json.dumps(outcomes_of_mutants(pathlib.Path(sys.argv[1]), 300)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path],
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    outcomes = json.loads(done.stdout)
    assert sum(outcomes.values()) == 600
    assert min(outcomes.get(kind, 0) for kind in ("Recording", "ValueError", "Error")) >= 40
    assert "Traceback" not in done.stderr
