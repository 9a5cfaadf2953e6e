"""The tiny corpus that the tests of every stage train on."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def tiny_corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two minutes of the stand-in's sound: 120 rows, four voices and one held out."""
    pytest.importorskip("torch")
    from train.corpus import write_tiny

    folder = tmp_path_factory.mktemp("corpus")
    write_tiny(folder)
    return folder
