"""The tiny corpus that the tests of all stages train on."""

from __future__ import annotations

import importlib.util
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="package", autouse=True)
def one_thread() -> None:
    """Networks this small are no faster with two threads."""
    if importlib.util.find_spec("torch"):
        import torch

        torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def usual_termination() -> Iterator[None]:
    """Stages install a handler for SIGTERM; restores the default."""
    yield
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


@pytest.fixture(scope="session")
def tiny_corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two minutes of synthetic speech: 120 rows, four voices and one held out."""
    pytest.importorskip("torch")
    from train.corpus import write_synthetic

    folder = tmp_path_factory.mktemp("corpus")
    write_synthetic(folder)
    return folder


@pytest.fixture(scope="session")
def spoken_corpus(tiny_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The synthetic corpus with tokens of its phonemes and a speaker embedding for each voice."""
    import numpy as np

    from train.alignment import frame_phonemes
    from train.data import Corpus

    folder = tmp_path_factory.mktemp("spoken")
    for file in tiny_corpus.iterdir():
        (folder / file.name).symlink_to(file)
    corpus = Corpus(folder, "cpu", "valid")
    rng = np.random.default_rng(0)
    speakers = {voice: rng.random(256) for voice in corpus.voices}
    tokens = []
    for row in corpus.rows:
        heard = frame_phonemes(row.samples // 960, len(row.phonemes), row.durations)
        letters = np.array([ord(letter) for letter in row.phonemes + " "])[heard]
        tokens.append(30 * letters + np.arange(len(letters)) % 2)
    starts = np.cumsum([0, *map(len, tokens)])
    np.savez(folder / "tokens.npz", starts=starts, tokens=np.concatenate(tokens).astype(np.int16))
    np.savez(folder / "speakers.npz", speaker=np.stack([speakers[r.voice] for r in corpus.rows]))
    return folder
