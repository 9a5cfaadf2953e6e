"""An ear for the flow: it names the phonemes in mel frames, and so tells words that got lost.

python -m train.ear CORPUS OUT [--minutes 2.5]

It writes OUT/ear, by which the flow's distillation is judged and led (train/meanflow.py), and which
no checkpoint has. It hears some noise and other levels besides, so that it is not led astray by
what nobody would hear.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path

import torch
from torch import Tensor

from .alignment import FRAMES_A_TOKEN, IGNORED, Phonemes
from .clock import Clock
from .data import Batch, Corpus, Row, Tokens
from .descent import Descent
from .features import MEL_HOP, mel_24k
from .networks.conformer import FRAMES_PER_TOKEN
from .networks.ear import EAR_SIZES, Ear, EarSize
from .networks.speech_tokenizer import within
from .options import add_training, training_clock
from .passes import one_pass
from .state import load_stage, save_stage
from .surprise import surprise

STAGE = "ear"
PEAK_RATE = 1e-3
NOISE = 0.4  # nepers, of the noise on a row, at most
LEVEL = 0.7  # nepers that a row is louder or softer, at most


class Saying:
    """Which phoneme is said in each frame of the rows of a corpus."""

    def __init__(self, rows: list[Row], device: str) -> None:
        self.phonemes = Phonemes(rows)
        each = FRAMES_A_TOKEN / FRAMES_PER_TOKEN
        said = [self.phonemes.heard(row, row.samples // MEL_HOP, each) for row in rows]
        self._said = Tokens.of_rows(said, device)

    def of(self, batch: Batch, count: int, natural: Tensor | None = None) -> Tensor:
        """[B, count] int64, IGNORED past each row's end.

        natural: [B] samples of the rows before they were played faster or slower
        """
        said, counts = self._said.batch(batch.row)
        at = torch.arange(count, device=said.device).expand(len(said), -1)
        if natural is not None:
            at = ((at + 0.5) * (natural / batch.samples)[:, None]).long()
        found = said.gather(1, at.clamp_max(said.shape[1] - 1))
        ended = (at >= counts[:, None]) | ~within(batch.samples // MEL_HOP, count)
        return found.masked_fill(ended, IGNORED)


class Stage:
    def __init__(self, options: argparse.Namespace) -> None:
        torch.manual_seed(options.seed)
        self.options = options
        self.corpus = Corpus(options.corpus, options.device)
        self.judged = {part: self.corpus.part(part) for part in ("valid", "unseen")}
        self.saying = Saying(self.corpus.rows, options.device)
        if options.resume:
            self.ear = load_ear(options.resume).train()
        else:
            self.ear = Ear(EAR_SIZES[options.size], self.saying.phonemes.count)
        self.ear.to(options.device)
        self.generator = torch.Generator(options.device).manual_seed(options.seed)
        self.history: list[dict[str, float]] = []

    def train(self) -> None:
        options, device = self.options, torch.device(self.options.device)
        parameters = list(self.ear.parameters())
        optimiser = torch.optim.AdamW(
            parameters, betas=(0.9, 0.98), weight_decay=0.01, fused=device.type == "cuda"
        )
        descent = Descent(optimiser, device)
        given = self.corpus.batches(options.seconds, options.seed)
        playing = torch.Generator().manual_seed(options.seed)
        clock = training_clock(options)
        while clock.tick():
            batch, natural = next(given), None
            if clock.step % 2:
                natural = batch.samples
                batch = self.corpus.vary(batch, playing)
            with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                loss = self.loss(batch, natural)
            descent.step(loss, clock.learning_rate(PEAK_RATE), parameters)
            if clock.step == 1 or clock.due("report", 30):
                self.report(clock, loss)
            if clock.due("save", 120):
                self.save(clock)
        self.report(clock, loss)
        self.save(clock)

    def loss(self, batch: Batch, natural: Tensor | None) -> Tensor:
        mel = mel_24k(batch.wave, batch.samples)
        device, rows = mel.device, (len(mel), 1, 1)
        level = LEVEL * (2 * torch.rand(rows, device=device, generator=self.generator) - 1)
        noise = NOISE * torch.rand(rows, device=device, generator=self.generator)
        mel = mel + level + noise * torch.randn(mel.shape, device=device, generator=self.generator)
        mask = within(batch.samples // MEL_HOP, mel.shape[1])
        said = self.saying.of(batch, mel.shape[1], natural)
        return surprise(self.ear(mel, mask).phonemes, said)

    @torch.no_grad()
    def report(self, clock: Clock, loss: Tensor) -> None:
        at = {"step": clock.step, "seconds": clock.seconds, "loss": loss.item()}
        at |= {part: self._named(corpus) for part, corpus in self.judged.items()}
        self.history.append(at)
        print(*(f"{name} {value:.4g}" for name, value in at.items()), flush=True)

    def _named(self, corpus: Corpus) -> float:
        """The share of the frames of a part whose phoneme is named."""
        right, all_frames = 0, 0
        for batch in one_pass(corpus, self.options.seconds):
            mel = mel_24k(batch.wave, batch.samples)
            mask = within(batch.samples // MEL_HOP, mel.shape[1])
            said = self.saying.of(batch, mel.shape[1])
            right += int((self.ear(mel, mask).phonemes.argmax(-1) == said).sum())
            all_frames += int((said != IGNORED).sum())
        return right / max(1, all_frames)

    def save(self, clock: Clock) -> None:
        facts = {
            **dataclasses.asdict(self.ear.size),
            "phonemes": self.saying.phonemes.inventory,
            "steps": clock.step,
            "hours": self.corpus.hours,
            "history": self.history,
        }
        save_stage(self.options.out, STAGE, self.ear.state_dict(), facts)


def load_ear(path: str | Path) -> Ear:
    """What the stage wrote; it learns no more."""
    tensors, facts = load_stage(path)
    ear = Ear(EarSize(facts["width"], facts["blocks"]), len(facts["phonemes"]))
    ear.load_state_dict(tensors)
    return ear.eval()


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m train.ear")
    add_training(parser, 2.5, EAR_SIZES)
    parser.add_argument("--seconds", type=float, default=400.0, help="of sound a batch")
    Stage(parser.parse_args(arguments)).train()


if __name__ == "__main__":
    main(sys.argv[1:])
