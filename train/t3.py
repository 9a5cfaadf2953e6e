"""Stage 5, T3: speech tokens from text in a voice.

    python -m train.t3 CORPUS OUT --minutes 11 [--extra-corpus FOLDER ...]

Reads OUT/tokens.npz and OUT/speakers.npz, which the speech tokenizer and the speaker encoders
computed from the corpus; writes OUT/t3.safetensors, OUT/t3.json and OUT/text_tokenizer.json: the
weights with the best validation loss. If training continued after them, OUT/t3_last has the last
weights, which may sound better all the same.

T3 needs no audio. An extra corpus is a folder with the index.jsonl of another corpus and its
tokens.npz and speakers.npz, computed by the same tokenizer and encoders.
"""

from __future__ import annotations

import argparse
import copy
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .alignment import PhonemeVocabulary, track_alignment, word_starts
from .data import Corpus, Row, Tokens, load_tokens, split_of
from .ema import MovingAverage
from .masking import IGNORED, masked_cross_entropy
from .nan_guard import guarded_adamw
from .networks.t3 import SIZES, T3, gather_positions, text_attention
from .options import add_t3_batches, add_training, command_parser
from .schedule import Schedule
from .state import load_stage, save_stage, write_json
from .t3_examples import Examples, T3Batch, batch_loader, spoken_rows
from .t3_generation import Sampling, evaluate_generation
from .text_tokenizer import SPACE, tokenizer_json
from .training import Losses, TrainingStage, log, parameter_count

POSITIONS = 32_768  # of a batch, with padding and voice
VALIDATION = 64  # rows that are generated
SMOOTHING = 0.05
PHONEME_LOSS, ALIGNMENT_LOSS = 0.2, 0.2  # weights; that of the speech tokens is 1
EMA_DECAY, EMA_WARM_UP = 0.999, 10
SECONDS_PER_TOKEN = 0.04


@dataclass
class T3Outputs:
    logits: Tensor  # [B, K, speech vocabulary]
    phonemes: Tensor  # [B, K, phonemes]
    attention: Tensor  # [B, heads, K, text], log-attention of the alignment heads to the text


class T3WithPhonemeHead(nn.Module):
    """T3 with a head that is only used in training: it classifies the current phoneme."""

    def __init__(self, model: T3, phonemes: int) -> None:
        super().__init__()
        self.t3 = model
        self.phoneme_head = nn.Linear(model.size.hidden, phonemes)

    def forward(self, batch: T3Batch) -> T3Outputs:
        model = self.t3
        voice = model.voice(batch.speaker, batch.emotion, batch.prompt, batch.prompt_counts)
        trace = model(voice, model.embed(batch.tokens, batch.positions, batch.has_text))
        positions = batch.output_positions + voice.shape[1]
        return T3Outputs(
            model.speech_head(gather_positions(trace.hidden, positions)),
            self.phoneme_head(gather_positions(trace.middle, positions)),
            text_attention(trace, positions, voice.shape[1], batch.text.shape[1]),
        )


def alignment_loss(attention: Tensor, batch: T3Batch) -> Tensor:
    """Cross-entropy of the alignment heads with the share of each speech token's time that belongs
    to each text token.

    attention: [B, heads, K, text], logarithms
    """
    at = torch.arange(attention.shape[2], device=attention.device)[:, None]
    begin, end = batch.boundaries[:, None, :-1], batch.boundaries[:, None, 1:]
    share = (torch.minimum(end, at + 1) - torch.maximum(begin, at)).clamp_min(0)  # [B, K, text]
    share = share * batch.timing_weight[:, None, None] * (batch.targets != IGNORED)[..., None]
    # Past a row's own text the logarithms may be infinite.
    total = -(share[:, None] * attention.masked_fill(share[:, None] == 0, 0)).sum()
    return total / (attention.shape[1] * share.sum()).clamp_min(1)


@dataclass
class TokenizedCorpus:
    """A corpus without its audio."""

    rows: list[Row]
    tokens: Tokens
    speakers: np.ndarray  # [rows, speaker]

    @classmethod
    def load(cls, corpus: Path, tokens: Path, speakers: Path) -> TokenizedCorpus:
        with np.load(speakers) as stored:
            vectors = stored["speaker"].astype(np.float32)
        return cls(Corpus(corpus, "cpu", "valid").rows, load_tokens(tokens), vectors)

    def numbers(self, part: str) -> list[int]:
        return [i for i, row in enumerate(self.rows) if split_of(row.id, row.voice) == part]


