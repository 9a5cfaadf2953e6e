"""Opens recordings: audio files by path, open files and arrays of samples."""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ._core import Error
from .option import whole

LEAST_RATE, MOST_RATE = 4_000, 384_000
MOST_CHANNELS = 1024
FORMATS = "WAV, FLAC, OGG or MP3"
ENDINGS = (".wav", ".flac", ".ogg", ".mp3", ".opus")  # of names of recordings

Source = str | Path | BinaryIO | np.ndarray


@dataclass(frozen=True, eq=False)
class OpenSound:
    """A recording that is open at its start."""

    name: str
    rate: int
    channels: int
    frames: int  # as far as the file knows
    read: Callable[[int], np.ndarray]  # the next frames, so many at most: [n, channels] float32


@contextmanager
def open_sound(source: Source, sample_rate: int | None = None) -> Iterator[OpenSound]:
    """Opens a WAV, FLAC, OGG or MP3 file, or an array of samples.

    source: a path, a binary file object (read from its start) or an array [n] or [n, channels] of
    floats, int16 or int32, which needs its sample_rate. Error: it cannot be read, then or while the
    block reads it; ValueError: it is no such thing.
    """
    if isinstance(source, np.ndarray):
        yield _open_array(source, sample_rate)
        return
    if sample_rate is not None:
        raise ValueError("sample_rate goes with an array of samples; a file has its own")
    with ExitStack() as stack:
        if isinstance(source, (str, os.PathLike)):
            name, file = str(source), stack.enter_context(_open_path(Path(source)))
        else:
            name, file = _name_of(source), source
        yield stack.enter_context(_open_file(name, file))


def is_recording(path: str | Path) -> bool:
    """Whether a file is there whose name says that it is a recording."""
    return os.path.isfile(path) and Path(path).suffix.lower() in ENDINGS


def _open_array(samples: np.ndarray, rate: int | None) -> OpenSound:
    if rate is None:
        raise ValueError("an array of samples needs its sample_rate")
    rate = whole("sample_rate", rate, LEAST_RATE, MOST_RATE)
    if samples.dtype.kind != "f" and samples.dtype.name not in ("int16", "int32"):
        raise ValueError(f"samples must be floats, int16 or int32, not {samples.dtype}")
    channels = samples.shape[1] if samples.ndim == 2 else samples.ndim
    if samples.ndim not in (1, 2) or not 1 <= channels <= MOST_CHANNELS:
        raise ValueError(f"samples have shape {list(samples.shape)}; expected [n] or [n, channels]")
    position = 0

    def read(count: int) -> np.ndarray:
        nonlocal position
        part = samples[position : position + count].reshape(-1, channels)
        position += len(part)
        with np.errstate(over="ignore"):  # beyond float32's range they become inf
            block = part.astype(np.float32)
        if samples.dtype.kind == "i":
            block *= np.float32(2.0 ** (1 - 8 * samples.dtype.itemsize))
        return block

    return OpenSound("the recording", rate, channels, len(samples), read)


def _open_path(path: Path) -> BinaryIO:
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            kind = "a folder" if stat.S_ISDIR(mode) else "not a regular file"
            raise Error(f"{path} is {kind}; expected a {FORMATS} file")
        return path.open("rb")
    except FileNotFoundError:
        raise Error(f"there is no file {path}") from None
    except OSError as error:
        raise Error(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:  # a NUL in the name
        raise Error(f"cannot read {str(path)!r}: {error}") from error


def _name_of(file: Any) -> str:
    """What errors call an open file, once it is found to be one that can be read."""
    if not all(hasattr(file, method) for method in ("read", "seek", "tell")):
        raise ValueError(
            "a recording is a path, a file object or a numpy array of samples, "
            f"not {type(file).__name__}"
        )
    if hasattr(file, "seekable") and not file.seekable():
        raise ValueError("the file object cannot seek; read it into io.BytesIO first")
    if not isinstance(file.read(0), bytes):
        raise ValueError("the file object is open in text mode; open it in binary mode")
    name = getattr(file, "name", None)
    return str(name) if isinstance(name, (str, os.PathLike)) else "the recording"


@contextmanager
def _open_file(name: str, file: BinaryIO) -> Iterator[OpenSound]:
    import soundfile

    reader = _Reader(file)
    try:
        with soundfile.SoundFile(reader) as audio:
            rate = audio.samplerate
            if not LEAST_RATE <= rate <= MOST_RATE:
                raise Error(
                    f"{name} says it has {rate} samples a second; "
                    f"expected {LEAST_RATE} to {MOST_RATE}"
                )

            def read(count: int) -> np.ndarray:
                block: np.ndarray = audio.read(count, dtype="float32", always_2d=True)
                return block

            yield OpenSound(name, rate, audio.channels, audio.frames, read)
    except soundfile.LibsndfileError as error:
        if reader.failure is None:
            cause = error.error_string.strip().rstrip(".")
            raise Error(
                f"{name} is damaged or not audio (libsndfile: {cause}); expected a {FORMATS} file"
            ) from error
    if reader.failure is not None:
        raise Error(f"cannot read {name}: {reader.failure}") from reader.failure


class _Reader:
    """A file as libsndfile asks for it: an exception cannot pass through its callbacks, so the
    first failure is kept and the file ends there."""

    def __init__(self, file: BinaryIO) -> None:
        self.failure: Exception | None = None
        self._file = file
        file.seek(0, os.SEEK_END)
        self._size = file.tell()
        self._position = 0

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        self._position = min(max(start + offset, 0), self._size)
        return self._position

    def tell(self) -> int:
        return self._position

    def read(self, count: int) -> bytes:
        if self.failure is not None:
            return b""
        try:
            self._file.seek(self._position)
            found = self._file.read(count)
        except Exception as error:
            self.failure = error
            return b""
        self._position += len(found)
        return found
