"""Text to sound: whole and in chunks, deterministic, cancelled, from many threads, for long."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import textwrap
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nightingale
from nightingale import _core
from nightingale.engine import FRAME_SAMPLES, Engine

from .folders import with_settings
from .recordings import speech

CROSS_FADE = 480  # samples over which a chunk goes over into the next
TEXT = "The birch canoe slid on the smooth planks. Glue the sheet to the dark blue background!"
SHORT = {"max_tokens": 60, "steps": 2}


def digest(samples: np.ndarray) -> str:
    return hashlib.sha256(samples.tobytes()).hexdigest()


def joined(chunks: list[nightingale.Chunk]) -> tuple[np.ndarray, np.ndarray]:
    return (
        np.concatenate([chunk.samples for chunk in chunks]),
        np.concatenate([chunk.tokens for chunk in chunks]),
    )


def test_generate_gives_all_that_the_contract_names(tts: nightingale.TTS, tmp_path: Path) -> None:
    audio = tts.generate(TEXT, **SHORT)
    assert audio.samples.dtype == np.float32
    assert audio.samples.ndim == 1
    assert np.abs(audio.samples).max() <= 1
    assert audio.sample_rate == 24000
    assert audio.tokens.dtype == np.int32
    assert set(audio.timings) == {"text", "t3", "flow", "vocoder", "total", "ttfa", "rtf"}
    assert audio.timings["total"] >= audio.timings["ttfa"] > 0
    assert audio.timings["rtf"] == pytest.approx(audio.timings["total"] / audio.duration, rel=0.01)
    audio.save(tmp_path / "hello.wav")
    assert (tmp_path / "hello.wav").stat().st_size > 2 * len(audio.samples)


def test_a_repr_says_what_is_loaded(tts: nightingale.TTS, checkpoint: Path, device: str) -> None:
    counts = "1 voice, 23 languages"
    assert repr(tts) == f"TTS(multilingual v2, {str(checkpoint)!r}, {device}, {counts})"


def test_a_repr_of_a_chunk_shows_no_arrays() -> None:
    samples, tokens = np.zeros(12_000, np.float32), np.zeros(12, np.int32)
    assert repr(nightingale.Chunk(samples, tokens, [], 3)) == "Chunk(3, 0.50 s, 12 tokens)"
    words = [nightingale.Word(text, 0.0, 0.1, 0, 5) for text in ("Hello", "there.")]
    told = repr(nightingale.Chunk(samples, tokens, words, 0))
    assert told == "Chunk(0, 0.50 s, 12 tokens, 'Hello there.')"
    assert len(repr(nightingale.Chunk(samples, tokens, words * 900, 0))) < 80


def test_a_sentence_is_its_tokens_its_edges_and_nothing_else(tts: nightingale.TTS) -> None:
    text = "The birch canoe slid on the smooth planks."
    audio = tts.generate(text, seed=4, **SHORT)
    tokens = tts.speech_tokens(text, seed=4, max_tokens=60)
    assert len(tokens) - 3 <= len(audio.tokens) <= len(tokens)
    np.testing.assert_array_equal(audio.tokens, tokens[: len(audio.tokens)])
    whole = tts.synthesize(audio.tokens, steps=2, seed=4).samples
    # Without the last token's 40 ms, and 10 ms of fade before them.
    assert len(audio.samples) == len(whole) - 960
    np.testing.assert_array_equal(audio.samples[:-240], whole[: len(audio.samples) - 240])
    assert np.abs(audio.samples[-2:]).max() < 0.01


def test_speech_is_as_long_as_its_speed_says(quick_tts: nightingale.TTS) -> None:
    lengths = {
        speed: len(quick_tts.generate("Hello there.", seed=4, speed=speed, **SHORT).samples)
        for speed in (1.0, 0.25, 0.5, 1.5, 2.0, 4.0)
    }
    for speed, length in lengths.items():
        assert abs(length - lengths[1.0] / speed) < 250  # half a frame


@pytest.mark.slow
@pytest.mark.parametrize("speed", [1.0, 0.25, 0.75, 1.6, 4.0])
def test_a_stream_is_the_same_speech(tts: nightingale.TTS, speed: float) -> None:
    settings: dict[str, Any] = {"max_tokens": 50, "steps": 1, "seed": 7, "speed": speed}
    audio = tts.generate(TEXT, **settings)
    for chunking in ({}, {"first_chunk": 6, "chunk": 7, "overlap": 3}, {"context": 12}):
        chunks = list(tts.stream(TEXT, **chunking, **settings))
        samples, tokens = joined(chunks)
        np.testing.assert_array_equal(tokens, audio.tokens)
        assert len(samples) == len(audio.samples)
        assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
        assert [word for chunk in chunks for word in chunk.words] == audio.words
        assert len(chunks) > 4
        totals = [chunk.timings["total"] for chunk in chunks]
        assert totals == sorted(totals)
        assert all(chunk.timings["ttfa"] == totals[0] for chunk in chunks)


@pytest.mark.slow
def test_the_first_chunk_comes_long_before_the_rest(tts: nightingale.TTS) -> None:
    chunks = list(tts.stream(TEXT, **SHORT))
    first = len(chunks[0].samples)
    # Ten tokens less the overlap of four, less what fades into the next chunk.
    assert first == 6 * 2 * FRAME_SAMPLES - CROSS_FADE
    # Of the tokens that follow none was made when it came.
    assert chunks[0].timings["t3"] < chunks[-1].timings["t3"]
    assert len(chunks[0].tokens) < sum(len(chunk.tokens) for chunk in chunks) / 2


@pytest.mark.slow
def test_seams_are_no_rougher_than_the_rest(tts: nightingale.TTS) -> None:
    chunks = list(tts.stream(TEXT, seed=2, max_tokens=100, steps=5))
    samples, _ = joined(chunks)
    jumps = np.abs(np.diff(samples))
    seams = np.cumsum([len(chunk.samples) for chunk in chunks])[:-1] - 1
    assert len(seams) >= 6
    assert jumps[seams].max() <= np.quantile(jumps, 0.999)


def test_a_text_shorter_than_a_chunk_is_solved_whole(tts: nightingale.TTS) -> None:
    settings = {"max_tokens": 12, "steps": 2}
    (chunk,) = tts.stream("A short one.", **settings)
    audio = tts.generate("A short one.", **settings)
    assert digest(chunk.samples) == digest(audio.samples)


@pytest.mark.slow
def test_a_stream_waits_for_as_many_tokens_as_the_model_asks(
    checkpoint: Path, tmp_path: Path, tts: nightingale.TTS, device: str
) -> None:
    patient = nightingale.load(
        with_settings(checkpoint, tmp_path, s3gen={"lookahead": 8}), device=device
    )
    settings = {"max_tokens": 17, "steps": 2}
    whole = tts.generate("A short one.", **settings)
    (chunk,) = patient.stream("A short one.", **settings)
    assert digest(chunk.samples) == digest(whole.samples)
    assert len(list(tts.stream("A short one.", **settings))) == 2
    chunks = list(patient.stream(TEXT, **SHORT))
    samples, tokens = joined(chunks)
    audio = tts.generate(TEXT, **SHORT)
    np.testing.assert_array_equal(tokens, audio.tokens)
    assert len(samples) == len(audio.samples)
    assert len(chunks[0].samples) == 6 * 2 * FRAME_SAMPLES - CROSS_FADE


def test_the_flow_sees_as_much_of_a_prompt_as_the_model_asks(
    checkpoint: Path, tmp_path: Path, tts: nightingale.TTS, device: str
) -> None:
    settings = {"max_tokens": 12, "steps": 2}
    voice = tts._voice(None)
    assert voice.prompt_token is not None
    assert voice.prompt_feat is not None
    for most in (0, 5, len(voice.prompt_token) + 1):
        dropped = max(0, len(voice.prompt_token) - most)
        short = replace(
            voice,
            prompt_token=voice.prompt_token[dropped:],
            prompt_feat=voice.prompt_feat[2 * dropped :],
        )
        folder = with_settings(checkpoint, tmp_path / str(most), s3gen={"prompt_tokens": most})
        asked = nightingale.load(folder, device=device)
        expected = tts.generate("A short one.", voice=short, **settings)
        assert digest(asked.generate("A short one.", **settings).samples) == digest(
            expected.samples
        )


def test_the_same_seed_gives_the_same_audio(tts: nightingale.TTS, keep_threads: None) -> None:
    found = set()
    for i in range(10):
        _core.set_threads(1 + i % 2)
        found.add(digest(tts.generate("Once more.", seed=5, max_tokens=25, steps=2).samples))
    assert len(found) == 1
    other = tts.generate("Once more.", seed=6, max_tokens=25, steps=2)
    assert digest(other.samples) not in found


@pytest.mark.slow
def test_the_same_seed_gives_the_same_audio_in_another_process(
    tts: nightingale.TTS, checkpoint: Path, device: str
) -> None:
    settings = {"seed": 9, "max_tokens": 25, "steps": 2}
    program = f"""
        import hashlib, nightingale
        tts = nightingale.load({str(checkpoint)!r}, device={device!r})
        audio = tts.generate("In two processes.", **{settings!r})
        chunks = tts.stream("In two processes.", **{settings!r})
        streamed = b"".join(chunk.samples.tobytes() for chunk in chunks)
        print(hashlib.sha256(audio.samples.tobytes()).hexdigest())
        print(hashlib.sha256(streamed).hexdigest())
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    streamed, _ = joined(list(tts.stream("In two processes.", **settings)))
    whole = tts.generate("In two processes.", **settings).samples
    assert done.stdout.split() == [digest(whole), digest(streamed)]