class Stage(TrainingStage):
    report_first_step = False

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        self.report_seconds, self.save_seconds = options.validate_every, 4 * options.validate_every
        self.size = SIZES[options.size]
        train, valid = self._read()
        model = T3(self.size, options.dropout)
        if options.resume:
            model.load_state_dict(load_stage(options.resume)[0])
        self.network = T3WithPhonemeHead(model, self.phonemes.count).to(self.device)
        self.ema = MovingAverage(self.network, EMA_DECAY, EMA_WARM_UP)
        self.best = copy.deepcopy(self.ema.network.t3)
        self.parameters = list(self.network.parameters())
        self.optimizer = guarded_adamw(_decay_groups(self.parameters), self.device)
        on_gpu = self.device.type == "cuda"
        self.loader = batch_loader(train, options.batch_positions, options.seed, on_gpu)
        rng = np.random.default_rng(options.seed)
        self.valid = list(valid.batches(options.batch_positions, options.seed))
        chosen = rng.permutation(len(valid.rows))[:VALIDATION]
        self.to_generate = valid.collate([valid.example(int(i)) for i in chosen], rng)
        self.facts: dict[str, Any] = {
            "sizes": asdict(self.size),
            "parameters": parameter_count(model),
            "settings": {
                "analyser": True,
                "alignment_heads": [list(head) for head in self.size.alignment_heads],
                "repetition_penalty": Sampling().repetition_penalty,
                "stop_at_repeat": False,  # repeated tokens are rare and harmless in this model
            },
            "seed": options.seed,
            "steps": 0,
        }

    def _read(self) -> tuple[Examples, Examples]:
        options = self.options
        tokens = options.tokens or options.out / "tokens.npz"
        speakers = options.speakers or options.out / "speakers.npz"
        corpora = [TokenizedCorpus.load(options.corpus, tokens, speakers)]
        for folder in options.extra_corpus:
            files = (folder / "tokens.npz", folder / "speakers.npz")
            corpora.append(TokenizedCorpus.load(folder, *files))
        self.phonemes = PhonemeVocabulary([row for corpus in corpora for row in corpus.rows])

        def examples(part: str, augment: bool) -> Examples:
            rows, vectors = [], []
            for corpus in corpora:
                numbers = corpus.numbers(part)
                rows += spoken_rows(corpus.rows, numbers, corpus.tokens, self.phonemes)
                vectors.append(corpus.speakers[numbers])
            silence = self.phonemes.silence
            return Examples(rows, np.concatenate(vectors), self.size, silence, augment)

        train, valid = examples("train", True), examples("valid", False)
        count = sum(len(row.speech) for row in train.rows)
        repeats = sum(int((row.speech[1:] == row.speech[:-1]).sum()) for row in train.rows)
        timed = np.mean([row.timing_weight == 1 for row in train.rows])
        log(
            f"{len(train.rows)} rows, {count} speech tokens, {len(valid.rows)} validation rows; "
            f"{repeats / count:.1%} of the tokens equal their predecessor, "
            f"{timed:.1%} of the rows have the teacher's durations"
        )
        return train, valid

    def train(self) -> bool:
        options = self.options
        if options.compile:
            for layer in self.network.t3.tfmr.layers:
                layer.compile(dynamic=True)
        log(f"T3 {options.size}: {self.facts['parameters']:,} parameters on {self.device}")
        if options.resume:
            self.facts["valid"] = self.validate()  # the loss to improve on
        self.running_loss = RunningLoss()
        self.batches = iter(self.loader)
        return super().train()

    def step(self, schedule: Schedule) -> Losses:
        batch = next(self.batches)
        loss = self._update(batch.to(self.device), schedule)
        self.running_loss.add(loss, batch)
        return {"loss": loss}

    def _update(self, batch: T3Batch, schedule: Schedule) -> Tensor:
        """Takes a step and returns the loss of the speech tokens."""
        self.network.train()
        with self.autocast():
            outputs = self.network(batch)
            loss = masked_cross_entropy(outputs.logits, batch.targets, SMOOTHING)
            phonemes = masked_cross_entropy(outputs.phonemes, batch.phonemes)
            alignment = alignment_loss(outputs.attention, batch)
        total = loss + PHONEME_LOSS * phonemes + ALIGNMENT_LOSS * alignment
        rate = schedule.learning_rate(self.options.learning_rate)
        self.optimizer.step(total, rate, self.parameters)
        self.ema.update()
        return loss.detach()

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """The averaged model on held-out rows: losses, attention sharpness and word times."""
        sums = dict.fromkeys(("loss", "top1", "phonemes", "line", "sharp"), 0.0)
        errors: list[np.ndarray] = []
        total = 0
        for batch in self.valid:
            batch = batch.to(self.device)
            with self.autocast():
                outputs = self.ema.network(batch)
            mask = batch.targets != IGNORED
            count = int(mask.sum())
            total += count
            attention = outputs.attention.exp().mean(1)
            sums["loss"] += count * float(masked_cross_entropy(outputs.logits, batch.targets))
            sums["top1"] += int((outputs.logits.argmax(-1) == batch.targets).sum())
            sums["phonemes"] += int((outputs.phonemes.argmax(-1) == batch.phonemes).sum())
            sums["line"] += count * float(alignment_loss(outputs.attention, batch))
            sums["sharp"] += float(attention.amax(-1)[mask].sum())
            errors += word_errors(batch, attention.cpu().numpy())
        found = {name: value / max(total, 1) for name, value in sums.items()}
        seconds = SECONDS_PER_TOKEN * np.concatenate(errors or [np.zeros(1)])
        found["word_error_50"], found["word_error_90"] = np.quantile(seconds, (0.5, 0.9)).tolist()
        return found

    def report(self, schedule: Schedule, losses: Losses) -> None:
        """Validates, and keeps the averaged weights if they are the best so far."""
        found, running = self.validate(), self.running_loss
        self.running_loss = RunningLoss()
        rate = self.optimizer.optimizer.param_groups[0]["lr"]
        log(
            f"{schedule.seconds:5.0f} s step {schedule.step} lr {rate:.1e} "
            f"train {running.loss:.3f} valid {found['loss']:.3f} top-1 {found['top1']:.1%} "
            f"phonemes {found['phonemes']:.1%} alignment {found['line']:.2f} "
            f"sharpness {found['sharp']:.2f} word starts {1000 * found['word_error_50']:.0f}/"
            f"{1000 * found['word_error_90']:.0f} ms (50/90 %) {running.speed:,.0f} tokens/s"
        )
        if found["loss"] < self.facts.get("valid", {}).get("loss", np.inf):
            self.facts |= {"steps": schedule.step, "minutes": schedule.seconds / 60}
            self.facts |= {"train_loss": running.loss, "valid": found}
            self.best.load_state_dict(self.ema.network.t3.state_dict())

    def save(self, schedule: Schedule) -> None:
        """Generates with the best weights, then writes them."""
        batch = self.to_generate.to(self.device)
        with self.autocast():
            found = evaluate_generation(self.best, batch, Sampling(), self.options.seed)
        self.facts["spoken"] = found
        log(
            f"      generated {found['spoken']}: stopped {found['stopped']:.0%}, "
            f"at the text's end {found['at_end']:.0%}, length {found['length_05']:.2f} "
            f"{found['length_50']:.2f} {found['length_95']:.2f} of the recording (5, 50, 95 %), "
            f"0.6-1.6: {found['good_length']:.0%}, repeated tokens {found['repeated']:.1%}"
        )
        self._write()

    def finish(self, schedule: Schedule, losses: Losses) -> None:
        self._write()  # first, because validation may be cut off
        self.report(schedule, losses)
        self.save(schedule)
        if self.facts["steps"] < schedule.step:
            last, facts = self.ema.network.t3.state_dict(), self.facts | {"steps": schedule.step}
            save_stage(self.options.out, "t3_last", last, facts, torch.float16)

    def _write(self) -> None:
        out = self.options.out
        save_stage(out, "t3", self.best.state_dict(), self.facts, torch.float16)
        write_json(out / "text_tokenizer.json", tokenizer_json())


