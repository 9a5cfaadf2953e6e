"""Writes audio to a file while it is generated."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np

from ._core import Error
from .atomic_files import atomic_path

FORMATS = ("wav", "flac", "ogg", "mp3", "opus", "m4a")
BLOCK = 24000  # samples; libsndfile's Vorbis encoder overflows the stack with minutes at once
OPUS_RATES = (8000, 12000, 16000, 24000, 48000)
AAC_RATE = 64000  # bits per second, as the server has it

Write = Callable[[np.ndarray], None]


def audio_format(path: str | Path) -> str:
    """The format that a file's name asks for."""
    kind = Path(path).suffix.lstrip(".").lower()
    if kind not in FORMATS:
        raise ValueError(f"{Path(path).name!r} must end in one of .{', .'.join(FORMATS)}")
    return kind


@contextmanager
def audio_writer(path: str | Path, sample_rate: int) -> Iterator[Write]:
    """Gives what takes mono samples in [-1, 1]. The file appears when the block ends, whole, or not
    at all where it raises."""
    path, kind = Path(path), audio_format(path)
    if os.path.isdir(path):  # Path.is_dir raises for a name that is too long
        raise Error(f"cannot write {path}: it is a folder")
    if not os.path.isdir(path.parent):
        raise Error(f"cannot write {path}: there is no folder {path.parent}")
    with atomic_path(path) as partial:
        try:
            descriptor = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        except OSError as error:
            raise Error(f"cannot write {path}: {error.strerror}") from error
        try:
            with _encoder(descriptor, kind, sample_rate, str(path)) as write:
                yield write
        finally:
            os.close(descriptor)


def encoded(samples: np.ndarray, sample_rate: int, kind: str) -> bytes:
    """A file of these samples, one of FORMATS."""
    if kind not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, not {kind!r}")
    file = io.BytesIO()
    with _encoder(file, kind, sample_rate, f"the {kind} file") as write:
        write(samples)
    return file.getvalue()


@contextmanager
def _encoder(target: int | BinaryIO, kind: str, sample_rate: int, name: str) -> Iterator[Write]:
    """Writes to a descriptor or an open file, which stay open; errors call it by its name."""
    if kind == "m4a":
        with _aac_writer(target, sample_rate, name) as write:
            yield write
        return
    import soundfile

    if kind == "opus" and sample_rate not in OPUS_RATES:
        rates = ", ".join(map(str, OPUS_RATES))
        raise ValueError(f"Opus has {rates} samples a second, not {sample_rate}")
    container = {"opus": "OGG"}.get(kind, kind.upper())
    try:
        with soundfile.SoundFile(
            target,
            "w",
            sample_rate,
            1,
            subtype="OPUS" if kind == "opus" else None,
            format=container,
            closefd=False,
        ) as file:

            def write(samples: np.ndarray) -> None:
                for begin in range(0, len(samples), BLOCK):
                    file.write(samples[begin : begin + BLOCK])

            yield write
    except soundfile.LibsndfileError as error:
        cause = _reason(target, error) if isinstance(target, int) else str(error)
        raise Error(f"cannot write {name}: {cause}") from error


@contextmanager
def _aac_writer(target: int | BinaryIO, sample_rate: int, name: str) -> Iterator[Write]:
    """AAC in the container of MPEG-4, which libsndfile does not write."""
    try:
        import av
    except ModuleNotFoundError:
        raise Error(f"cannot write {name}: .m4a needs PyAV (pip install av)") from None
    with open(target, "wb", closefd=False) if isinstance(target, int) else _kept(target) as file:
        try:
            # Its own clock ticks once a sample, so that the length is exact.
            options = {"fflags": "+bitexact", "movie_timescale": str(sample_rate)}
            with av.open(file, "w", format="ipod", container_options=options) as m4a:
                stream = m4a.add_stream(
                    "aac", rate=sample_rate, options={"b": str(AAC_RATE)}, layout="mono"
                )
                assert isinstance(stream, av.AudioStream)
                position = 0

                def write(samples: np.ndarray) -> None:
                    nonlocal position
                    if not len(samples):  # a frame of nothing is an error
                        return
                    clipped = np.clip(samples, -1, 1).astype(np.float32)
                    frame = av.AudioFrame.from_ndarray(clipped[None], "fltp", "mono")
                    frame.sample_rate, frame.pts = sample_rate, position
                    position += len(samples)
                    m4a.mux(stream.encode(frame))

                yield write
                m4a.mux(stream.encode(None))
        except (av.FFmpegError, OSError) as error:
            raise Error(f"cannot write {name}: {error.strerror}") from error


@contextmanager
def _kept(file: BinaryIO) -> Iterator[BinaryIO]:
    yield file


def _reason(descriptor: int, error: Exception) -> str:
    """libsndfile calls all failures of the system the same; writing again tells which it was."""
    try:
        os.write(descriptor, bytes(4096))
    except OSError as cause:
        return cause.strerror or str(cause)
    return str(error)
