"""Voice conversion: what becomes of a recording, how it is divided, and what is refused."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

import nightingale
from nightingale import _core, conversion, long_recording
from nightingale.conversion import Converter
from nightingale.long_recording import RATE, LongRecording
from nightingale.options import SpeechOptions

from .recordings import speech, wav_bytes

SAMPLES_PER_TOKEN = 960
SHORT = speech(1.5, RATE)[:, 0]


def fast(seconds: float) -> np.ndarray:
    """Mono speech at 16 kHz that is never the same."""
    time = np.arange(round(seconds * RATE)) / RATE
    pitch = 150 + 40 * np.sin(0.7 * time) + 25 * np.sin(0.11 * time)
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    voiced = sum(np.sin(k * phase) / k for k in range(1, 10))
    loudness = 0.5 - 0.45 * np.cos(2 * np.pi * 3.3 * time)
    return (0.2 * voiced * loudness).astype(np.float32)


def joined(chunks: list[nightingale.Chunk]) -> np.ndarray:
    return np.concatenate([chunk.samples for chunk in chunks])


def test_a_conversion_is_the_sound_of_the_recordings_tokens(quick_tts: nightingale.TTS) -> None:
    audio = quick_tts.convert(SHORT, sample_rate=RATE, seed=4)
    assert len(audio.tokens) == 38  # 150 frames, four a token
    assert audio.tokens.dtype == np.int32
    assert len(audio.samples) == SAMPLES_PER_TOKEN * len(audio.tokens)
    assert audio.words == []
    assert set(audio.timings) == {"tokenizer", "flow", "vocoder", "total", "ttfa", "rtf"}
    expected = quick_tts.synthesize(audio.tokens, seed=4)
    np.testing.assert_array_equal(audio.samples[:-240], expected.samples[:-240])
    assert audio.samples[-1] == 0  # faded out over 10 ms
    assert np.all(np.abs(audio.samples) <= np.abs(expected.samples))


def test_voice_seed_and_speed_apply(quick_tts: nightingale.TTS, tmp_path: Path) -> None:
    def converted(**options: Any) -> nightingale.Audio:
        return quick_tts.convert(SHORT, sample_rate=RATE, **options)

    plain, voice = converted(), quick_tts.bake_voice(speech(3, 24000)[:, 0], 24000)
    np.testing.assert_array_equal(converted().samples, plain.samples)
    assert not np.array_equal(converted(seed=1).samples, plain.samples)
    assert not np.array_equal(converted(voice=voice).samples, plain.samples)
    np.testing.assert_array_equal(converted(voice=voice).tokens, plain.tokens)
    assert len(converted(speed=2).samples) == len(plain.samples) // 2
    options = SpeechOptions(seed=1, speed=2)
    np.testing.assert_array_equal(
        quick_tts.convert(SHORT, options, sample_rate=RATE, seed=0).samples,
        converted(speed=2).samples,
    )


def test_paths_files_and_samples_convert_alike(quick_tts: nightingale.TTS, tmp_path: Path) -> None:
    samples = (speech(1.3, 44100, 2) * 2**15).astype(np.int16)
    path = tmp_path / "speech.wav"
    path.write_bytes(wav_bytes(samples, 44100, subtype="PCM_16"))
    expected = quick_tts.convert(samples, sample_rate=44100)
    with path.open("rb") as file:
        file.seek(100)
        for source in (path, str(path), file, io.BytesIO(path.read_bytes())):
            found = quick_tts.convert(source)
            np.testing.assert_array_equal(found.tokens, expected.tokens)
            np.testing.assert_array_equal(found.samples, expected.samples)


def test_a_stream_has_the_tokens_and_the_length_of_the_whole(quick_tts: nightingale.TTS) -> None:
    sound = fast(7.3)
    whole = quick_tts.convert(sound, sample_rate=RATE)
    chunks = list(quick_tts.convert_stream(sound, sample_rate=RATE))
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    assert len(chunks) >= 4
    assert len(chunks[0].samples) < 0.4 * 24000
    np.testing.assert_array_equal(np.concatenate([c.tokens for c in chunks]), whole.tokens)
    assert len(joined(chunks)) == len(whole.samples)
    assert chunks[-1].timings["ttfa"] == chunks[0].timings["total"]


def test_a_long_recording_is_solved_in_sections(
    quick_tts: nightingale.TTS, monkeypatch: pytest.MonkeyPatch
) -> None:
    """7.3 s are long where 4 s are."""
    sound = fast(7.3)
    solved = quick_tts.convert(sound, sample_rate=RATE).samples
    monkeypatch.setattr(conversion, "WHOLE", 100)
    monkeypatch.setattr(conversion, "SECTION", 60)
    whole = quick_tts.convert(sound, sample_rate=RATE)
    assert len(whole.samples) == SAMPLES_PER_TOKEN * 183
    chunks = list(quick_tts.convert_stream(sound, sample_rate=RATE, first_chunk=None))
    assert [len(chunk.tokens) for chunk in chunks] == [60, 60, 63]
    np.testing.assert_array_equal(joined(chunks), whole.samples)
    # It is what the whole would be: at the seams, and far from them.
    assert not np.array_equal(whole.samples, solved)
    for second in (1, 2.2, 2.4, 3.5, 4.6, 4.8, 6):
        part = slice(round(second * 24000), round((second + 0.3) * 24000))
        assert np.corrcoef(solved[part], whole.samples[part])[0, 1] > 0.9, second


def test_the_tokens_of_a_long_recording_are_those_of_overlapping_windows(
    quick_tts: nightingale.TTS, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows of 30 s every 26 s, computed of the whole recording's log-mel at once."""
    sound = fast(58.3)
    sound[: 20 * RATE] *= 1e-4  # its level is that below the loudest, which comes later
    monkeypatch.setattr(long_recording, "BLOCK_SAMPLES", 12345)
    engine = quick_tts._engine
    mel = engine.log_mel(sound)
    windows = [
        engine.recording_tokens(mel[begin : begin + 3000], float(mel.max()))
        for begin in (0, 2600, 5200)
    ]
    expected = np.concatenate([windows[0][:700], windows[1][50:700], windows[2][50:]])
    options = quick_tts._resolved(SpeechOptions(), quick_tts._voice(None))
    recording = LongRecording.of(sound, RATE)
    converter = Converter(engine, recording, quick_tts._voice(None), options)
    found = np.concatenate(list(tokens_of(converter)))
    np.testing.assert_array_equal(found, expected)


