"""Several texts at once, and streams of an event loop: the same tokens and audio as one by one."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import hashlib
import itertools
import json
import random
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

import nightingale
from nightingale.batch import LineSpeaker
from nightingale.options import LoadOptions
from nightingale.speaking_together import in_turns

TEXTS = ["One is said.", "Two is said, at more length.", "Three.", "Four is the last one."]
SETTINGS = {"max_tokens": 14, "steps": 2}


@pytest.fixture(scope="module")
def alone(quick_tts: nightingale.TTS) -> dict[tuple[str, int], nightingale.Audio]:
    return {
        (text, seed): quick_tts.generate(text, seed=seed, **SETTINGS)
        for text in TEXTS
        for seed in range(3)
    }


def assert_same(found: nightingale.Audio, expected: nightingale.Audio) -> None:
    np.testing.assert_array_equal(found.tokens, expected.tokens)
    np.testing.assert_array_equal(found.samples, expected.samples)
    assert found.words == expected.words


def test_a_batch_has_the_audio_of_each_text(
    quick_tts: nightingale.TTS, alone: dict[tuple[str, int], nightingale.Audio]
) -> None:
    model = quick_tts._engine._model
    passes, steps = model.t3_passes, model.t3_steps
    texts = [(text, {"seed": seed}) for seed in range(3) for text in TEXTS]
    batch = quick_tts.generate_batch([*texts, TEXTS[0]], **SETTINGS)
    for found, (text, own) in zip(batch, texts, strict=False):
        assert_same(found, alone[text, own["seed"]])
        assert found.text == text
    assert_same(batch[-1], alone[TEXTS[0], 0])
    if quick_tts.info["device"] == "cpu":  # several tokens in a pass
        assert model.t3_steps - steps > 2 * (model.t3_passes - passes)


def test_a_batch_checks_its_texts_first(quick_tts: nightingale.TTS) -> None:
    assert quick_tts.generate_batch([]) == []
    with pytest.raises(ValueError, match="texts must be a list of texts, not one text"):
        quick_tts.generate_batch("Hello.")
    for wrong in (3, ("Hello.", 3), ("Hello.",)):
        with pytest.raises(ValueError, match=r"texts\[1\] must be a text, or a text and a dict"):
            quick_tts.generate_batch(["Hello.", wrong])
    with pytest.raises(TypeError, match="no option 'sed'; did you mean 'seed'"):
        quick_tts.generate_batch([("Hello.", {"sed": 1})])
    with pytest.raises(ValueError, match="speed"):
        quick_tts.generate_batch(["Hello."], speed=9)


def test_works_take_turns_and_few_run_at_once() -> None:
    running: set[int] = set()
    most = 0

    def begin(number: int) -> Iterator[int | None]:
        nonlocal most
        running.add(number)
        most = max(most, len(running))
        return work(number)

    def work(number: int) -> Iterator[int | None]:
        for step in range(number % 5):
            yield None if step % 2 else number
        running.remove(number)

    found = dict(in_turns(partial(begin, n) for n in range(30)))
    assert found == {n: [n] * ((n % 5 + 1) // 2) for n in range(30)}
    assert most == 8


def test_a_work_that_fails_ends_alone() -> None:
    def begin(number: int) -> Iterator[int | None]:
        if number == 2:
            raise ValueError("two")
        return work(number)

    def work(number: int) -> Iterator[int | None]:
        yield number
        if number == 4:
            raise ValueError("four")
        yield number

    found = dict(in_turns(partial(begin, n) for n in range(6)))
    assert {n: str(error) for n, error in found.items() if not isinstance(error, list)} == {
        2: "two",
        4: "four",
    }
    assert {n: kept for n, kept in found.items() if isinstance(kept, list)} == {
        n: [n, n] for n in (0, 1, 3, 5)
    }


def test_lines_of_a_batch_are_spoken_together(
    quick_checkpoint: Path, quick_tts: nightingale.TTS
) -> None:
    lines = [(text, {"seed": seed, **SETTINGS}) for seed in range(2) for text in TEXTS]
    lines[2][1]["speed"] = 9
    lines[5] = (" ", lines[5][1])
    rows = [
        {"line": n, "request": json.dumps({"text": t, "output": "a.wav", "options": o})}
        for n, (t, o) in enumerate([(t, {**o, "lexicon": None}) for t, o in lines])
    ]
    loading = LoadOptions(device=quick_tts.info["device"])
    speaker = LineSpeaker(str(quick_checkpoint), loading, {}, {})
    made = speaker.speak(rows)
    assert [answer["line"] for answer in made] == list(range(8))
    assert made[2]["error"] == "speed must be between 0.25 and 4.0, not 9.0"
    assert made[5]["error"]
    for number, (text, options) in enumerate(lines):
        if number not in (2, 5):
            audio = quick_tts.generate(text, **options)
            assert made[number]["error"] == ""
            assert made[number]["seconds"] == audio.duration
            content = audio.samples.astype("<f4").tobytes()
            assert made[number]["sha256"] == hashlib.sha256(content).hexdigest()
            assert made[number]["file"].startswith(b"RIFF")
    model = speaker._tts._engine._model
    if quick_tts.info["device"] == "cpu":
        assert model.t3_steps > 2 * model.t3_passes


def compared_at_random(tts: nightingale.TTS, texts: list[str], seeds: range) -> int:
    """Streams that come, stall and are cancelled at random; how many came to their end, each as if
    it were alone."""
    chance = random.Random(5)
    waiting = [(text, seed) for seed in seeds for text in texts]
    running: list[tuple[str, int, Iterator[nightingale.Chunk | None], list[nightingale.Chunk]]] = []
    compared = 0
    while waiting or running:
        if waiting and (not running or chance.random() < 0.05):
            text, seed = waiting.pop()
            steps = tts.stepwise(text, seed=seed, first_chunk=6, **SETTINGS)
            running.append((text, seed, steps, []))
        text, seed, steps, chunks = chosen = chance.choice(running)
        try:
            chunk = next(steps)
        except StopIteration:
            running.remove(chosen)
            alone = list(tts.stream(text, seed=seed, first_chunk=6, **SETTINGS))
            assert len(chunks) == len(alone)
            for one, other in zip(chunks, alone, strict=True):
                np.testing.assert_array_equal(one.tokens, other.tokens)
                np.testing.assert_array_equal(one.samples, other.samples)
            compared += 1
        else:
            chunks += [chunk] if chunk is not None else []
            if chance.random() < 0.01:
                running.remove(chosen)
    return compared


def test_streams_at_random_are_those_alone(quick_tts: nightingale.TTS) -> None:
    assert compared_at_random(quick_tts, TEXTS, range(3)) >= 6


@pytest.mark.nightly
@pytest.mark.parametrize("bits", [None, 8])
def test_many_streams_at_random_are_those_alone(quick_checkpoint: Path, bits: int | None) -> None:
    tts = nightingale.load(quick_checkpoint, bits=bits)
    texts = [f"{TEXTS[n % 4][:-1]} and number {n}." for n in range(200)]
    assert compared_at_random(tts, texts, range(3)) >= 300


def memory_after(tts: nightingale.TTS, streams: int) -> int:
    """MLX's, after so many streams, of which every other one is closed early."""
    for seed in range(streams):
        steps = tts.stepwise(TEXTS[seed % 4], seed=seed, **SETTINGS)
        for _ in itertools.islice(steps, 10 if seed % 2 else None):
            pass
    del steps
    gc.collect()
    return mx.get_active_memory()


