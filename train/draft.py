"""A draft for speculative decoding: a small T3 that draws what a large one would draw.

    python -m train.draft speak MODEL CORPUS SPOKEN.npz
    python -m train.draft MODEL CORPUS OUT [--tokens SPOKEN.npz] [--layers 2] [--minutes 8]

MODEL is a folder with any T3 and its tokenizer. The first command has it say the texts of the
corpus in the corpus's voices, the second teaches the draft on that, or on CORPUS/tokens.npz, or on
several such files. Tokens and CORPUS/speakers.npz must be of MODEL's own tokenizer and voice
encoder. OUT is a folder that `nightingale.load` takes as `draft`.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from .alignment import IGNORED
from .average import Average
from .clock import Clock
from .descent import Descent
from .draft_examples import Texts, write_spoken
from .draft_narrowing import check_channels, narrowed, principal_directions
from .draft_objective import (
    distillation_loss,
    draws_agree,
    guided_logits,
    log_chances,
    seen_before,
    spoken_places,
    tokens_a_round,
)
from .draft_student import begun_from, usual_layers
from .options import add_device, add_time, training_clock
from .state import save_stage, write_json
from .t3_batches import batch_loader
from .t3_checkpoint import SETTINGS_FILE, load_checkpoint, load_t3
from .t3_examples import T3Batch
from .t3_speaking import Sampling

POSITIONS = 12_288  # of a batch, padding and voice included; each with and without its text
VALIDATION = 64  # rows that the draft is judged on
SPOKEN = {"valid": 2 * VALIDATION, "train": 20_000}  # rows that the model is asked to say
PROPOSED = (1, 3, 7)  # tokens a round
PEAK_RATE = 5e-4
LARGEST_GRADIENT = 1.0


class Stage:
    """The model, the draft, and what it learns from and is judged by."""

    def __init__(self, options: argparse.Namespace) -> None:
        torch.manual_seed(options.seed)
        self.options = options
        self.device = torch.device(options.device)
        self.checkpoint = load_checkpoint(options.model)
        self.model = self.checkpoint.model.to(self.device)
        self.sampling = Sampling(repetition_penalty=self.checkpoint.repetition_penalty)
        self.loader, self.valid = self._examples()
        self.draft = self._draft().to(self.device).train()
        self.average = Average(self.draft)
        self.history: list[dict[str, float]] = []

    def _draft(self) -> nn.Module:
        """Begun from the model, or as a file has it."""
        options, size = self.options, self.model.size
        if options.resume:
            return load_t3(options.resume).requires_grad_(True)
        layers = options.layers or usual_layers(size.layers)
        draft = begun_from(self.model, layers, options.ffn or size.ffn).to(self.device)
        if options.hidden:
            check_channels(options.hidden, size.hidden)
            batch = self.valid[-1].to(self.device)
            draft = narrowed(draft, principal_directions(draft, batch, options.hidden))
        return draft.requires_grad_(True)

    def _examples(self) -> tuple[DataLoader, list[T3Batch]]:
        options = self.options
        texts = Texts(options.corpus, self.checkpoint, speakers_of(options))
        files = options.tokens or [options.corpus / "tokens.npz"]
        train = texts.examples([texts.speech(file, "train") for file in files], varied=True)
        # The last file is the one to be judged by: the model's own speech where there is any.
        heard = texts.speech(files[-1], "valid")
        valid = texts.examples([heard], varied=False)
        rng = np.random.default_rng(options.seed)
        places = rng.permutation(len(heard.rows))[:VALIDATION].tolist()
        places.sort(key=lambda place: len(heard.rows[place].speech))
        batches = [
            valid.collate([valid.example(place) for place in places[i : i + 8]], rng)
            for i in range(0, len(places), 8)
        ]
        on_gpu = self.device.type == "cuda"
        return batch_loader(train, options.positions, options.seed, on_gpu), batches

    def _autocast(self) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, self.device.type == "cuda")

    def chances(self, batch: T3Batch, draft: nn.Module) -> tuple[Tensor, Tensor]:
        """Of the model and of a draft, as log_chances has them, for every token of the batch."""
        # Found on the CPU, where the batch comes from: looking for them on the device is to wait.
        spoken = spoken_places(batch).to(self.device, non_blocking=True)
        batch = batch.to(self.device)
        seen = seen_before(batch.targets, spoken, self.model.size.speech_vocabulary)
        with self._autocast():
            with torch.no_grad():
                model = guided_logits(self.model, batch, spoken, self.sampling.cfg_weight)
            ours = guided_logits(draft, batch, spoken, self.sampling.cfg_weight)
        return log_chances(model, seen, self.sampling), log_chances(ours, seen, self.sampling)

    def train(self) -> None:
        options, fused = self.options, self.device.type == "cuda"
        sizes = [sum(weight.numel() for weight in m.parameters()) for m in (self.draft, self.model)]
        print(
            f"draft: {self.draft.size.layers} layers of {self.model.size.layers}, "
            f"{sizes[0]:,} parameters of {sizes[1]:,}",
            flush=True,
        )
        if options.compile:
            for network in (self.draft, self.model):
                for layer in network.tfmr.layers:
                    layer.compile(dynamic=True)
        parameters = list(self.draft.parameters())
        optimiser = torch.optim.AdamW(parameters, betas=(0.9, 0.98), weight_decay=0.01, fused=fused)
        descent = Descent(optimiser, self.device)
        clock = training_clock(options)
        self.report(clock, None)
        for batch in self.loader:
            if not clock.tick():
                break
            loss = distillation_loss(*self.chances(batch, self.draft), self.sampling.min_p)
            rate = clock.learning_rate(options.learning_rate)
            descent.step(loss, rate, parameters, most=LARGEST_GRADIENT)
            self.average.update()
            if clock.due("report", 30):
                self.report(clock, loss)
            if clock.due("save", 120):
                self.save(clock)
        if clock.terminated:
            self.save(clock)  # before judging, for which there may be no time
        self.report(clock, loss)
        self.save(clock)

    @torch.no_grad()
    def judge(self) -> dict[str, float]:
        """loss: nats a token; accepted: the share of tokens that the averaged draft draws as the
        model does; tokens-N: tokens that a pass of the model gives where N are proposed."""
        generator = torch.Generator(self.device).manual_seed(0)
        losses, agree = [], []
        for batch in self.valid:
            found = self.chances(batch, self.average.network)
            counts = (batch.targets != IGNORED).sum(1).tolist()
            losses.append(distillation_loss(*found, self.sampling.min_p) * sum(counts))
            agree += draws_agree(*found, self.sampling.min_p, generator).split(counts)
        rows = [row.cpu().numpy() for row in agree]
        every = np.concatenate(rows)
        return {
            "loss": float(sum(losses)) / len(every),
            "accepted": float(every.mean()),
            **{f"tokens-{count}": tokens_a_round(rows, count) for count in PROPOSED},
        }

    def report(self, clock: Clock, loss: Tensor | None) -> None:
        found = self.judge()
        if loss is not None:
            found = {"train_loss": loss.item(), **found}
        self.history.append({"step": clock.step, "seconds": clock.seconds, **found})
        print(
            f"step {clock.step} {clock.seconds:.0f} s |",
            *(f"{name} {value:.3f}" for name, value in found.items()),
            flush=True,
        )

    def save(self, clock: Clock) -> None:
        """The average, as float16, with settings that keep it from following the text itself."""
        size = self.draft.size
        facts: dict[str, Any] = {
            "size": asdict(size),
            "parameters": sum(weight.numel() for weight in self.draft.parameters()),
            "sampling": asdict(self.sampling),
            "steps": clock.step,
            "history": self.history,
        }
        out, name = self.options.out, self.checkpoint.name
        save_stage(out, name, self.average.network.state_dict(), facts, torch.float16)
        settings = {"analyser": False, "alignment_heads": []}
        write_json(out / SETTINGS_FILE, {"t3": settings})


def speakers_of(options: argparse.Namespace) -> Path:
    return options.speakers or options.corpus / "speakers.npz"


def say(options: argparse.Namespace) -> None:
    """The command `speak`."""
    torch.manual_seed(options.seed)
    checkpoint = load_checkpoint(options.model)
    checkpoint.model.to(options.device)
    write_spoken(
        Texts(options.corpus, checkpoint, speakers_of(options)),
        checkpoint,
        options.tokens or options.corpus / "tokens.npz",
        options.out,
        most=SPOKEN,
        together=options.rows,
        clock=training_clock(options),
        seed=options.seed,
    )


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m train.draft",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True)
    train = commands.add_parser("train", help="the command where none is named")
    speaking = commands.add_parser("speak", help="has the model say the corpus's texts")
    for command, out, minutes in ((train, "a folder", 8.0), (speaking, "an .npz file", 4.0)):
        command.add_argument("model", type=Path, help="a folder with a T3 and its tokenizer")
        command.add_argument("corpus", type=Path)
        command.add_argument("out", type=Path, help=out)
        add_time(command, minutes)
        command.add_argument("--speakers", type=Path, help="default: CORPUS/speakers.npz")
        command.add_argument("--seed", type=int, default=0)
        add_device(command)
    train.add_argument("--tokens", type=Path, nargs="+", help="default: CORPUS/tokens.npz")
    train.add_argument("--layers", type=int, help="default: one for five of the model's")
    train.add_argument("--hidden", type=int, help="channels between layers; default: the model's")
    train.add_argument("--ffn", type=int, help="channels within a layer; default: the model's")
    train.add_argument("--resume", type=Path, help="weights of a draft to go on from")
    train.add_argument("--positions", type=int, default=POSITIONS, help="of a batch")
    train.add_argument("--learning-rate", type=float, default=PEAK_RATE)
    train.add_argument("--compile", action="store_true")
    train.set_defaults(run=lambda options: Stage(options).train())
    speaking.add_argument("--tokens", type=Path, help="of the prompts; default: CORPUS/tokens.npz")
    speaking.add_argument("--rows", type=int, default=128, help="that are said together")
    speaking.set_defaults(run=say)
    if arguments and arguments[0] not in (*commands.choices, "-h", "--help"):
        arguments = ["train", *arguments]
    options = parser.parse_args(arguments)
    options.run(options)


if __name__ == "__main__":
    main(sys.argv[1:])
