"""Recordings as they come: what is heard of them, what is refused and what is warned of."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import soxr

from nightingale.recording import read_recording

from .recordings import assert_same, refusal, speech, wav_bytes


def resampled(samples: np.ndarray, rate: int, new_rate: int) -> np.ndarray:
    """The reference's rule: soxr HQ, then cut or filled to the length rounded up."""
    if rate == new_rate:
        return samples
    length = math.ceil(len(samples) * (new_rate / rate))
    found = soxr.resample(samples, rate, new_rate, "HQ")[:length]
    return np.concatenate([found, np.zeros(length - len(found), np.float32)])


@pytest.mark.parametrize("extra", [0, 1, 137])
@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("rate", [8000, 11025, 16000, 22050, 24000, 44100, 48000, 96000])
def test_a_file_is_averaged_and_resampled_as_the_reference_does(
    tmp_path: Path, rate: int, channels: int, extra: int
) -> None:
    samples = speech(1 + extra / rate, rate, channels)
    soundfile.write(tmp_path / "me.wav", samples, rate, subtype="FLOAT")
    found = read_recording(tmp_path / "me.wav")
    at_24k = resampled(samples.mean(axis=1), rate, 24000)
    np.testing.assert_array_equal(found.at_24k, at_24k)
    np.testing.assert_array_equal(found.at_16k, resampled(at_24k, 24000, 16000))
    for array in (found.at_24k, found.at_16k):
        assert array.dtype == np.float32
        assert array.flags.c_contiguous
    assert found.duration == (rate + extra) / rate
    assert_same(read_recording(samples, rate), found)


def test_a_tone_keeps_its_pitch_and_level() -> None:
    seconds = np.arange(5 * 44100) / 44100
    found = read_recording(0.5 * np.sin(2 * np.pi * 1000 * seconds), 44100)
    for array, rate in ((found.at_24k, 24000), (found.at_16k, 16000)):
        expected = 0.5 * np.sin(2 * np.pi * 1000 * np.arange(5 * rate) / rate)
        inner = slice(rate, 4 * rate)
        np.testing.assert_allclose(array[inner], expected[inner], atol=1e-5)


@pytest.mark.parametrize(("dtype", "subtype"), [("int16", "PCM_16"), ("int32", "PCM_32")])
def test_whole_samples_are_scaled_as_in_a_file(dtype: str, subtype: str) -> None:
    most = np.iinfo(dtype).max
    samples = (speech(5, 24000, 2) * most).astype(dtype)
    samples[:2] = [[most, -most - 1], [-most - 1, -most - 1]]
    found = read_recording(samples, 24000)
    assert found.at_24k[1] == -1
    assert_same(read_recording(io.BytesIO(wav_bytes(samples, 24000, subtype=subtype))), found)
    assert_same(read_recording(samples.astype(samples.dtype.newbyteorder()), 24000), found)


def test_floats_of_any_width_are_taken() -> None:
    samples = speech(5, 24000)[:, 0].astype(np.float16)
    expected = read_recording(samples.astype(np.float32), 24000)
    np.testing.assert_array_equal(expected.at_24k, samples)
    assert_same(read_recording(samples, 24000), expected)
    assert_same(read_recording(samples.astype(np.float64), np.int64(24000)), expected)
    assert_same(read_recording(samples[:, None][::-1][::-1], 24000), expected)


def test_the_callers_samples_stay_theirs() -> None:
    samples = speech(5, 24000)[:, 0]
    before = samples.copy()
    found = read_recording(samples, 24000)
    found.at_24k[:] = 0
    np.testing.assert_array_equal(samples, before)