def test_pauses_and_gaps_are_silence(tts: nightingale.TTS) -> None:
    settings = {"max_tokens": 12, "steps": 1}
    plain = tts.generate("One here. Two there.", **settings)
    paused = tts.generate("One here. [pause 700ms] Two there.", **settings)
    begun = tts.generate("[pause 250ms] One here.", **settings)
    assert not begun.samples[:6000].any()
    silences = [len(run) for run in np.split(paused.samples, np.flatnonzero(paused.samples))]
    assert max(silences) >= 0.7 * 24000
    assert len(paused.samples) >= len(plain.samples)


def test_only_a_pause_is_only_silence(tts: nightingale.TTS) -> None:
    audio = tts.generate("[pause 1s]")
    assert len(audio.samples) == 24000
    assert not audio.samples.any()
    assert len(audio.tokens) == 0


def test_words_have_times_in_order(tts: nightingale.TTS) -> None:
    audio = tts.generate(TEXT, seed=1, max_tokens=100, steps=1)
    words = [word.text for word in audio.words]
    spoken = TEXT.replace(".", "").replace("!", "").split()
    # Made-up weights may stop anywhere, but say the words of a sentence from its beginning.
    assert words[:3] == spoken[:3]
    assert "Glue" in words
    edges = [time for word in audio.words for time in (word.start, word.end)]
    assert edges == sorted(edges)
    assert edges[-1] <= audio.duration + 1e-3


