"""Where the command line's sound goes: a file, the speakers or standard output."""

from __future__ import annotations

import argparse
import queue
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .._core import Error
from ..audio import SAMPLE_RATE
from ..audio_writer import audio_format, audio_writer
from .options import remark

RAW_FORMATS = ("s16le", "f32le")
UNPLAYED = Path("speech.wav")
BLOCK = SAMPLE_RATE // 10  # samples after which playing can be stopped

Write = Callable[[np.ndarray], None]


@dataclass(frozen=True)
class Output:
    """A place for sound that comes chunk by chunk."""

    write: Write
    file: str | None  # a path, "-" for standard output, None for the speakers


def add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="a .wav, .flac, .ogg, .mp3, .opus or .m4a file, or - for raw sound on standard "
        "output; without it the sound is played, or written to speech.wav where that is not "
        "possible",
    )
    parser.add_argument(
        "--raw-format",
        choices=RAW_FORMATS,
        default=RAW_FORMATS[0],
        help="of raw sound: mono, 24,000 samples a second (default: %(default)s)",
    )


def check_output(path: str | None) -> None:
    """Refuses what no sound can be written to, before any work is done."""
    if path == "-":
        if sys.stdout is None:
            raise Error("there is no standard output to write the sound to")
        if sys.stdout.isatty():
            raise Error("standard output is a terminal; send the sound to a file or a program")
    elif path is not None:
        audio_format(path)


@contextmanager
def open_output(path: str | None, raw_format: str) -> Iterator[Output]:
    """Opens a file, "-" for standard output, or None for the speakers. A file appears when the
    block ends, whole, or not at all where it raises."""
    with ExitStack() as stack:
        write: Write | None = None
        if path == "-":
            write = partial(_write_raw, raw_format)
        elif path is None:
            try:
                write = stack.enter_context(speakers())
            except NoSpeakersError as reason:
                replaced = ", in place of the one that was there" if UNPLAYED.exists() else ""
                remark(f"nightingale: cannot play: {reason}; writing {UNPLAYED}{replaced}")
        if write is None:
            path = path or str(UNPLAYED)
            write = stack.enter_context(audio_writer(path, SAMPLE_RATE))
        yield Output(write, path)


def _write_raw(raw_format: str, samples: np.ndarray) -> None:
    sys.stdout.buffer.write(raw_bytes(samples, raw_format))
    sys.stdout.buffer.flush()


def raw_bytes(samples: np.ndarray, raw_format: str) -> bytes:
    """Mono samples without a header: 16-bit integers or floats, little-endian."""
    if raw_format == "f32le":
        return samples.astype("<f4").tobytes()
    scaled: np.ndarray = np.rint(np.clip(samples, -1, 1) * 32767)
    return scaled.astype("<i2").tobytes()


class NoSpeakersError(Exception):
    """Why nothing can be played."""


@contextmanager
def speakers() -> Iterator[Write]:
    """Plays in a thread, so that what comes next is made meanwhile; ends when all was heard."""
    with closing(_open_stream()) as stream:
        player = _Player(stream)
        try:
            yield player.write
            player.finish()
        finally:
            player.stop()


def _open_stream() -> Any:
    try:
        import sounddevice
    except ModuleNotFoundError:
        raise NoSpeakersError(
            "that needs sounddevice (pip install 'nightingale-tts[playback]')"
        ) from None
    except OSError as error:
        raise NoSpeakersError(str(error)) from error
    try:
        return sounddevice.OutputStream(samplerate=SAMPLE_RATE, channels=1, dtype="float32")
    except sounddevice.PortAudioError as error:
        raise NoSpeakersError(str(error)) from error


class _Player:
    """Feeds one device from a queue."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._queue: queue.SimpleQueue[np.ndarray | None] = queue.SimpleQueue()
        self._stopped = False
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._play, name="playback")
        self._thread.start()

    def write(self, samples: np.ndarray) -> None:
        self._check()
        self._queue.put(samples)

    def finish(self) -> None:
        """Waits until everything was heard."""
        self._queue.put(None)
        self._thread.join()
        self._check()
        self._stream.stop()

    def _check(self) -> None:
        if self._error is not None:
            raise Error(f"playing failed: {self._error}")

    def stop(self) -> None:
        self._stopped = True
        self._queue.put(None)
        self._thread.join()

    def _play(self) -> None:
        try:
            while (samples := self._queue.get()) is not None:
                if self._stream.stopped:
                    self._stream.start()
                for begin in range(0, len(samples), BLOCK):
                    if self._stopped:
                        return
                    self._stream.write(samples[begin : begin + BLOCK, None])
        except Exception as error:  # of whatever kind, the other thread tells it
            self._error = error
