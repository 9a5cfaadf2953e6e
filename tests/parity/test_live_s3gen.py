"""S3Gen compared with the reference itself, where it is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import nightingale
from tools.reference.client import run_reference
from tools.synthetic import write_checkpoint

from . import cases, s3gen_runs
from .live import needs_reference

pytestmark = needs_reference

LIVE_MELS = range(len(cases.MEL_CORNERS), len(cases.MEL_CORNERS) + 12)
FULL_RUNS = [
    cases.MelRun(tokens, finalize) for tokens in (1, 10, 100, 400) for finalize in (True, False)
]
TURBO_RUNS = [
    *(cases.MelRun(tokens, steps=2) for tokens in (1, 10, 100, 400)),
    cases.MelRun(100, finalize=False, steps=2),
]
SHORT_CLIP, LONG_CLIP = 200, 600  # frames: 4 s and 12 s


@pytest.fixture(scope="module")
def full_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("full") / "checkpoint"
    write_checkpoint(folder, size="full")
    return folder


def compare_mels(folder: Path, runs: list[cases.MelRun], device: str) -> None:
    """Every run's mel must be the reference's from the same noise; it cannot give 0 frames."""
    flows = {str(run): cases.mel_case(run, "live") for run in runs}
    jobs: list[dict[str, Any]] = [
        {"name": str(run), "kind": "mel", "folder": folder, **flows[str(run)]}
        for run in runs
        if run.frames
    ]
    expected = run_reference(jobs)
    tts = nightingale.load(folder, device=device)
    for run in runs:
        found = s3gen_runs.mel(tts, flows[str(run)])
        if run.frames:
            s3gen_runs.assert_same_mel(found, expected[f"{run}/mel"], str(run))
        else:
            assert found.shape == (80, 0), str(run)


def compare_audio(folder: Path, mels: dict[str, Any], device: str) -> None:
    """Audio and F0 of each clip; over 4 s the reference's phases are summed in double."""
    clips = {}
    for name, mel in mels.items():
        clips[name] = cases.vocoder_case(mel.shape[1], name) | {"mel": mel}
    jobs = [
        {
            "name": name,
            "kind": "vocode",
            "folder": folder,
            "double_phase": clip["mel"].shape[1] > SHORT_CLIP,
            **clip,
        }
        for name, clip in clips.items()
    ]
    expected = run_reference(jobs)
    tts = nightingale.load(folder, device=device)
    for name, clip in clips.items():
        f0 = expected[f"{name}/f0"]
        s3gen_runs.assert_varied_f0(f0, name)
        s3gen_runs.assert_same_f0(s3gen_runs.f0(tts, clip["mel"]), f0, name)
        s3gen_runs.assert_same_audio(s3gen_runs.vocode(tts, clip), expected[f"{name}/audio"], name)


def clips_of(folder: Path) -> dict[str, Any]:
    """Mels to vocode: drawn ones of 4 and 12 s, and the flow's own of 2 s."""
    flow = {"name": "flow", "kind": "mel", "folder": folder}
    flow |= cases.mel_case(cases.MelRun(50), "clip")
    return {
        "4 s": cases.vocoder_case(SHORT_CLIP)["mel"],
        "12 s": cases.vocoder_case(LONG_CLIP)["mel"],
        "the flow's own": run_reference([flow])["flow/mel"],
    }


def test_mels_equal_the_reference(checkpoint: Path, device: str) -> None:
    compare_mels(checkpoint, [cases.mel_run(i) for i in LIVE_MELS], device)


def test_meanflow_mels_equal_the_reference(tmp_path: Path, device: str) -> None:
    write_checkpoint(tmp_path / "model", meanflow=True)
    runs = [cases.MelRun(tokens, steps=steps) for tokens, steps in ((30, 2), (5, 1), (60, 4))]
    compare_mels(tmp_path / "model", runs, device)


def test_audio_equals_the_reference(checkpoint: Path, device: str) -> None:
    compare_audio(checkpoint, clips_of(checkpoint), device)


@pytest.mark.full_size
def test_full_size_mels_equal_the_reference(full_checkpoint: Path, device: str) -> None:
    compare_mels(full_checkpoint, FULL_RUNS, device)


@pytest.mark.full_size
def test_full_size_audio_equals_the_reference(full_checkpoint: Path, device: str) -> None:
    compare_audio(full_checkpoint, clips_of(full_checkpoint), device)


@pytest.mark.full_size
def test_full_size_turbo_mels_equal_the_reference(tmp_path: Path, device: str) -> None:
    write_checkpoint(tmp_path / "turbo", size="full", model="turbo")
    compare_mels(tmp_path / "turbo", TURBO_RUNS, device)
