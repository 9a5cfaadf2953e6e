"""Writes audio to a file while it is generated."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ._core import Error
from .atomic_files import atomic_path

FORMATS = ("wav", "flac", "ogg", "mp3")
BLOCK = 24000  # samples; libsndfile's Vorbis encoder overflows the stack with minutes at once


def audio_format(path: str | Path) -> str:
    """The format that a file's name asks for."""
    kind = Path(path).suffix.lstrip(".").lower()
    if kind not in FORMATS:
        raise ValueError(f"{Path(path).name!r} must end in one of .{', .'.join(FORMATS)}")
    return kind


@contextmanager
def audio_writer(path: str | Path, sample_rate: int) -> Iterator[Callable[[np.ndarray], None]]:
    """Gives what takes mono samples in [-1, 1]. The file appears when the block ends, whole, or not
    at all where it raises."""
    import soundfile

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
            with soundfile.SoundFile(
                descriptor, "w", sample_rate, 1, format=kind.upper(), closefd=False
            ) as file:

                def write(samples: np.ndarray) -> None:
                    for begin in range(0, len(samples), BLOCK):
                        file.write(samples[begin : begin + BLOCK])

                yield write
        except soundfile.LibsndfileError as error:
            raise Error(f"cannot write {path}: {_reason(descriptor, error)}") from error
        finally:
            os.close(descriptor)


def _reason(descriptor: int, error: Exception) -> str:
    """libsndfile calls all failures of the system the same; writing again tells which it was."""
    try:
        os.write(descriptor, bytes(4096))
    except OSError as cause:
        return cause.strerror or str(cause)
    return str(error)
