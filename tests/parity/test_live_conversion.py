"""Recordings that the reference itself and Nightingale convert, some of speech synthesisers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nightingale
from tools.reference.client import run_reference
from tools.synthetic import write_checkpoint

from . import conversion_cases, voice_cases
from .live import needs_reference

pytestmark = needs_reference

# Of the spoken ones the shortest, as each is solved twice.
SHORT = ("flite kal", "espeak french")


def compare(folder: Path, place: Path, device: str) -> None:
    cases: list[voice_cases.Spoken | voice_cases.MadeUp] = [
        case for case in voice_cases.SPOKEN if case.name in SHORT and case.installed
    ]
    recordings = {case.name: case.write(place) for case in cases or conversion_cases.SHORT}
    long = conversion_cases.LONG
    long_path = long.write(place)
    jobs = conversion_cases.jobs(folder, recordings, mels=True)
    results = run_reference([*jobs, *conversion_cases.jobs(folder, {long.name: long_path}, False)])
    tts = nightingale.load(folder, device=device)
    for name, path in recordings.items():
        expected = {key: results[f"{name}/{key}"] for key in ("tokens", "mel")}
        conversion_cases.assert_same(conversion_cases.converted(tts, path), expected)
    found = conversion_cases.tokens_of(tts, long_path)
    np.testing.assert_array_equal(found, results[f"{long.name}/tokens"])


def test_a_conversion_equals_the_reference(checkpoint: Path, tmp_path: Path, device: str) -> None:
    compare(checkpoint, tmp_path, device)


@pytest.mark.full_size
def test_a_full_size_conversion_equals_the_reference(tmp_path: Path, device: str) -> None:
    folder = tmp_path / "checkpoint"
    write_checkpoint(folder, size="full")
    compare(folder, tmp_path, device)
