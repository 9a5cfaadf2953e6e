"""Recordings to convert, and how near a conversion must come to the reference's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import nightingale
from nightingale.conversion import Converter
from nightingale.long_recording import LongRecording
from nightingale.options import SpeechOptions

from .cases import Draws
from .s3gen_runs import MEL_BOUND, assert_same_mel
from .voice_cases import MadeUp

SHORT = (
    MadeUp("converted", 2.7, 16_000, 1, pitch=180.0),
    MadeUp("converted stereo", 4.1, 44_100, 2, pitch=120.0),
)
# Two windows; the last has 5 s, and the reference keeps all of it.
LONG = MadeUp("converted long", 33.0, 24_000, 1, pitch=140.0)
MOST_FRAMES = 2000  # of prompt and recording


def noise() -> np.ndarray:
    """Of which a conversion uses the first columns."""
    return Draws("conversion noise").normal(1.0, (80, MOST_FRAMES)).astype(np.float32)


def jobs(folder: str | Path, recordings: Mapping[str, Path], mels: bool) -> list[dict[str, Any]]:
    given = {"noise": noise()} if mels else {}
    return [
        {"name": name, "kind": "convert", "folder": folder, "recording": path, **given}
        for name, path in recordings.items()
    ]


def converted(tts: nightingale.TTS, recording: Path) -> tuple[np.ndarray, np.ndarray]:
    """Tokens, and the mel of what `convert` synthesises."""
    tokens = tts.convert(recording, steps=1).tokens
    frames = len(tts._voice(None).prompt_feat) + 2 * len(tokens)
    return tokens, tts.mel(tokens, noise=noise()[:, :frames])


def tokens_of(tts: nightingale.TTS, recording: Path) -> np.ndarray:
    """The speech tokens alone, for recordings that would take long to convert."""
    voice = tts._voice(None)
    options = tts._resolved(SpeechOptions(), voice)
    converter = Converter(tts._engine, LongRecording.of(recording), voice, options)
    hearing = converter._hear_all()
    while True:
        try:
            next(hearing)
        except StopIteration as heard:
            return np.concatenate(list(converter._tokens(heard.value)))


def assert_same(found: tuple[np.ndarray, np.ndarray], expected: Mapping[str, Any]) -> None:
    """expected: what the reference's `convert` gives, its mel as long as the other."""
    tokens, mel = found
    np.testing.assert_array_equal(tokens, expected["tokens"])
    assert len(np.unique(tokens)) > len(tokens) / 2
    assert_same_mel(mel, expected["mel"], "conversion", MEL_BOUND)
