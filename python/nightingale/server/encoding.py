"""Sound to the bytes of a response as it comes: one file, written without ever going back."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

import av
import numpy as np

from .._core import Error
from ..audio import SAMPLE_RATE

RESPONSE_FORMATS: Mapping[str, str] = {  # and their media types
    "mp3": "audio/mpeg",
    "opus": "audio/ogg; codecs=opus",  # audio/opus is its RTP payload, without a container
    "ogg": "audio/ogg; codecs=opus",  # the same, by the name of its container
    "aac": "audio/aac",
    "flac": "audio/flac",
    "wav": "audio/wav",
    "pcm": f"audio/pcm; rate={SAMPLE_RATE}; channels=1",
}


@dataclass(frozen=True)
class _Codec:
    name: str
    options: Mapping[str, str]
    container: str
    container_options: Mapping[str, str]
    sample_format: str
    shortest: int  # samples; what is shorter gets silence, so that players know the file for one


# Sizes and errors are of recorded speech; an error is the mean difference of log-mel bands.
_CODECS = {
    # A constant rate, as players tell the length by it where no Xing frame gives it. 96 kbit/s: the
    # error is 0.5 dB, at LAME's own choice of 32 it is 3.4. No bit reservoir: with it each frame
    # leaves one frame (24 ms) later and the error is much the same.
    "mp3": _Codec(
        "libmp3lame",
        {"b": "96000", "reservoir": "0"},
        "mp3",
        {"write_xing": "0", "id3v2_version": "0"},
        "fltp",
        shortest=2880,
    ),
    # A page for each frame of 20 ms. Low delay: 2.5 ms of look-ahead in place of 6.5, and from
    # 64 kbit/s on no worse (0.4 dB).
    "opus": _Codec(
        "libopus",
        {"b": "64000", "application": "lowdelay", "frame_duration": "20"},
        "ogg",
        {"page_duration": "20000"},
        "flt",
        shortest=1,
    ),
    # The fast search takes 0.4 of the two-loop one's time and errs less (0.6 dB for 0.7), with 6%
    # more bytes.
    "aac": _Codec("aac", {"b": "64000", "aac_coder": "fast"}, "adts", {}, "fltp", shortest=2880),
    # Blocks of 24 ms make 2% more bytes than the best size, which is 48 ms.
    "flac": _Codec(
        "flac",
        {"frame_size": "576"},
        "flac",
        {"metadata_header_padding": "0"},
        "s16",
        shortest=0,
    ),
}
_CODECS["ogg"] = _CODECS["opus"]
# The Ogg container numbers its stream at random unless it is to be exact.
_EVERY_CONTAINER = {"flush_packets": "1", "fflags": "+bitexact"}


class Encoder:
    """Makes one response's bytes from mono samples in [-1, 1], the same bytes however the samples
    are split. Bytes leave as early as the codec lets them."""

    def __init__(self, response_format: str) -> None:
        if response_format not in RESPONSE_FORMATS:
            known = ", ".join(RESPONSE_FORMATS)
            raise ValueError(f"unknown response_format {response_format!r}; known are {known}")
        self.media_type = RESPONSE_FORMATS[response_format]
        codec = _CODECS.get(response_format)
        header = _wav_header() if response_format == "wav" else b""
        self._file: _Compressed | _Plain | None = _Compressed(codec) if codec else _Plain(header)

    def write(self, samples: np.ndarray) -> bytes:
        """Takes the next samples, [n]; gives the bytes that are ready, which may be none."""
        if samples.ndim != 1 or samples.dtype.kind != "f":
            raise ValueError(f"samples must be floats, [n], not {samples.dtype}{samples.shape}")
        if not np.isfinite(samples).all():  # LAME would end the process
            raise Error("the sound has samples that are not finite numbers")
        return self._open_file().write(np.clip(samples, -1, 1).astype(np.float32, copy=False))

    def finish(self) -> bytes:
        """The last bytes; the encoder takes no more."""
        data = self._open_file().finish()
        self._file = None
        return data

    def close(self) -> None:
        """Drops what is not finished; the encoder takes no more. A write that is under way in
        another thread keeps what it needs until it ends."""
        self._file = None

    def _open_file(self) -> _Compressed | _Plain:
        file = self._file  # read once, as another thread may close it
        if file is None:
            raise ValueError("this encoder is finished or closed")
        return file


class _Plain:
    """16-bit samples after a header."""

    def __init__(self, header: bytes) -> None:
        self._header = header

    def write(self, samples: np.ndarray) -> bytes:
        return self.finish() + _int16(samples).tobytes()

    def finish(self) -> bytes:
        header, self._header = self._header, b""
        return header


class _Compressed:
    """A codec in its container."""

    def __init__(self, codec: _Codec) -> None:
        self._codec = codec
        self._bytes = _Bytes()
        self._samples = 0
        self._container = av.open(
            self._bytes,
            "w",
            format=codec.container,
            container_options={**_EVERY_CONTAINER, **codec.container_options},
        )
        stream = self._container.add_stream(
            codec.name,
            rate=SAMPLE_RATE,
            options=dict(codec.options),
            layout="mono",
            format=codec.sample_format,
        )
        assert isinstance(stream, av.AudioStream)
        self._stream = stream
        self._container.start_encoding()

    def write(self, samples: np.ndarray) -> bytes:
        if len(samples):
            if self._codec.sample_format == "s16":
                samples = _int16(samples)
            frame = av.AudioFrame.from_ndarray(samples[None], self._codec.sample_format, "mono")
            frame.sample_rate = SAMPLE_RATE
            frame.pts = self._samples
            self._samples += len(samples)
            self._container.mux(self._stream.encode(frame))
        return self._bytes.take()

    def finish(self) -> bytes:
        missing = self._codec.shortest - self._samples
        data = self.write(np.zeros(max(missing, 0), np.float32))
        self._container.mux(self._stream.encode(None))
        self._container.close()
        return data + self._bytes.take()

    def __del__(self) -> None:
        # Else PyAV's objects, which hold each other, would wait for the garbage collector.
        self._container.close()


class _Bytes:
    """Where a container writes. It cannot seek, so no container leaves a head to be mended."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._parts.append(data)
        return len(data)

    def take(self) -> bytes:
        """What was written since the last time."""
        data = b"".join(self._parts)
        self._parts.clear()
        return data


def _int16(samples: np.ndarray) -> np.ndarray:
    scaled: np.ndarray = np.rint(samples * 32767)
    return scaled.astype("<i2")


def _wav_header() -> bytes:
    """Both lengths are the largest there is: players then read to the end."""
    unknown, pcm, mono, width = 0xFFFFFFFF, 1, 1, 2
    return struct.pack(
        "<4sI4s4sIHHIIHH4sI",
        *(b"RIFF", unknown, b"WAVE"),
        *(b"fmt ", 16, pcm, mono, SAMPLE_RATE, SAMPLE_RATE * width, width, 8 * width),
        *(b"data", unknown),
    )
