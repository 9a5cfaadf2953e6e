"""Sound to files, chunk by chunk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from nightingale.audio_writer import FORMATS, audio_writer

from .command import names_in


@pytest.mark.parametrize("kind", FORMATS)
def test_chunks_of_any_size_make_one_file(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{kind.upper()}"
    sizes = (1, 0, 999, 24000, 50001)
    with audio_writer(path, 24000) as write:
        for size in sizes:
            write(np.zeros(size, np.float32))
        assert not path.exists()
    assert names_in(tmp_path) == [path.name]
    assert soundfile.info(path).frames == sum(sizes)


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
