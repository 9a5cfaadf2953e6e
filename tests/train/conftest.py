"""The tiny corpus that the tests of every stage train on, and how many threads they take."""

from __future__ import annotations

import importlib.util
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="package", autouse=True)
def one_thread() -> None:
    """Networks this small are no faster on two, which wait for each other on a busy machine."""
    if importlib.util.find_spec("torch"):
        import torch

        torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def usual_termination() -> Iterator[None]:
    """Stages heed SIGTERM in their own way; the process that tests them is ended by it as ever."""
    yield
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


@pytest.fixture(scope="session")
def tiny_corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two minutes of the stand-in's sound: 120 rows, four voices and one held out."""
    pytest.importorskip("torch")
    from train.corpus import write_tiny

    folder = tmp_path_factory.mktemp("corpus")
    write_tiny(folder)
    return folder