def tokens_of(converter: Converter) -> Iterator[list[int]]:
    hearing = converter._hear_all()
    while True:
        try:
            next(hearing)
        except StopIteration as heard:
            return converter._tokens(heard.value)


class Counting:
    """In place of an engine: a frame is its place in the recording, and a token its own place."""

    def __init__(self) -> None:
        self.longest = 0

    def s3gen(self) -> None: ...

    def log_mel(self, samples: np.ndarray) -> np.ndarray:
        self.longest = max(self.longest, len(samples))
        return samples[: len(samples) // 160 * 160 : 160, None].repeat(128, axis=1)

    def recording_tokens(self, log_mel: np.ndarray, loudest: float) -> np.ndarray:
        assert 1 <= len(log_mel) <= 3000
        return np.rint(log_mel[::4, 0] / 1e-5 / 640).astype(np.int32)


@pytest.mark.parametrize(
    "tokens",
    [7, 8, 700, 701, 749, 750, 751, 799, 800, 801, 1350, 1351, 1399, 1400, 1401, 2050, 2051, 3333],
)
@pytest.mark.parametrize("extra", [-481, -480, 0])
def test_no_token_is_lost_or_doubled_where_windows_meet(
    quick_tts: nightingale.TTS, tokens: int, extra: int
) -> None:
    places = np.arange(tokens * 640 + extra) * np.float32(1e-5)
    engine: Any = Counting()
    recording = LongRecording("places", 0, lambda: iter(np.array_split(places, 7)))
    options = quick_tts._resolved(SpeechOptions(), quick_tts._voice(None))
    converter = Converter(engine, recording, quick_tts._voice(None), options)
    found = [token for part in tokens_of(converter) for token in part]
    assert found == list(range(tokens - (extra == -481)))
    assert engine.longest <= 160 * (3000 + 4)


def test_memory_does_not_grow_with_the_recording(
    quick_tts: nightingale.TTS, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of half a minute, which is long where 4 s are."""
    monkeypatch.setattr(conversion, "WHOLE", 100)
    monkeypatch.setattr(conversion, "SECTION", 60)
    held: list[int] = []
    step = quick_tts._loaded.step

    def noted(sound: _core.SentenceSound) -> np.ndarray | None:
        samples = step(sound)
        held.append(len(sound.mel))
        return samples

    monkeypatch.setattr(quick_tts._loaded, "step", noted)
    block = fast(10)
    recording = LongRecording("long", 0, lambda: (block for _ in range(3)))
    for first_chunk in (None, 10):
        held.clear()
        options = SpeechOptions(first_chunk=first_chunk, steps=1)
        chunks = [c for c in quick_tts.convert_stepwise(recording, options) if c is not None]
        assert len(chunks) >= 8
        assert 2 * 50 <= max(held) <= 2 * 150


def test_a_recording_that_changes_meanwhile_is_told(quick_tts: nightingale.TTS) -> None:
    lengths = iter([3.0, 2.9])
    recording = LongRecording("speech.wav", 0, lambda: iter([fast(next(lengths))]))
    with pytest.raises(nightingale.Error, match=r"speech\.wav changed while it was converted"):
        list(quick_tts.convert_stepwise(recording, SpeechOptions()))


def test_closing_a_stream_ends_the_work(quick_tts: nightingale.TTS, tmp_path: Path) -> None:
    path = tmp_path / "speech.wav"
    soundfile.write(path, fast(40), RATE)
    chunks = quick_tts.convert_stream(path)
    assert len(next(chunks).samples)
    chunks.close()
    with pytest.raises(StopIteration):
        next(chunks)


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (speech(0.19, RATE), "is 0.190 s long; 0.2 s are the least that is converted"),
        (speech(0, RATE), "is 0.000 s long"),
        (1e-4 * speech(2, RATE), "is silent: it never reaches -60 dB of full scale"),
        (np.full((RATE, 1), np.nan, np.float32), "holds samples that are not finite"),
        (2000 * speech(2, RATE), "expected -1 to 1"),
    ],
)
def test_what_cannot_be_converted_is_refused(
    quick_tts: nightingale.TTS, samples: np.ndarray, message: str
) -> None:
    with pytest.raises(ValueError, match=r"^the recording ") as caught:
        quick_tts.convert(samples, sample_rate=RATE)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_recording_of_more_than_a_day_is_refused(
    quick_tts: nightingale.TTS, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversion, "MOST_SECONDS", 1)
    with pytest.raises(ValueError, match="longer than 1 s, the most that is converted"):
        quick_tts.convert(SHORT, sample_rate=RATE)


def test_what_is_no_recording_is_refused_at_the_call(
    quick_tts: nightingale.TTS, tmp_path: Path
) -> None:
    text = tmp_path / "text.wav"
    text.write_text("This is no sound.")
    for source, message in (
        (text, "damaged or not audio"),
        (tmp_path / "none.wav", "there is no file"),
        (tmp_path, "is a folder"),
    ):
        with pytest.raises(nightingale.Error, match=message):
            quick_tts.convert_stream(source)
    with pytest.raises(ValueError, match="needs its sample_rate"):
        quick_tts.convert_stream(SHORT)
    with pytest.raises(ValueError, match="unknown voice 'nobody'"):
        quick_tts.convert_stream(SHORT, sample_rate=RATE, voice="nobody")
    voice = nightingale.Voice(np.zeros(256, np.float32))
    with pytest.raises(ValueError, match="no prompt_token, which synthesis needs"):
        quick_tts.convert_stream(SHORT, sample_rate=RATE, voice=voice)


def test_options_that_change_nothing_are_refused_by_name(quick_tts: nightingale.TTS) -> None:
    used = "its options are voice, seed, speed, steps"
    for name, value in {"temperature": 0.8, "language": "fr", "first_chunk": 10}.items():
        with pytest.raises(ValueError, match=rf"convert\(\) has no use for {name}: .*{used}$"):
            quick_tts.convert(SHORT, sample_rate=RATE, **{name: value})
    with pytest.raises(ValueError, match="no use for cfg_weight"):
        quick_tts.convert(SHORT, SpeechOptions(cfg_weight=0.3), sample_rate=RATE)
    with pytest.raises(ValueError, match="no use for max_tokens"):
        quick_tts.convert_stream(SHORT, sample_rate=RATE, max_tokens=5)
    with pytest.raises(TypeError, match="no option 'sped'; did you mean 'speed'"):
        quick_tts.convert(SHORT, sample_rate=RATE, sped=2)
    with pytest.raises(ValueError, match=r"speed must be between 0\.25 and 4"):
        quick_tts.convert(SHORT, sample_rate=RATE, speed=5)
