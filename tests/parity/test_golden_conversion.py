"""Voice conversion at small size against the reference's, which is kept beside this file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nightingale

from . import conversion_cases, voice_cases
from .test_golden import load


@pytest.mark.parametrize("case", conversion_cases.SHORT, ids=lambda case: case.name)
def test_a_conversion_equals_the_reference(
    tts: nightingale.TTS, case: voice_cases.MadeUp, tmp_path: Path
) -> None:
    golden = load("conversion")
    tokens, mel = conversion_cases.converted(tts, case.write(tmp_path))
    kept = np.ascontiguousarray(voice_cases.kept_frames(mel.T).T)
    expected = {name: golden[f"{case.name}/{name}"] for name in ("tokens", "mel")}
    conversion_cases.assert_same((tokens, kept), expected)


def test_the_tokens_of_a_long_recording_equal_the_reference(
    tts: nightingale.TTS, tmp_path: Path
) -> None:
    case = conversion_cases.LONG
    expected = load("conversion")[f"{case.name}/tokens"]
    assert len(expected) == 825
    found = conversion_cases.tokens_of(tts, case.write(tmp_path))
    np.testing.assert_array_equal(found, expected)