class RunningLoss:
    """Training losses since the last report; read from the device only then."""

    def __init__(self) -> None:
        self._losses: list[Tensor] = []
        self._tokens: list[Tensor] = []
        self._schedule = Schedule(steps=1)

    def add(self, loss: Tensor, batch: T3Batch) -> None:
        self._losses.append(loss)
        self._tokens.append((batch.targets != IGNORED).sum())

    @property
    def loss(self) -> float:
        return float(torch.stack(self._losses).mean()) if self._losses else float("nan")

    @property
    def speed(self) -> float:
        """Speech tokens per second."""
        return float(sum(self._tokens)) / max(self._schedule.seconds, 1e-9)


def word_errors(batch: T3Batch, attention: np.ndarray) -> list[np.ndarray]:
    """Errors of the word starts in speech tokens, for each row that has the teacher's durations.

    attention: [B, K, text], the mean of the alignment heads
    """
    errors = []
    for row in np.flatnonzero(batch.timing_weight.cpu().numpy() == 1):
        text = int(batch.output_positions[row, 0]) - 1
        steps = int((batch.targets[row] != IGNORED).sum())
        is_space = (batch.text[row, :text] == SPACE).cpu().numpy()
        truth = batch.boundaries[row].cpu().numpy()[np.r_[2, np.flatnonzero(is_space)]]
        found = word_starts(is_space, track_alignment(attention[row, :steps, :text]))
        errors.append(np.abs(found - truth))
    return errors


def _decay_groups(parameters: list[nn.Parameter]) -> list[dict[str, Any]]:
    """Weight decay for matrices, none for vectors."""
    return [
        {"params": [weight for weight in parameters if weight.ndim > 1], "weight_decay": 0.05},
        {"params": [weight for weight in parameters if weight.ndim <= 1], "weight_decay": 0.0},
    ]


def main(arguments: list[str]) -> None:
    parser = command_parser("t3", __doc__)
    add_training(parser, 11, SIZES)
    parser.add_argument("--tokens", type=Path, help="default: OUT/tokens.npz")
    parser.add_argument("--speakers", type=Path, help="default: OUT/speakers.npz")
    parser.add_argument("--extra-corpus", type=Path, nargs="+", default=[], metavar="FOLDER")
    add_t3_batches(parser, POSITIONS, 1e-3)
    parser.add_argument("--dropout", type=float, default=0.2)
    parser.add_argument(
        "--validate-every", type=float, default=30, help="seconds between validations"
    )
    Stage(parser.parse_args(arguments)).train()


if __name__ == "__main__":
    main(sys.argv[1:])
