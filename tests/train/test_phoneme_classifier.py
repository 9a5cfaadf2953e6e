"""The phoneme classifier: training, labels with speed perturbation, padding."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from train import phoneme_classifier  # noqa: E402
from train.alignment import IGNORED  # noqa: E402
from train.data import Corpus  # noqa: E402
from train.features import MEL_HOP  # noqa: E402
from train.networks.phoneme_classifier import PHONEME_CLASSIFIER_SIZES, PhonemeClassifier  # noqa: E402


def test_the_classifier_learns_phonemes(tiny_corpus: Path, tmp_path: Path) -> None:
    options = ["--device", "cpu", "--size", "tiny", "--batch-seconds", "12", "--minutes", "1000"]
    phoneme_classifier.main([str(tiny_corpus), str(tmp_path), *options, "--steps", "120"])
    history = json.loads((tmp_path / "phoneme_classifier.json").read_text())["history"]
    assert history[0]["valid"] < 0.3
    assert history[-1]["valid"] > 0.6
    assert history[-1]["unseen"] > 0.4

    resumed = [
        *options,
        "--steps",
        "1",
        "--resume",
        str(tmp_path / "phoneme_classifier.safetensors"),
    ]
    phoneme_classifier.main([str(tiny_corpus), str(tmp_path), *resumed])
    history = json.loads((tmp_path / "phoneme_classifier.json").read_text())["history"]
    assert history[0]["valid"] > 0.5


def test_labels_follow_speed_perturbation(tiny_corpus: Path) -> None:
    corpus = Corpus(tiny_corpus, "cpu")
    saying = phoneme_classifier.PhonemeLabels(corpus.rows, "cpu")
    batch = corpus.row_batch(corpus.members[:6])
    frames = batch.samples // MEL_HOP
    said = saying.of(batch, int(frames.max()))
    varied = corpus.perturb_speed(batch, torch.Generator().manual_seed(1))
    others = varied.samples // MEL_HOP
    found = saying.of(varied, int(others.max()), batch.samples)
    for row, (length, other) in enumerate(zip(frames.tolist(), others.tolist(), strict=True)):
        assert (said[row, length:] == IGNORED).all()
        assert (found[row, other:] == IGNORED).all()
        same = [x.unique_consecutive() for x in (said[row, :length], found[row, :other])]
        torch.testing.assert_close(*same)


def test_predictions_do_not_depend_on_padding() -> None:
    torch.manual_seed(0)
    network = PhonemeClassifier(PHONEME_CLASSIFIER_SIZES["tiny"], 7).eval()
    mel, lengths = torch.randn(2, 40, 80), torch.tensor([40, 25])
    mask = torch.arange(40) < lengths[:, None]
    with torch.no_grad():
        together = network(mel, mask).phonemes[1, :25]
        alone = network(mel[1:, :25], mask[1:, :25]).phonemes[0]
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=0)