def test_a_model_whose_files_name_no_heads_has_words_in_order(
    checkpoints: Path, device: str
) -> None:
    english = nightingale.load(checkpoints / "english", device=device)
    audio = english.generate("Hello there.", max_tokens=12, steps=1)
    assert [word.text for word in audio.words] == ["Hello", "there"]
    edges = [time for word in audio.words for time in (word.start, word.end)]
    assert edges == sorted(edges)
    assert edges[-1] <= audio.duration + 1e-3


def test_closing_a_stream_ends_the_work(
    tts: nightingale.TTS, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = []
    real = Engine.step

    def counted(engine: Engine, session: Any) -> Any:
        steps.append(1)
        return real(engine, session)

    monkeypatch.setattr(Engine, "step", counted)
    stream = tts.stream(TEXT, max_tokens=100)
    next(stream)
    done = len(steps)
    stream.close()
    assert len(steps) == done
    assert list(stream) == []


def test_an_exception_in_the_middle_leaves_the_engine_usable(
    tts: nightingale.TTS, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = digest(tts.generate("Still here.", **SHORT).samples)

    steps = []
    real = Engine.step

    def interrupted(engine: Engine, session: Any) -> Any:
        steps.append(1)
        if len(steps) > 40:  # it is at the flow then
            raise KeyboardInterrupt
        return real(engine, session)

    with monkeypatch.context() as patched:
        patched.setattr(Engine, "step", interrupted)
        with pytest.raises(KeyboardInterrupt):
            tts.generate("Still here.", **SHORT)
    assert digest(tts.generate("Still here.", **SHORT).samples) == expected


@pytest.mark.slow
def test_threads_share_an_engine(tts: nightingale.TTS) -> None:
    texts = ["First of all.", "Then the second.", "And a third one."]
    expected = [digest(tts.generate(text, max_tokens=20, steps=2).samples) for text in texts]
    found: dict[int, str] = {}

    def speak(i: int) -> None:
        chunks = list(tts.stream(texts[i], max_tokens=20, steps=2, first_chunk=30))
        found[i] = digest(joined(chunks)[0])

    workers = [threading.Thread(target=speak, args=(i,)) for i in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [found[i] for i in range(3)] == expected


def test_a_model_is_used_first_in_another_thread_than_it_was_loaded_in(
    checkpoint: Path, tts: nightingale.TTS, device: str
) -> None:
    recording = speech(2, 24000)
    loaded = nightingale.load(checkpoint, device=device)
    found: list[str] = []

    def speak() -> None:
        voice = loaded.bake_voice(recording, 24000)
        found.append(digest(loaded.generate("Hello.", voice=voice, **SHORT).samples))

    for _ in range(2):
        worker = threading.Thread(target=speak)
        worker.start()
        worker.join()
    expected = tts.generate("Hello.", voice=tts.bake_voice(recording, 24000), **SHORT)
    assert found == [digest(expected.samples)] * 2


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_hundreds_of_utterances_leave_nothing_behind(
    tts: nightingale.TTS,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    pytestconfig: pytest.Config,
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    own = tts._voice(None)
    brief = replace(own, prompt_token=own.prompt_token[:5], prompt_feat=own.prompt_feat[:10])

    def memory() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")

    words = TEXT.split()
    threads = threading.active_count()
    resident = []
    count = 1000 if pytestconfig.getoption("--full") else 150
    for i in range(count):
        text = " ".join(words[: 1 + i % len(words)])
        settings: dict[str, Any] = {"seed": i, "max_tokens": 5 + i % 9, "steps": 1, "voice": brief}
        if i % 3:
            tts.generate(text, **settings)
        else:
            stream = tts.stream(text, first_chunk=5, **settings)
            next(stream)
            stream.close()
        if i % (count // 10) == count // 10 - 1:
            resident.append(memory())
    assert threading.active_count() == threads
    assert os.listdir(tmp_path) == []
    assert max(resident[1:]) <= 1.02 * resident[1]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"speed": 0.2}, "speed must be between 0.25 and 4.0, not 0.2"),
        ({"speed": "fast"}, "speed must be a number, not 'fast'"),
        ({"steps": 0}, "steps must be between 1 and 1000, not 0"),
        ({"seed": -1}, "seed must be between 0"),
        ({"language": "xx"}, "unknown language 'xx'"),
        ({"voice": "nobody"}, "unknown voice 'nobody'"),
        ({"temperature": -1}, "temperature must be 0 or more"),
    ],
)
def test_mistakes_are_told_before_anything_is_made(
    tts: nightingale.TTS, settings: dict[str, Any], message: str
) -> None:
    for call in (tts.generate, lambda *a, **k: next(iter(tts.stream(*a, **k)))):
        with pytest.raises(ValueError, match=message):
            call("Hello.", **settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"first_chunk": 4}, "first_chunk must be between 5 and 1000, not 4"),
        ({"chunk": 0}, "chunk must be between 1 and 1000, not 0"),
        ({"overlap": 0}, "overlap must be between 1 and 100, not 0"),
        ({"context": 0}, "context must be between 1"),
        ({"speed": 5}, "speed must be between"),
    ],
)
def test_a_stream_s_mistakes_are_told_at_the_call(
    tts: nightingale.TTS, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        tts.stream("Hello.", **settings)


def test_a_voice_without_a_flow_s_side_is_told_at_the_call(tts: nightingale.TTS) -> None:
    half = replace(tts._voice(None), prompt_feat=None)
    with pytest.raises(ValueError, match="the voice has no prompt_feat"):
        tts.stream("Hello.", voice=half)


def test_an_empty_text_is_refused(tts: nightingale.TTS) -> None:
    for text in ("", "  \n"):
        with pytest.raises(ValueError, match="there is no text to speak"):
            tts.generate(text)


@pytest.mark.slow
def test_sentences_spoken_together_sound_as_if_alone(
    quick_tts: nightingale.TTS, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "One is said. [pause 100ms] Two is said, at more length. " + "\n\nMore." * 9
    together = quick_tts.generate(text, max_tokens=12)
    monkeypatch.setattr(Engine, "speaks_together", False)
    alone = quick_tts.generate(text, max_tokens=12)
    np.testing.assert_array_equal(together.tokens, alone.tokens)
    np.testing.assert_array_equal(together.samples, alone.samples)
    assert together.words == alone.words


@pytest.mark.slow
def test_generate_speaks_later_sentences_along_and_a_stream_does_not(
    quick_tts: nightingale.TTS, monkeypatch: pytest.MonkeyPatch
) -> None:
    most: list[int] = []
    plain = Engine.step

    def count(self: Engine, session: _core.Session) -> _core.SpokenChunk | None:
        most.append(session.speaking - 1)
        return plain(self, session)

    monkeypatch.setattr(Engine, "step", count)
    text = "A word is said.\n\n" * 10
    list(quick_tts.stream(text, max_tokens=8))
    assert set(most) == {0}
    most.clear()
    quick_tts.generate(text, max_tokens=8)
    assert (most[0], most[-1]) == (7, 0)
