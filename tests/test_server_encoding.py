"""The server's sound formats: what is in them, when it leaves and what it decodes to."""

from __future__ import annotations

import gc
import io
import shutil
import struct
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import soundfile

import nightingale

from .command import PATIENCE
from .recordings import speech

av = pytest.importorskip("av")
pytest.importorskip("fastapi")

from nightingale.server.encoding import RESPONSE_FORMATS, Encoder  # noqa: E402

FORMATS = [name for name in RESPONSE_FORMATS if name != "ogg"]  # which is opus by another name
CODECS = ["mp3", "opus", "aac", "flac"]
RATES = {"opus": 48000}  # what it decodes at; the others at 24000
# Samples of the input before the first byte of sound leaves, and between bytes from then on.
FIRST = {"mp3": 1152, "opus": 960, "aac": 2048, "flac": 576, "wav": 1, "pcm": 1}
FRAME = {"mp3": 576, "opus": 480, "aac": 1024, "flac": 576, "wav": 1, "pcm": 1}
DELAY = {"mp3": 1105, "opus": 0, "aac": 1024, "flac": 0}  # silence before the sound when decoded
# Samples of the input that no byte has brought yet, at most.
HELD = {"mp3": 2256, "opus": 1019, "aac": 3071, "flac": 575, "wav": 0, "pcm": 0}

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.fixture(scope="module")
def samples() -> np.ndarray:
    return speech(2, 24000)[:36001, 0]


def encode(response_format: str, *parts: np.ndarray) -> bytes:
    encoder = Encoder(response_format)
    return b"".join([encoder.write(part) for part in parts]) + encoder.finish()


def int16(samples: np.ndarray) -> np.ndarray:
    return np.rint(samples * 32767).astype(np.int16)


