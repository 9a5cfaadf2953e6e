"""Voices of Debian's speech synthesisers, baked by the reference itself and by Nightingale."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nightingale
from nightingale.loudness import integrated_loudness
from tools.reference.client import run_reference
from tools.synthetic import write_checkpoint

from . import voice_cases, voice_runs
from .live import needs_reference

pytestmark = needs_reference

Voices = dict[str, dict[str, np.ndarray]]
Agreements = dict[str, voice_runs.Agreement]


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The recordings whose synthesiser is installed."""
    folder = tmp_path_factory.mktemp("recordings")
    return {spoken.name: spoken.write(folder) for spoken in voice_cases.SPOKEN if spoken.installed}


@pytest.fixture(scope="module")
def full_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("full") / "checkpoint"
    write_checkpoint(folder, size="full")
    return folder


def reference_voices(folder: Path, recordings: dict[str, Path], turbo: bool = False) -> Voices:
    jobs = [
        {"name": name, "kind": "bake", "folder": folder, "recording": path, "turbo": turbo}
        for name, path in recordings.items()
    ]
    voices: Voices = {name: {} for name in recordings}
    for key, value in run_reference(jobs).items():
        name, field = key.split("/")
        voices[name][field] = value
    return voices


def compare(folder: Path, recordings: dict[str, Path], device: str) -> Agreements:
    """Every recording's voice beside the reference's, once those are found to differ enough."""
    expected = reference_voices(folder, recordings)
    voice_runs.assert_varied(expected)
    tts = nightingale.load(folder, device=device)
    return {
        name: voice_runs.agreement(tts.bake_voice(path), expected[name])
        for name, path in recordings.items()
    }


@pytest.fixture(scope="module")
def small(checkpoint: Path, recordings: dict[str, Path], device: str) -> Agreements:
    return compare(checkpoint, recordings, device)


@pytest.fixture(scope="module")
def full(full_checkpoint: Path, recordings: dict[str, Path], device: str) -> Agreements:
    return compare(full_checkpoint, recordings, device)


@pytest.mark.parametrize(
    ("agreements", "spoken"),
    [
        pytest.param(size, spoken, marks=marks, id=f"{spoken.name}, {size}")
        for size, marks in (("small", ()), ("full", pytest.mark.full_size))
        for spoken in voice_cases.SPOKEN
    ],
)
def test_a_voice_equals_the_reference(
    agreements: str, spoken: voice_cases.Spoken, request: pytest.FixtureRequest
) -> None:
    if not spoken.installed:
        pytest.skip(f"{spoken.command[0]} is not installed")
    found = request.getfixturevalue(agreements)[spoken.name]
    voice_runs.assert_same_voice(found, spoken.name)


@pytest.mark.parametrize("agreements", ["small", pytest.param("full", marks=pytest.mark.full_size)])
def test_tokens_equal_the_reference(agreements: str, request: pytest.FixtureRequest) -> None:
    if not any(spoken.installed for spoken in voice_cases.SPOKEN):
        pytest.skip("no speech synthesiser is installed: espeak-ng, flite or text2wave")
    voice_runs.assert_same_tokens(request.getfixturevalue(agreements))


def test_an_english_checkpoint_bakes_the_same_voice(
    checkpoints: Path, tmp_path: Path, device: str
) -> None:
    """Its files are safetensors, and have no mel filters in them."""
    recordings = {"short": voice_cases.KEPT[1].write(tmp_path)}
    expected = reference_voices(checkpoints / "english", recordings)["short"]
    tts = nightingale.load(checkpoints / "english", device=device)
    found = voice_runs.agreement(tts.bake_voice(recordings["short"]), expected)
    voice_runs.assert_same_voice(found, "english")
    voice_runs.assert_same_tokens({"english": found})


LOUD_AND_QUIET = (
    voice_cases.MadeUp("long", 17.0, 24_000, 1, pitch=130.0),
    voice_cases.KEPT[0],
    voice_cases.KEPT[2],
)


@pytest.mark.parametrize("size", ["small", pytest.param("full", marks=pytest.mark.full_size)])
def test_a_voice_of_turbo_equals_the_reference(size: str, tmp_path: Path, device: str) -> None:
    """375 tokens of prompt, at -27 LUFS."""
    folder = tmp_path / "turbo"
    write_checkpoint(folder, size=size, model="turbo")
    recordings = {each.name: each.write(tmp_path) for each in LOUD_AND_QUIET}
    expected = reference_voices(folder, recordings, turbo=True)
    assert [len(voice["cond_prompt_speech_tokens"]) for voice in expected.values()] == [
        375,
        300,
        175,
    ]
    tts = nightingale.load(folder, device=device)
    found = {
        name: voice_runs.agreement(tts.bake_voice(path), expected[name])
        for name, path in recordings.items()
    }
    for name, agreement in found.items():
        voice_runs.assert_same_voice(agreement, name)
    voice_runs.assert_same_tokens(found)


def test_loudness_equals_that_of_the_reference_s_meter() -> None:
    rng = np.random.default_rng(0)
    noise = rng.standard_normal(61 * 24_000)
    shapes = {
        "steady": np.ones_like(noise),
        "gated": np.arange(len(noise)) % 48_000 < 24_000,
        "fading": np.exp(-np.arange(len(noise)) / 120_000),
        "very quiet": np.full_like(noise, 2e-4),
        "inaudible": np.full_like(noise, 1e-6),
    }
    sounds = {
        f"{name}, {seconds} s": (0.1 * noise * shape)[: round(seconds * 24_000)].astype(np.float32)
        for name, shape in shapes.items()
        for seconds in (0.4, 5.03, 61)
    }
    jobs = [
        {"name": name, "kind": "loudness", "samples": samples, "rate": 24_000}
        for name, samples in sounds.items()
    ]
    expected = run_reference(jobs)
    for name, samples in sounds.items():
        found = integrated_loudness(samples, 24_000)
        np.testing.assert_allclose(found, expected[f"{name}/lufs"], atol=1e-4, err_msg=name)
    assert expected["inaudible, 61 s/lufs"] == -np.inf