def test_memory_does_not_grow_with_streams(quick_tts: nightingale.TTS) -> None:
    first = memory_after(quick_tts, 6)
    assert memory_after(quick_tts, 12) <= first


@pytest.mark.nightly
def test_memory_does_not_grow_with_a_thousand_streams(quick_tts: nightingale.TTS) -> None:
    first = memory_after(quick_tts, 10)
    assert memory_after(quick_tts, 1000) <= first


@pytest.fixture(scope="module")
def caching_tts(quick_checkpoint: Path) -> nightingale.TTS:
    return nightingale.load(quick_checkpoint, cache=10_000_000, device="cpu")


def test_what_was_said_before_is_played_from_the_cache(
    caching_tts: nightingale.TTS, quick_tts: nightingale.TTS
) -> None:
    text = "First it is said. Then it is said again, at more length."
    model = caching_tts._engine._model
    assert_same(caching_tts.generate(text, **SETTINGS), quick_tts.generate(text, **SETTINGS))
    expected = list(quick_tts.stream(text, first_chunk=6, **SETTINGS))
    for _ in range(2):
        found = list(caching_tts.stream(text, first_chunk=6, **SETTINGS))
        assert [chunk.words for chunk in found] == [chunk.words for chunk in expected]
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one.samples, other.samples)
            np.testing.assert_array_equal(one.tokens, other.tokens)
            assert one.text_tokens == other.text_tokens
    passes, counts = model.t3_passes, caching_tts.info["cache"]
    assert_same(caching_tts.generate(text, **SETTINGS), quick_tts.generate(text, **SETTINGS))
    assert model.t3_passes == passes
    assert caching_tts.info["cache"]["hits"] == counts["hits"] + 2
    assert 0 < counts["bytes"] <= counts["limit"] == 10_000_000
    assert quick_tts.info["cache"]["limit"] == 0


def test_another_voice_or_emphasis_is_no_hit(caching_tts: nightingale.TTS) -> None:
    def hits(**options: Any) -> int:
        caching_tts.generate("Who says this?", **SETTINGS | options)
        return int(caching_tts.info["cache"]["hits"])

    before = hits()
    voice = caching_tts._voice(None)
    other = dataclasses.replace(voice, speaker_emb=voice.speaker_emb * 2)
    assert hits(voice=other) == before
    assert hits(exaggeration=0.9) == before
    assert hits(seed=3) == before
    assert hits(speed=1.5) == before
    assert hits(voice=dataclasses.replace(voice)) == before + 1  # the same in another object


def test_a_cache_of_no_bytes_is_refused(quick_checkpoint: Path) -> None:
    with pytest.raises(ValueError, match="cache must be 1 or more"):
        nightingale.load(quick_checkpoint, cache=0)


def test_a_stream_of_an_event_loop_is_that_of_a_thread(quick_tts: nightingale.TTS) -> None:
    text = " ".join(TEXTS)

    async def streamed() -> list[nightingale.Chunk]:
        return [chunk async for chunk in quick_tts.astream(text, first_chunk=6, **SETTINGS)]

    async def several() -> list[list[nightingale.Chunk]]:
        return await asyncio.gather(*(streamed() for _ in range(3)))

    expected = list(quick_tts.stream(text, first_chunk=6, **SETTINGS))
    for found in asyncio.run(several()):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one.samples, other.samples)


def test_cancelling_who_waits_ends_a_stream(quick_tts: nightingale.TTS) -> None:
    async def cancelled() -> None:
        stream = quick_tts.astream("A long text. " * 200)
        task = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)  # it waits; a fast machine has a chunk soon
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await stream.aclose()

    before = threading.active_count()
    asyncio.run(cancelled())  # which waits for its threads
    gc.collect()
    assert threading.active_count() <= before