@pytest.mark.parametrize(
    ("samples", "rate"),
    [
        (speech(5, 16000), 16000),
        (speech(60, 24000), 24000),
        (speech(10, 96000, 2), 96000),
        (speech(8, 48000, 6), 48000),
    ],
    ids=["5 s at 16 kHz", "60 s", "96 kHz stereo", "six channels"],
)
def test_a_good_recording_gets_no_warning(
    samples: np.ndarray, rate: int, caplog: pytest.LogCaptureFixture
) -> None:
    found = read_recording(samples, rate)
    assert found.duration == len(samples) / rate
    assert len(found.at_24k) == round(found.duration * 24000)
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("count", "shown"), [(0, "0.00"), (1, "0.00"), (8000, "0.50"), (15999, "0.99")]
)
def test_less_than_a_second_is_refused(tmp_path: Path, count: int, shown: str) -> None:
    samples = speech(1, 16000)[:count]
    expected = f"is {shown} s long; a voice needs 1 s at least and 5 s or more to be good"
    assert refusal(ValueError, samples, 16000) == f"the recording {expected}"
    path = tmp_path / "me.wav"
    soundfile.write(path, samples, 16000)
    assert refusal(ValueError, path) == f"{path} {expected}"


@pytest.mark.parametrize(("count", "shown"), [(16000, "1.00"), (79999, "4.99"), (80000, None)])
def test_less_than_five_seconds_is_warned_of(
    caplog: pytest.LogCaptureFixture, count: int, shown: str | None
) -> None:
    assert read_recording(speech(5, 16000)[:count], 16000).duration == count / 16000
    warning = f"the recording is {shown} s long; 5 s or more make a better voice"
    assert caplog.messages == ([warning] if shown else [])


@pytest.mark.parametrize("level", [0, 1e-4, 9.9e-4])
def test_silence_is_refused(level: float) -> None:
    samples = speech(5, 16000)
    samples *= np.float32(level / np.abs(samples).max())
    message = refusal(ValueError, samples, 16000)
    assert message == "the recording is silent: it never reaches -60 dB of full scale in mono"


def test_a_quiet_recording_is_not_silence(caplog: pytest.LogCaptureFixture) -> None:
    samples = speech(5, 24000)[:, 0]
    samples *= np.float32(1.1e-3 / np.abs(samples).max())
    np.testing.assert_array_equal(read_recording(samples, 24000).at_24k, samples)
    assert caplog.messages == []


def test_channels_that_cancel_out_are_refused() -> None:
    left = speech(5, 16000)
    message = refusal(ValueError, np.hstack([left, -left]), 16000)
    assert message.startswith("the recording has channels that cancel out: it never reaches")


def test_a_little_sound_in_much_silence_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    samples = np.full((10 * 16000, 1), 1e-5, np.float32)
    samples[16000:24000] += speech(0.5, 16000)
    assert read_recording(samples, 16000).duration == 10
    (warning,) = caplog.messages
    expected = "the recording is almost silent: only 0.50 s are within 40 dB of the loudest"
    assert warning == expected


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("channels", [1, 2])
def test_samples_that_are_not_finite_are_refused(value: float, channels: int) -> None:
    samples = speech(2, 16000, channels)
    samples[20000, -1] = value
    expected = "the recording holds samples that are not finite"
    assert refusal(ValueError, samples, 16000) == expected
    file = io.BytesIO(wav_bytes(samples, 16000, subtype="FLOAT"))
    assert refusal(ValueError, file) == expected


@pytest.mark.parametrize("value", [3e38, 1e300], ids=["when averaged", "as float32"])
def test_samples_that_overflow_are_refused(value: float) -> None:
    samples = speech(2, 16000, 2).astype(np.float64)
    samples[9] = value
    assert refusal(ValueError, samples, 16000) == "the recording holds samples that are not finite"


def test_samples_at_the_scale_of_integers_are_refused() -> None:
    message = refusal(ValueError, speech(2, 16000) * 30000, 16000)
    assert message.startswith("the recording has samples up to 11954.9; ")
    assert message.endswith(
        "; expected -1 to 1 (16-bit samples kept as floats are to be divided by 32768)"
    )