def decoded_length(response_format: str, count: int) -> int:
    """At the decoded rate: MP3 and AAC fill the last frame and have no place for the delay."""
    if response_format == "mp3":
        return (-(-count // 576) + 2) * 576
    if response_format == "aac":
        return (-(-count // 1024) + 1) * 1024
    return count * RATES.get(response_format, 24000) // 24000


def ffmpeg_decode(data: bytes, response_format: str) -> tuple[np.ndarray, str]:
    """Samples in [-1, 1] from a pipe, which cannot be sought in, and the warnings."""
    if not (ffmpeg := shutil.which("ffmpeg")):
        pytest.skip("there is no ffmpeg")
    raw = ["-f", "s16le", "-ar", "24000", "-ac", "1"]
    source = [*(raw if response_format == "pcm" else []), "-i", "pipe:0"]
    command = [ffmpeg, "-v", "warning", *source, "-f", "f32le", "pipe:1"]
    done = subprocess.run(command, input=data, capture_output=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return np.frombuffer(done.stdout, "<f4"), done.stderr.decode()


def pyav_decode(data: bytes, response_format: str) -> np.ndarray:
    with av.open(io.BytesIO(data)) as container:
        assert container.streams.audio[0].rate == RATES.get(response_format, 24000)
        frames = [frame.to_ndarray()[0] for frame in container.decode(audio=0)]
    sound = np.concatenate(frames) if frames else np.zeros(0, np.float32)
    return sound / np.float32(32768) if sound.dtype == np.int16 else sound


def decode(decoder: str, data: bytes, response_format: str) -> np.ndarray:
    if decoder == "ffmpeg":
        return ffmpeg_decode(data, response_format)[0]
    return pyav_decode(data, response_format)


def resident() -> float:
    """This process's memory in MiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20


def ogg_pages(data: bytes) -> list[tuple[int, int, bytes]]:
    """Flags, granule position and content of each page."""
    pages = []
    while data:
        magic, flags, granule, count = struct.unpack("<4sxBq12xB", data[:27])
        assert magic == b"OggS"
        end = 27 + count + sum(data[27 : 27 + count])
        pages.append((flags, granule, data[27 + count : end]))
        data = data[end:]
    return pages


def test_each_format_has_its_media_type() -> None:
    assert RESPONSE_FORMATS == {
        "mp3": "audio/mpeg",
        "opus": "audio/ogg; codecs=opus",
        "ogg": "audio/ogg; codecs=opus",
        "aac": "audio/aac",
        "flac": "audio/flac",
        "wav": "audio/wav",
        "pcm": "audio/pcm; rate=24000; channels=1",
    }
    assert Encoder("opus").media_type == "audio/ogg; codecs=opus"
    silence = np.zeros(2400, np.float32)
    assert encode("ogg", silence) == encode("opus", silence)


@pytest.mark.parametrize("decoder", ["ffmpeg", "pyav"])
@pytest.mark.parametrize("response_format", ["flac", "wav", "pcm"])
def test_lossless_formats_give_back_each_sample(
    response_format: str, decoder: str, samples: np.ndarray
) -> None:
    data = encode(response_format, samples)
    if response_format == "pcm":
        assert data == int16(samples).astype("<i2").tobytes()
        if decoder == "pyav":
            return
    found = decode(decoder, data, response_format) * 32768
    np.testing.assert_array_equal(found, int16(samples))


@pytest.mark.parametrize("decoder", ["ffmpeg", "pyav"])
@pytest.mark.parametrize(("response_format", "decibels"), [("mp3", 24), ("opus", 28), ("aac", 40)])
def test_lossy_formats_give_back_the_sound_after_their_delay(
    response_format: str, decibels: float, decoder: str, samples: np.ndarray
) -> None:
    found = decode(decoder, encode(response_format, samples), response_format)
    assert len(found) == decoded_length(response_format, len(samples))
    at_24k = found[:: RATES.get(response_format, 24000) // 24000]
    heard = at_24k[DELAY[response_format] :][: len(samples)]
    noise = np.square(heard - samples).mean()
    assert 10 * np.log10(np.square(samples).mean() / noise) > decibels
    after = at_24k[DELAY[response_format] + len(samples) :]
    assert np.abs(after[200:]).max(initial=0) < 0.01


def test_opus_tells_its_delay_and_where_the_sound_ends(samples: np.ndarray) -> None:
    (_, _, head), (_, _, tags), *pages = ogg_pages(encode("opus", samples))
    skip = 120  # samples at 48 kHz
    assert head == struct.pack("<8sBBHIhB", b"OpusHead", 1, 1, skip, 24000, 0, 0)
    assert tags.startswith(b"OpusTags")
    flags, ends, _ = zip(*pages, strict=True)
    assert flags == (*[0] * (len(pages) - 1), 4)  # the last ends the stream
    assert ends[:-1] == tuple(range(960, 960 * len(pages), 960))  # 20 ms a page
    assert ends[-1] == skip + 2 * len(samples)


def test_mp3_is_frames_of_one_size_and_nothing_else(samples: np.ndarray) -> None:
    data = encode("mp3", samples)
    starts = np.frombuffer(data, np.uint8).reshape(-1, 288)[:, :3]
    assert starts.tolist() == [[0xFF, 0xF3, 0xA4]] * 65  # MPEG-2 layer III, 96 kbit/s, 24 kHz
    assert b"Xing" not in data
    assert b"Info" not in data


def test_flac_and_wav_say_that_their_length_is_unknown(samples: np.ndarray) -> None:
    flac = encode("flac", samples)
    assert flac[:8] == b"fLaC" + bytes([0, 0, 0, 34])
    block, _, _, rate, md5 = struct.unpack(">I3s3sQ16s", flac[8:42])
    assert block == (576 << 16) + 576
    assert rate == (24000 << 44) + (15 << 36)  # 1 channel, 16 bits, of 0 samples
    assert md5 == bytes(16)
    wav = encode("wav", samples)
    unknown = struct.pack("<I", 0xFFFFFFFF)
    assert wav[:8] == b"RIFF" + unknown
    assert wav[36:44] == b"data" + unknown


@pytest.mark.parametrize("response_format", ["wav", "flac", "opus", "mp3"])
def test_soundfile_reads_them(response_format: str, samples: np.ndarray) -> None:
    with soundfile.SoundFile(io.BytesIO(encode(response_format, samples))) as file:
        assert (file.samplerate, file.channels) == (24000, 1)
        # soundfile cannot stand at the end of a FLAC file that does not tell its length.
        found = file.read(36000 if response_format == "flac" else -1, dtype="float32")
    assert len(found) == {"mp3": 37440, "flac": 36000}.get(response_format, 36001)
    heard = found[DELAY.get(response_format, 0) :][:36000]
    assert np.corrcoef(heard, samples[:36000])[0, 1] > 0.99


@pytest.mark.parametrize("response_format", FORMATS)
def test_bytes_leave_with_each_frame(response_format: str, samples: np.ndarray) -> None:
    encoder = Encoder(response_format)
    header = encoder.write(samples[:0])
    sizes = {"opus": 97, "flac": 60, "wav": 44}
    assert len(header) == sizes.get(response_format, 0)
    leaves = [n + 1 for n in range(4096) if encoder.write(samples[n : n + 1])]
    encoder.close()
    assert leaves == list(range(FIRST[response_format], 4097, FRAME[response_format]))


@pytest.mark.parametrize("response_format", FORMATS)
def test_what_has_left_plays_without_the_rest(response_format: str, samples: np.ndarray) -> None:
    frame = FRAME[response_format]
    for count in (24 * frame, 25 * frame - 1):
        encoder = Encoder(response_format)
        data = encoder.write(samples[:count])
        encoder.close()
        if response_format == "pcm":
            heard = len(data) // 2
        else:
            found = pyav_decode(data, response_format)
            rate = RATES.get(response_format, 24000)
            heard = len(found) * 24000 // rate - DELAY.get(response_format, 0)
        assert heard >= count - HELD[response_format]


@pytest.mark.parametrize("response_format", FORMATS)
def test_the_bytes_do_not_depend_on_how_the_samples_come(
    response_format: str, samples: np.ndarray
) -> None:
    whole = encode(response_format, samples)
    random = np.random.default_rng(9)
    for _ in range(5):
        cuts = np.sort(random.integers(0, len(samples), 40).repeat(2))
        assert encode(response_format, *np.split(samples, cuts)) == whole
    ones = [samples[n : n + 1] for n in range(3000)]
    assert encode(response_format, *ones, samples[3000:], samples[:0]) == whole
    assert encode(response_format, samples.astype(np.float64)) == whole


@pytest.mark.parametrize("count", [0, 1, 100])
@pytest.mark.parametrize("response_format", CODECS)
def test_a_moment_of_sound_or_none_is_a_file_that_players_know(
    response_format: str, count: int, samples: np.ndarray
) -> None:
    shortest = {"mp3": 2880, "aac": 2880, "opus": 1, "flac": 0}[response_format]
    data = encode(response_format, samples[:count])
    found, warnings = ffmpeg_decode(data, response_format)
    assert len(found) == decoded_length(response_format, max(count, shortest))
    assert "low score" not in warnings
    assert len(pyav_decode(data, response_format)) == len(found)
    if count == 0:
        assert np.abs(found).max(initial=0) == 0


def test_no_sound_leaves_the_plain_formats_empty() -> None:
    assert encode("pcm") == b""
    assert len(encode("wav")) == 44
    assert len(pyav_decode(encode("wav"), "wav")) == 0


def test_samples_are_rounded_once_and_clipped() -> None:
    samples = np.array([0.5, 1.5, -0.6, 32766.6, 40000, -40000], np.float32) / 32767
    expected = [0, 2, -1, 32767, 32767, -32767]
    assert np.frombuffer(encode("pcm", samples), "<i2").tolist() == expected
    assert (pyav_decode(encode("flac", samples), "flac") * 32768).tolist() == expected


@pytest.mark.parametrize("response_format", CODECS)
def test_loud_samples_are_clipped_before_the_codec(
    response_format: str, samples: np.ndarray
) -> None:
    loud = encode(response_format, 4 * samples)
    assert loud == encode(response_format, np.clip(4 * samples, -1, 1))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("response_format", FORMATS)
def test_what_is_no_number_is_refused_and_loses_nothing(
    response_format: str, bad: float, samples: np.ndarray
) -> None:
    spoilt = samples[:2400].copy()
    spoilt[1200] = bad
    encoder = Encoder(response_format)
    data = encoder.write(samples[:1000])
    with pytest.raises(nightingale.Error, match="not finite"):
        encoder.write(spoilt)
    data += encoder.write(samples[1000:]) + encoder.finish()
    assert data == encode(response_format, samples)


@pytest.mark.parametrize(
    ("samples", "seen"),
    [
        (np.zeros((1, 9), np.float32), r"not float32\(1, 9\)"),
        (np.zeros(9, np.int16), r"not int16\(9,\)"),
    ],
)
def test_other_arrays_are_refused(samples: np.ndarray, seen: str) -> None:
    with pytest.raises(ValueError, match=seen):
        Encoder("wav").write(samples)


@pytest.mark.parametrize("unknown", ["oga", "MP3", "", None])
def test_an_unknown_format_is_refused_with_the_known_ones(unknown: str | None) -> None:
    with pytest.raises(ValueError, match="known are mp3, opus, ogg, aac, flac, wav, pcm") as caught:
        Encoder(unknown)
    assert repr(unknown) in str(caught.value)


@pytest.mark.parametrize("end", ["finish", "close"])
@pytest.mark.parametrize("response_format", FORMATS)
def test_nothing_comes_after_the_end(response_format: str, end: str, samples: np.ndarray) -> None:
    encoder = Encoder(response_format)
    encoder.write(samples[:3000])
    getattr(encoder, end)()
    for late in (lambda: encoder.write(samples), encoder.finish):
        with pytest.raises(ValueError, match="finished or closed"):
            late()
    encoder.close()


@pytest.mark.parametrize("response_format", CODECS)
def test_it_can_be_closed_while_another_thread_writes(
    response_format: str, samples: np.ndarray
) -> None:
    for _ in range(5):
        encoder, under_way = Encoder(response_format), threading.Event()
        refusals: list[str] = []

        def write_on(encoder: Encoder, under_way: threading.Event, refusals: list[str]) -> None:
            try:
                while True:
                    encoder.write(samples[:6000])
                    under_way.set()
            except ValueError as error:
                refusals.append(str(error))

        writer = threading.Thread(target=write_on, args=(encoder, under_way, refusals))
        writer.start()
        assert under_way.wait(PATIENCE)
        encoder.close()
        writer.join(PATIENCE)
        assert refusals == ["this encoder is finished or closed"]


@linux_only
@pytest.mark.parametrize("response_format", CODECS)
def test_encoders_leave_no_memory_behind(response_format: str, samples: np.ndarray) -> None:
    def use(count: int) -> None:
        for number in range(count):
            encoder = Encoder(response_format)
            encoder.write(samples[:600])
            if number % 3 == 0:
                encoder.finish()
            elif number % 3 == 1:
                encoder.close()

    use(30)
    gc.collect()
    gc.disable()
    try:
        before = resident()
        use(300)
        assert resident() - before < 1
    finally:
        gc.enable()


@pytest.mark.slow
@linux_only
@pytest.mark.parametrize("response_format", CODECS)
def test_two_minutes_take_no_more_memory_than_one_second(response_format: str) -> None:
    noise = np.random.default_rng(9).normal(0, 0.1, 24000).astype(np.float32)
    encoder = Encoder(response_format)
    encoder.write(noise)
    before = resident()
    for _ in range(120):
        encoder.write(noise)
    assert resident() - before < 1
    encoder.close()
