"""S3Gen at small size against outputs of the reference that are kept beside this file."""

from __future__ import annotations

import numpy as np
import pytest

import nightingale
from tools.synthetic import write_checkpoint

from . import cases, s3gen_runs
from .test_golden import load

# Rounding alone moves these mels by 3e-5.
GOLDEN_BOUND = 2e-4


@pytest.fixture(scope="module")
def meanflow(tmp_path_factory: pytest.TempPathFactory, device: str) -> nightingale.TTS:
    folder = tmp_path_factory.mktemp("meanflow") / "checkpoint"
    write_checkpoint(folder, meanflow=True)
    return nightingale.load(folder, device=device)


@pytest.fixture(scope="module")
def legacy(tmp_path_factory: pytest.TempPathFactory, device: str) -> nightingale.TTS:
    """The same model in a safetensors file with the older names of weight norm."""
    folder = tmp_path_factory.mktemp("legacy") / "checkpoint"
    write_checkpoint(folder, model="english", legacy_weight_norm=True)
    return nightingale.load(folder, device=device)


@pytest.mark.slow
@pytest.mark.parametrize("index", range(len(cases.MEL_CORNERS)))
def test_mels_equal_the_reference(tts: nightingale.TTS, index: int) -> None:
    run = cases.MEL_CORNERS[index]
    found = s3gen_runs.mel(tts, cases.mel_case(run, index))
    assert found.shape == (80, run.frames)
    s3gen_runs.assert_same_mel(found, load("mel")[f"{index}/mel"], str(run), GOLDEN_BOUND)


@pytest.mark.parametrize("index", range(len(cases.MEANFLOW_RUNS)))
def test_meanflow_mels_equal_the_reference(meanflow: nightingale.TTS, index: int) -> None:
    run = cases.MEANFLOW_RUNS[index]
    found = s3gen_runs.mel(meanflow, cases.mel_case(run, index))
    expected = load("mel")[f"meanflow{index}/mel"]
    s3gen_runs.assert_same_mel(found, expected, str(run), GOLDEN_BOUND)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_three_tokens_or_fewer_of_an_unfinished_utterance_give_no_frames(
    tts: nightingale.TTS, count: int
) -> None:
    tokens = cases.mel_case(cases.MelRun(10))["tokens"][:count]
    found = tts.mel(tokens, finalize=False)
    assert found.shape == (80, 0)
    assert found.dtype == np.float32


@pytest.mark.parametrize("frames", cases.VOCODER_FRAMES)
def test_audio_equals_the_reference(tts: nightingale.TTS, frames: int) -> None:
    found = s3gen_runs.vocode(tts, cases.vocoder_case(frames))
    assert len(found) == cases.FRAME_SAMPLES * frames
    expected = load("vocoder")[f"{frames}/audio"]
    s3gen_runs.assert_same_audio(found, expected, f"{frames} frames")


def test_f0_equals_the_reference(tts: nightingale.TTS) -> None:
    for frames in cases.VOCODER_FRAMES:
        expected = load("vocoder")[f"{frames}/f0"]
        found = s3gen_runs.f0(tts, cases.vocoder_case(frames)["mel"])
        s3gen_runs.assert_same_f0(found, expected, f"{frames} frames")
    s3gen_runs.assert_varied_f0(load("vocoder")["60/f0"], "60 frames")


def test_older_names_of_weight_norm_are_the_same_model(
    tts: nightingale.TTS, legacy: nightingale.TTS
) -> None:
    case = cases.vocoder_case(7)
    found = s3gen_runs.vocode(legacy, case)
    np.testing.assert_array_equal(found, s3gen_runs.vocode(tts, case))
    s3gen_runs.assert_same_audio(found, load("vocoder")["7/audio"], "older names")
    mel_case = cases.mel_case(cases.MEL_CORNERS[2], 2)
    found = s3gen_runs.mel(legacy, mel_case)
    s3gen_runs.assert_same_mel(found, load("mel")["2/mel"], "older names", GOLDEN_BOUND)
