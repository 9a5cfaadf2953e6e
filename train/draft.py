"""A draft for speculative decoding: a small T3 that predicts the draws of a large one.

    python -m train.draft generate MODEL CORPUS GENERATED.npz
    python -m train.draft MODEL CORPUS OUT [--tokens GENERATED.npz] [--layers 2] [--minutes 8]

MODEL is a folder with any T3 and its tokenizer. The first command generates speech tokens for the
texts and voices of the corpus. The second trains the draft on them, on CORPUS/tokens.npz, or on
several such files. Tokens and CORPUS/speakers.npz must come from MODEL's own speech tokenizer and
voice encoder. OUT is a folder that `nightingale.load` accepts as `draft`.
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

from .draft_examples import Texts, write_generated
from .draft_objective import (
    distillation_loss,
    guided_logits,
    log_probabilities,
    same_draws,
    seen_tokens,
    speech_positions,
    tokens_per_pass,
)
from .draft_pruning import (
    check_channels,
    default_layers,
    principal_directions,
    prune_layers,
    reduce_width,
)
from .ema import MovingAverage
from .masking import IGNORED
from .nan_guard import guarded_adamw
from .options import (
    add_bfloat16,
    add_device,
    add_paths,
    add_t3_batches,
    add_time,
    command_parser,
    parse_commands,
    training_schedule,
)
from .schedule import Schedule
from .state import save_stage, write_json
from .t3_checkpoint import SETTINGS_FILE, load_checkpoint, load_t3
from .t3_examples import T3Batch, batch_loader
from .t3_generation import Sampling
from .training import Losses, TrainingStage, log, parameter_count

POSITIONS = 12_288  # of a batch, with padding and voice; each with and without its text
VALIDATION = 64  # rows
GENERATED = {"valid": 2 * VALIDATION, "train": 20_000}  # rows that the model generates
PROPOSED = (1, 3, 7)  # tokens per pass
PEAK_RATE = 5e-4


class Stage(TrainingStage):
    report_first_step = False

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        self.checkpoint = load_checkpoint(options.model)
        self.model = self.checkpoint.model.to(self.device)
        self.sampling = Sampling(repetition_penalty=self.checkpoint.repetition_penalty)
        self.loader, self.valid = self._examples()
        self.draft = self._draft().to(self.device).train()
        self.ema = MovingAverage(self.draft)
        self.parameters = list(self.draft.parameters())
        self.optimizer = guarded_adamw(self.parameters, self.device)

    def _draft(self) -> nn.Module:
        """Pruned from the model, or loaded from a file."""
        options, size = self.options, self.model.size
        if options.resume:
            return load_t3(options.resume).requires_grad_(True)
        layers = options.layers or default_layers(size.layers)
        draft = prune_layers(self.model, layers, options.ffn or size.ffn).to(self.device)
        if options.hidden:
            check_channels(options.hidden, size.hidden)
            batch = self.valid[-1].to(self.device)
            draft = reduce_width(draft, principal_directions(draft, batch, options.hidden))
        return draft.requires_grad_(True)

    def _examples(self) -> tuple[DataLoader, list[T3Batch]]:
        options = self.options
        texts = Texts(options.corpus, self.checkpoint, speakers_of(options))
        files = options.tokens or [options.corpus / "tokens.npz"]
        train = texts.examples([texts.speech(file, "train") for file in files], augment=True)
        # Validates with the last file: the model's own speech if there is any.
        speech = texts.speech(files[-1], "valid")
        valid = texts.examples([speech], augment=False)
        rng = np.random.default_rng(options.seed)
        places = rng.permutation(len(speech.rows))[:VALIDATION].tolist()
        places.sort(key=lambda place: len(speech.rows[place].speech))
        batches = [
            valid.collate([valid.example(place) for place in places[i : i + 8]], rng)
            for i in range(0, len(places), 8)
        ]
        on_gpu = self.device.type == "cuda"
        return batch_loader(train, options.batch_positions, options.seed, on_gpu), batches

    def probabilities(self, batch: T3Batch, draft: nn.Module) -> tuple[Tensor, Tensor]:
        """log_probabilities of the model and of a draft, for every token of the batch"""
        # Found on the CPU, where the batch is: on the device this would be a host sync.
        positions = speech_positions(batch).to(self.device, non_blocking=True)
        batch = batch.to(self.device)
        seen = seen_tokens(batch.targets, positions, self.model.size.speech_vocabulary)
        with self.autocast():
            with torch.no_grad():
                model = guided_logits(self.model, batch, positions, self.sampling.cfg_weight)
            ours = guided_logits(draft, batch, positions, self.sampling.cfg_weight)
        sampling = self.sampling
        return log_probabilities(model, seen, sampling), log_probabilities(ours, seen, sampling)

    def train(self) -> bool:
        log(
            f"draft: {self.draft.size.layers} layers of {self.model.size.layers}, "
            f"{parameter_count(self.draft):,} parameters of {parameter_count(self.model):,}"
        )
        if self.options.compile:
            for network in (self.draft, self.model):
                for layer in network.tfmr.layers:
                    layer.compile(dynamic=True)
        self.report(Schedule(steps=1), {})  # the untrained draft
        self.batches = iter(self.loader)
        return super().train()

    def step(self, schedule: Schedule) -> Losses:
        found = self.probabilities(next(self.batches), self.draft)
        loss = distillation_loss(*found, self.sampling.min_p)
        rate = schedule.learning_rate(self.options.learning_rate)
        self.optimizer.step(loss, rate, self.parameters)
        self.ema.update()
        return {"train_loss": loss}

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """loss: nats per token; accepted: the share of tokens that the averaged draft draws like
        the model; tokens-N: tokens that a pass of the model yields if N are proposed."""
        generator = torch.Generator(self.device).manual_seed(0)
        losses, agree = [], []
        for batch in self.valid:
            found = self.probabilities(batch, self.ema.network)
            counts = (batch.targets != IGNORED).sum(1).tolist()
            losses.append(distillation_loss(*found, self.sampling.min_p) * sum(counts))
            agree += same_draws(*found, self.sampling.min_p, generator).split(counts)
        rows = [row.cpu().numpy() for row in agree]
        every = np.concatenate(rows)
        return {
            "loss": float(sum(losses)) / len(every),
            "accepted": float(every.mean()),
            **{f"tokens-{count}": tokens_per_pass(rows, count) for count in PROPOSED},
        }

    def save(self, schedule: Schedule) -> None:
        """The moving average in float16, with settings that switch off the alignment analyser."""
        facts: dict[str, Any] = {
            "size": asdict(self.draft.size),
            "parameters": parameter_count(self.draft),
            "sampling": asdict(self.sampling),
            "steps": schedule.step,
            "history": self.history,
        }
        out, name = self.options.out, self.checkpoint.name
        save_stage(out, name, self.ema.network.state_dict(), facts, torch.float16)
        settings = {"analyser": False, "alignment_heads": []}
        write_json(out / SETTINGS_FILE, {"t3": settings})


def speakers_of(options: argparse.Namespace) -> Path:
    return options.speakers or options.corpus / "speakers.npz"


def generate_corpus(options: argparse.Namespace) -> None:
    """The command `generate`."""
    torch.manual_seed(options.seed)
    checkpoint = load_checkpoint(options.model)
    checkpoint.model.to(options.device)
    write_generated(
        Texts(options.corpus, checkpoint, speakers_of(options)),
        checkpoint,
        options.tokens or options.corpus / "tokens.npz",
        options.out,
        limits=GENERATED,
        batch_rows=options.batch_rows,
        schedule=training_schedule(options),
        seed=options.seed,
    )


def main(arguments: list[str]) -> None:
    parser = command_parser("draft", __doc__)
    commands = parser.add_subparsers(required=True)
    train = commands.add_parser("train", help="the default command")
    generation = commands.add_parser("generate", help="generates speech tokens for the corpus")
    for command, minutes in ((train, 8.0), (generation, 4.0)):
        add_paths(command, "model", "corpus", "out")
        add_time(command, minutes)
        command.add_argument("--speakers", type=Path, help="default: CORPUS/speakers.npz")
        command.add_argument("--seed", type=int, default=0)
        add_device(command)
    train.add_argument("--tokens", type=Path, nargs="+", help="default: CORPUS/tokens.npz")
    train.add_argument("--layers", type=int, help="default: a fifth of the model's")
    train.add_argument("--hidden", type=int, help="hidden size; default: the model's")
    train.add_argument("--ffn", type=int, help="feed-forward size; default: the model's")
    train.add_argument("--resume", type=Path, help="weights of a draft to continue from")
    add_bfloat16(train)
    add_t3_batches(train, POSITIONS, PEAK_RATE)
    train.set_defaults(run=lambda options: Stage(options).train())
    generation.add_argument(
        "--tokens", type=Path, help="speech tokens of the prompts; default: CORPUS/tokens.npz"
    )
    generation.add_argument("--batch-rows", type=int, default=128, help="rows in a batch")
    generation.set_defaults(run=generate_corpus)
    options = parse_commands(parser, commands.choices, arguments)
    options.run(options)


if __name__ == "__main__":
    main(sys.argv[1:])
