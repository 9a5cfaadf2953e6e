"""Pauses that would add up to hours of silence."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import nightingale
from nightingale.text import Segment, prepare

from ..process import peak_resident, resident
from ..serving import Running, serving

MARK = "[pause 30s]"
SECOND = 24000  # samples
MOST_GROWTH = 300_000_000  # bytes


@pytest.mark.parametrize("between", ["", " ", "\n\n", " ... "])
def test_pauses_in_a_row_are_30_s_at_most(between: str) -> None:
    after = prepare("Hi." + between.join(909 * [MARK]))
    assert [segment.pause for segment in after] == [30.0]
    before = prepare(between.join(909 * [MARK]) + "Hi.")
    assert before[0] == Segment("", 30.0, "cut")
    assert sum(segment.pause for segment in before) == 30.0


def test_what_is_spoken_between_pauses_parts_them() -> None:
    found = prepare(f"One. {MARK} Two. {MARK}{MARK} Three.")
    assert [segment.pause for segment in found] == [30.0, 30.0, 0.0]


def test_a_long_pause_comes_in_chunks_of_a_second(quick_tts: nightingale.TTS) -> None:
    text = f"{MARK} Hi. [pause 2500ms]"
    chunks = list(quick_tts.stream(text, seed=3))
    said = np.concatenate([chunk.samples for chunk in quick_tts.stream("Hi.", seed=3)])
    assert all(len(chunk.samples) <= SECOND for chunk in chunks[:30])
    assert not any(chunk.samples.any() for chunk in chunks[:30])
    assert [len(chunk.samples) for chunk in chunks[-2:]] == [SECOND, SECOND // 2]
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    samples = np.concatenate([chunk.samples for chunk in chunks])
    assert len(samples) == 30 * SECOND + len(said) + round(2.5 * SECOND)
    whole = quick_tts.generate(text, seed=3)
    assert len(whole.samples) == len(samples)
    assert not whole.samples[: 30 * SECOND].any()


@pytest.fixture(scope="module")
def server(quick_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(quick_checkpoint, tmp_path_factory.mktemp("voices")) as running:
        yield running


@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells of a process")
@pytest.mark.parametrize("settings", [{"response_format": "wav"}, {"stream_format": "sse"}])
def test_a_request_full_of_pauses_takes_little_memory(
    server: Running, settings: dict[str, str]
) -> None:
    server.speech("Hi.", **settings)
    pid = server.process.pid
    idle = resident(pid)
    answer = server.speech("Hi." + 300 * MARK + " Ho." + 300 * MARK, **settings)
    assert answer.status_code == 200
    grown = peak_resident(pid) - idle
    print(f"{grown / 1e6:.0f} MB above {idle / 1e6:.0f} MB")
    assert grown < MOST_GROWTH
    if "response_format" in settings:
        assert 60 * 2 * SECOND < len(answer.content) < 70 * 2 * SECOND
