"""Checkpoints whose voice has the official length: the golden files were made with it."""

from __future__ import annotations

from pathlib import Path

import pytest

import nightingale
from tools.synthetic import write_checkpoint


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with small synthetic checkpoints: multilingual, multilingual-v3, english."""
    root = tmp_path_factory.mktemp("checkpoints")
    for model in ("multilingual", "multilingual-v3", "english"):
        write_checkpoint(root / model, model=model)
    return root


@pytest.fixture(scope="session")
def checkpoint(checkpoints: Path) -> Path:
    return checkpoints / "multilingual"


@pytest.fixture(scope="session")
def tts(checkpoint: Path, device: str) -> nightingale.TTS:
    return nightingale.load(checkpoint, device=device)
