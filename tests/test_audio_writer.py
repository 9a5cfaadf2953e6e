"""Sound to files, chunk by chunk."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from nightingale import Audio, Error
from nightingale.audio_writer import FORMATS, audio_writer

from .command import names_in

TONE = (0.3 * np.sin(2 * np.pi * 440 / 24000 * np.arange(24000))).astype(np.float32)


def frames(data: bytes) -> int:
    """How many samples a file has; of AAC, as its container tells it."""
    if b"ftyp" not in data[:12]:
        return soundfile.info(io.BytesIO(data)).frames
    av = pytest.importorskip("av", reason="pip install 'nightingale-tts[server]'")
    with av.open(io.BytesIO(data)) as file:
        (stream,) = file.streams.audio
        assert (stream.codec_context.name, stream.rate) == ("aac", 24000)
        return round(stream.duration * stream.time_base * 24000)


@pytest.mark.parametrize("kind", FORMATS)
def test_an_open_file_gets_what_a_path_gets(kind: str, tmp_path: Path) -> None:
    audio = Audio(TONE, np.zeros(25, np.int32))
    audio.save(tmp_path / f"a.{kind}")
    memory = io.BytesIO()
    audio.save(memory, kind)
    with open(tmp_path / f"b.{kind}", "wb") as file:
        audio.save(file)
    assert frames(memory.getvalue()) == len(TONE)
    if kind not in ("ogg", "opus"):  # which number their streams at random
        same = (tmp_path / f"a.{kind}").read_bytes()
        assert memory.getvalue() == same == (tmp_path / f"b.{kind}").read_bytes()


def test_an_open_file_without_a_name_gets_wav() -> None:
    memory = io.BytesIO()
    Audio(TONE, np.zeros(0, np.int32)).save(memory)
    memory.seek(0)
    found, rate = soundfile.read(memory, dtype="float32")
    assert rate == 24000
    np.testing.assert_allclose(found, TONE, rtol=0, atol=1.01 / 32768)


def test_formats_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    audio = Audio(TONE, np.zeros(0, np.int32))
    with pytest.raises(ValueError, match=r"format must be one of wav, .*, not 'aiff'"):
        audio.save(io.BytesIO(), "aiff")
    with pytest.raises(ValueError, match="a path has its own"):
        audio.save(tmp_path / "a.wav", "mp3")
    with pytest.raises(ValueError, match=r"Opus has 8000, .* samples a second, not 22050"):
        Audio(TONE, np.zeros(0, np.int32), sample_rate=22050).save(tmp_path / "a.opus")
    assert names_in(tmp_path) == []


def test_m4a_says_what_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(Error, match=r"a\.m4a: \.m4a needs PyAV \(pip install av\)"):
        Audio(TONE, np.zeros(0, np.int32)).save(tmp_path / "a.m4a")
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("kind", FORMATS)
def test_chunks_of_any_size_make_one_file(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{kind.upper()}"
    sizes = (1, 0, 999, 24000, 50001)
    with audio_writer(path, 24000) as write:
        for size in sizes:
            write(np.zeros(size, np.float32))
        assert not path.exists()
    assert names_in(tmp_path) == [path.name]
    assert frames(path.read_bytes()) == sum(sizes)


def test_a_wav_file_holds_16_bit_samples(tmp_path: Path) -> None:
    samples = np.linspace(-1.5, 1.5, 1000, dtype=np.float32)
    with audio_writer(tmp_path / "a.wav", 24000) as write:
        write(samples)
    assert soundfile.info(tmp_path / "a.wav").subtype == "PCM_16"
    found, _ = soundfile.read(tmp_path / "a.wav", dtype="float32")
    np.testing.assert_allclose(found, np.clip(samples, -1, 1), rtol=0, atol=1.01 / 32768)


def test_minutes_of_ogg_at_once(tmp_path: Path) -> None:
    with audio_writer(tmp_path / "a.ogg", 24000) as write:
        write(np.zeros(24000 * 600, np.float32))
    assert soundfile.info(tmp_path / "a.ogg").frames == 24000 * 600


def test_an_error_leaves_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_text("mine")

    def fail() -> None:
        with audio_writer(tmp_path / "a.wav", 24000) as write:
            write(np.zeros(1000, np.float32))
            raise KeyError("x")

    with pytest.raises(KeyError):
        fail()
    assert names_in(tmp_path) == ["a.wav"]
    assert (tmp_path / "a.wav").read_text() == "mine"
