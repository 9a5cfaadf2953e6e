"""A phoneme classifier for mel frames, by which the flow's distillation is validated and guided.

    python -m train.phoneme_classifier CORPUS OUT [--minutes 2.5]

It writes OUT/phoneme_classifier, which is not part of a checkpoint. Noise and level changes in its
training make it ignore inaudible differences (train/meanflow.py).
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path

import torch
from torch import Tensor

from .alignment import TEACHER_FRAMES_PER_TOKEN, PhonemeVocabulary
from .data import Batch, Corpus, Row, Tokens, sorted_batches
from .features import MEL_HOP, mel_24k
from .masking import IGNORED, length_mask, masked_cross_entropy
from .nan_guard import guarded_adamw
from .networks.conformer import FRAMES_PER_TOKEN
from .networks.phoneme_classifier import (
    PHONEME_CLASSIFIER_SIZES,
    PhonemeClassifier,
    PhonemeClassifierSize,
)
from .options import add_batch_seconds, add_training, command_parser
from .schedule import Schedule
from .state import load_stage, save_stage
from .training import Losses, TrainingStage

STAGE = "phoneme_classifier"
PEAK_RATE = 1e-3
NOISE = 0.4  # nepers, maximum of the noise on a row
LEVEL = 0.7  # nepers, maximum change of a row's level


class PhonemeLabels:
    """The phoneme of each mel frame of the rows of a corpus."""

    def __init__(self, rows: list[Row], device: str) -> None:
        self.vocabulary = PhonemeVocabulary(rows)
        frame = TEACHER_FRAMES_PER_TOKEN / FRAMES_PER_TOKEN
        labels = [self.vocabulary.labels(row, row.samples // MEL_HOP, frame) for row in rows]
        self._labels = Tokens.of_rows(labels, device)

    def of(self, batch: Batch, count: int, natural: Tensor | None = None) -> Tensor:
        """[B, count] int64, IGNORED past each row's end.

        natural: [B] samples of the rows before speed perturbation
        """
        labels, counts = self._labels.batch(batch.row)
        at = torch.arange(count, device=labels.device).expand(len(labels), -1)
        if natural is not None:
            at = ((at + 0.5) * (natural / batch.samples)[:, None]).long()
        found = labels.gather(1, at.clamp_max(labels.shape[1] - 1))
        ended = (at >= counts[:, None]) | ~length_mask(batch.samples // MEL_HOP, count)
        return found.masked_fill(ended, IGNORED)


class Stage(TrainingStage):
    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        self.corpus = Corpus(options.corpus, options.device)
        self.validated = {part: self.corpus.part(part) for part in ("valid", "unseen")}
        self.labels = PhonemeLabels(self.corpus.rows, options.device)
        if options.resume:
            self.network = load_phoneme_classifier(options.resume).train()
        else:
            size = PHONEME_CLASSIFIER_SIZES[options.size]
            self.network = PhonemeClassifier(size, self.labels.vocabulary.count)
        self.network.to(options.device)
        self.generator = torch.Generator(options.device).manual_seed(options.seed)
        self.parameters = list(self.network.parameters())
        self.optimizer = guarded_adamw(self.parameters, self.device)
        self.batches = self.corpus.batches(options.batch_seconds, options.seed)
        self.speeds = torch.Generator().manual_seed(options.seed)

    def step(self, schedule: Schedule) -> Losses:
        batch, natural = next(self.batches), None
        if schedule.step % 2:
            natural = batch.samples
            batch = self.corpus.perturb_speed(batch, self.speeds)
        with self.autocast():
            loss = self.loss(batch, natural)
        self.optimizer.step(loss, schedule.learning_rate(PEAK_RATE), self.parameters)
        return {"loss": loss}

    def loss(self, batch: Batch, natural: Tensor | None) -> Tensor:
        mel = mel_24k(batch.wave, batch.samples)
        device, rows = mel.device, (len(mel), 1, 1)
        level = LEVEL * (2 * torch.rand(rows, device=device, generator=self.generator) - 1)
        noise = NOISE * torch.rand(rows, device=device, generator=self.generator)
        mel = mel + level + noise * torch.randn(mel.shape, device=device, generator=self.generator)
        mask = length_mask(batch.samples // MEL_HOP, mel.shape[1])
        labels = self.labels.of(batch, mel.shape[1], natural)
        return masked_cross_entropy(self.network(mel, mask).phonemes, labels)

    def validate(self) -> dict[str, float]:
        return {part: self._accuracy(corpus) for part, corpus in self.validated.items()}

    @torch.no_grad()
    def _accuracy(self, corpus: Corpus) -> float:
        """The share of the frames whose phoneme is classified correctly."""
        correct, total = 0, 0
        for batch in sorted_batches(corpus, self.options.batch_seconds):
            mel = mel_24k(batch.wave, batch.samples)
            mask = length_mask(batch.samples // MEL_HOP, mel.shape[1])
            labels = self.labels.of(batch, mel.shape[1])
            correct += int((self.network(mel, mask).phonemes.argmax(-1) == labels).sum())
            total += int((labels != IGNORED).sum())
        return correct / max(1, total)

    def save(self, schedule: Schedule) -> None:
        facts = {
            **dataclasses.asdict(self.network.size),
            "phonemes": self.labels.vocabulary.inventory,
            "steps": schedule.step,
            "hours": self.corpus.hours,
            "history": self.history,
        }
        save_stage(self.options.out, STAGE, self.network.state_dict(), facts)


def load_phoneme_classifier(path: str | Path) -> PhonemeClassifier:
    """Loads the weights that the stage saved."""
    tensors, facts = load_stage(path)
    size = PhonemeClassifierSize(facts["width"], facts["blocks"])
    network = PhonemeClassifier(size, len(facts["phonemes"]))
    network.load_state_dict(tensors)
    return network.eval()


def main(arguments: list[str]) -> None:
    parser = command_parser(STAGE, __doc__)
    add_training(parser, 2.5, PHONEME_CLASSIFIER_SIZES)
    add_batch_seconds(parser, 400.0)
    Stage(parser.parse_args(arguments)).train()


if __name__ == "__main__":
    main(sys.argv[1:])