def test_samples_beyond_full_scale_are_used_as_they_are(caplog: pytest.LogCaptureFixture) -> None:
    samples = speech(5, 24000)[:, 0]
    samples[777] = -1.25
    np.testing.assert_array_equal(read_recording(samples, 24000).at_24k, samples)
    assert caplog.messages == [
        "the recording has samples up to 1.25 of full scale; they are used as they are"
    ]


def test_clipping_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    seconds = np.arange(5 * 16000) / 16000
    tone = 2 * np.sin(2 * np.pi * 200 * seconds)
    read_recording(np.clip(tone, -1, 1), 16000)
    (warning,) = caplog.messages
    # Two thirds of a doubled sine lie past full scale; a run of 26 or 27 counts without its ends.
    assert warning == "the recording is clipped: 62.5 % of its samples are stuck at full scale"


def test_peaks_that_touch_full_scale_are_not_clipping(caplog: pytest.LogCaptureFixture) -> None:
    samples = speech(5, 16000)[:, 0]
    samples[::100] = 1
    samples[1::100] = 1
    read_recording(samples, 16000)
    assert caplog.messages == []


@pytest.mark.parametrize(("rate", "warned"), [(4000, True), (8000, True), (16000, False)])
def test_a_low_rate_is_warned_of(caplog: pytest.LogCaptureFixture, rate: int, warned: bool) -> None:
    assert len(read_recording(speech(5, rate), rate).at_24k) == 5 * 24000
    warning = (
        f"the recording has {rate} samples a second; its voice will lack what is above "
        f"{rate // 2} Hz"
    )
    assert caplog.messages == ([warning] if warned else [])


def test_of_long_samples_only_the_first_minute_is_used(caplog: pytest.LogCaptureFixture) -> None:
    samples = speech(61, 16000)
    found = read_recording(samples, 16000)
    assert caplog.messages == ["the recording is longer than 60 s; what follows is not used"]
    assert_same(found, read_recording(samples[: 60 * 16000], 16000))


@pytest.mark.parametrize(
    ("source", "rate", "message"),
    [
        (np.zeros(9), None, "an array of samples needs its sample_rate"),
        (np.zeros(9), 16000.0, "sample_rate must be a whole number, not 16000.0"),
        (np.zeros(9), True, "sample_rate must be a whole number, not True"),
        (np.zeros(9), "16000", "sample_rate must be a whole number, not '16000'"),
        ("me.wav", 16000, "sample_rate goes with an array of samples; a file has its own"),
        (io.BytesIO(), 16000, "sample_rate goes with an array of samples; a file has its own"),
        (np.zeros(9, np.uint8), 16000, "samples must be floats, int16 or int32, not uint8"),
        (np.zeros(9, np.int64), 16000, "samples must be floats, int16 or int32, not int64"),
        (np.zeros(9, bool), 16000, "samples must be floats, int16 or int32, not bool"),
        (np.zeros(9, complex), 16000, "samples must be floats, int16 or int32, not complex128"),
        (np.zeros(9, object), 16000, "samples must be floats, int16 or int32, not object"),
        (np.zeros(()), 16000, "samples have shape []; expected [n] or [n, channels]"),
        (np.zeros((9, 0)), 16000, "samples have shape [9, 0]; expected [n] or [n, channels]"),
        (np.zeros((1, 9, 2)), 16000, "samples have shape [1, 9, 2]; expected [n] or [n, channels]"),
        (np.zeros((2, 9000)), 16000, "samples have shape [2, 9000]; expected [n] or [n, channels]"),
        (io.StringIO("x"), None, "the file object is open in text mode; open it in binary mode"),
        *(
            (
                source,
                None,
                f"a recording is a path, a file object or a numpy array of samples, not "
                f"{type(source).__name__}",
            )
            for source in (None, 5, b"RIFF", [0.0, 0.1])
        ),
    ],
    ids=lambda value: None if isinstance(value, io.IOBase) else str(value),
)
def test_a_source_of_another_kind_is_refused(source: Any, rate: Any, message: str) -> None:
    assert refusal(ValueError, source, rate) == message
