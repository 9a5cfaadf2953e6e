"""Stage 5, T3: speech tokens from text in a voice.

    python -m train.t3 CORPUS OUT --minutes 11 [--also HEARD ...]

Reads OUT/tokens.npz and OUT/speakers.npz, which the tokenizer and the speaker encoders made of the
corpus; writes OUT/t3.safetensors, OUT/t3.json and OUT/text_tokenizer.json. Where the weights that
judged best are not the last, OUT/t3_last has those: they may speak better all the same.

T3 needs no sound. HEARD is a folder with the index.jsonl of another corpus and what the same
tokenizer and encoders made of it, tokens.npz and speakers.npz: T3 learns from it, too.
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

from .alignment import IGNORED, Phonemes, follow, word_starts
from .clock import Clock
from .data import Corpus, Row, Tokens, load_tokens, part_of
from .descent import Descent
from .networks.t3 import SIZES, T3, rows_at, text_weights
from .options import add_training, training_clock
from .state import load_stage, save_stage, write_json
from .surprise import surprise
from .t3_batches import batch_loader
from .t3_examples import Examples, T3Batch, spoken_rows
from .t3_speaking import Sampling, report
from .text_tokenizer import SPACE, tokenizer_json

POSITIONS = 32_768  # of a batch, padding and voice included
VALIDATION = 64  # rows that are spoken freely
SMOOTHING = 0.05
PHONEME_LOSS, LINE_LOSS = 0.2, 0.2  # beside the speech tokens' 1
AVERAGED = 0.999  # of the averaged weights stays in a step
SECONDS_A_TOKEN = 0.04


@dataclass
class Answers:
    logits: Tensor  # [B, K, speech vocabulary]
    phonemes: Tensor  # [B, K, phonemes]
    weights: Tensor  # [B, heads, K, text], logarithms of what alignment heads give to the text


class Lesson(nn.Module):
    """T3 with what only training needs: a head that names the phoneme being spoken."""

    def __init__(self, model: T3, phonemes: int) -> None:
        super().__init__()
        self.t3 = model
        self.phoneme_head = nn.Linear(model.size.hidden, phonemes)

    def forward(self, batch: T3Batch) -> Answers:
        model = self.t3
        voice = model.voice(batch.speaker, batch.emotion, batch.prompt, batch.prompt_counts)
        trace = model(voice, model.embed(batch.tokens, batch.positions, batch.kept))
        ask = batch.ask + voice.shape[1]
        return Answers(
            model.speech_head(rows_at(trace.hidden, ask)),
            self.phoneme_head(rows_at(trace.middle, ask)),
            text_weights(trace, ask, voice.shape[1], batch.text.shape[1]),
        )


def line_loss(weights: Tensor, batch: T3Batch) -> Tensor:
    """Cross-entropy of the alignment heads with how each speech token's time is the text tokens'.

    weights: [B, heads, K, text], logarithms
    """
    at = torch.arange(weights.shape[2], device=weights.device)[:, None]
    begin, end = batch.edges[:, None, :-1], batch.edges[:, None, 1:]
    share = (torch.minimum(end, at + 1) - torch.maximum(begin, at)).clamp_min(0)  # [B, K, text]
    share = share * batch.trust[:, None, None] * (batch.targets != IGNORED)[..., None]
    # Past a row's own text the logarithms may be infinite.
    lost = -(share[:, None] * weights.masked_fill(share[:, None] == 0, 0)).sum()
    return lost / (weights.shape[1] * share.sum()).clamp_min(1)


@dataclass
class Heard:
    """A corpus as T3 knows it: without its sound."""

    rows: list[Row]
    tokens: Tokens
    speakers: np.ndarray  # [rows, speaker]

    @classmethod
    def of(cls, corpus: Path, tokens: Path, speakers: Path) -> Heard:
        with np.load(speakers) as stored:
            vectors = stored["speaker"].astype(np.float32)
        return cls(Corpus(corpus, "cpu", "valid").rows, load_tokens(tokens), vectors)

    def numbers(self, part: str) -> list[int]:
        return [i for i, row in enumerate(self.rows) if part_of(row.id, row.voice) == part]


class Stage:
    """The models, the examples and the training of one run."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.device = torch.device(options.device)
        torch.manual_seed(options.seed)
        self.size = SIZES[options.size]
        train, valid = self._read()
        model = T3(self.size, options.dropout)
        if options.resume:
            model.load_state_dict(load_stage(options.resume)[0])
        self.lesson = Lesson(model, self.phonemes.count).to(self.device)
        self.average = copy.deepcopy(self.lesson).eval().requires_grad_(False)
        self.best = copy.deepcopy(self.average.t3)
        self.descent = Descent(_optimiser(self.lesson, self.device), self.device)
        on_gpu = self.device.type == "cuda"
        self.loader = batch_loader(train, options.positions, options.seed, on_gpu)
        rng = np.random.default_rng(options.seed)
        self.valid = list(valid.batches(options.positions, options.seed))
        chosen = rng.permutation(len(valid.rows))[:VALIDATION]
        self.to_speak = valid.collate([valid.example(int(i)) for i in chosen], rng)
        self.facts: dict[str, Any] = {
            "sizes": asdict(self.size),
            "parameters": sum(weight.numel() for weight in model.parameters()),
            "settings": {
                "analyser": True,
                "alignment_heads": [list(head) for head in self.size.alignment_heads],
                "repetition_penalty": Sampling().repetition_penalty,
                "stop_at_repeat": False,  # a token twice is rare here, and harmless
            },
            "seed": options.seed,
            "steps": 0,
        }

    def _read(self) -> tuple[Examples, Examples]:
        options = self.options
        tokens = options.tokens or options.out / "tokens.npz"
        speakers = options.speakers or options.out / "speakers.npz"
        heard = [Heard.of(options.corpus, tokens, speakers)]
        heard += [Heard.of(at, at / "tokens.npz", at / "speakers.npz") for at in options.also]
        self.phonemes = Phonemes([row for corpus in heard for row in corpus.rows])

        def examples(part: str, varied: bool) -> Examples:
            made, vectors = [], []
            for corpus in heard:
                numbers = corpus.numbers(part)
                made += spoken_rows(corpus.rows, numbers, corpus.tokens, self.phonemes)
                vectors.append(corpus.speakers[numbers])
            silence = self.phonemes.silence
            return Examples(made, np.concatenate(vectors), self.size, silence, varied)

        train, valid = examples("train", True), examples("valid", False)
        count = sum(len(row.speech) for row in train.rows)
        repeats = sum(int((row.speech[1:] == row.speech[:-1]).sum()) for row in train.rows)
        trusted = np.mean([row.trust == 1 for row in train.rows])
        _say(
            f"{len(train.rows)} rows, {count} speech tokens, {len(valid.rows)} rows to validate; "
            f"{repeats / count:.1%} of the tokens equal the one before, "
            f"{trusted:.1%} of the rows have the teacher's times"
        )
        return train, valid

    def run(self) -> None:
        options = self.options
        clock = training_clock(options)
        if options.compile:
            for layer in self.lesson.t3.tfmr.layers:
                layer.compile(dynamic=True)
        _say(f"T3 {options.size}: {self.facts['parameters']:,} parameters on {self.device}")
        if options.resume:
            self.facts["valid"] = self.validate()  # to be bettered
        tally = Tally()
        for batch in self.loader:
            if not clock.tick():
                break
            rate = clock.learning_rate(options.learning_rate)
            tally.add(self._step(batch.to(self.device), rate, clock.step), batch)
            if clock.due("validate", options.every):
                self._tell(clock, tally)
                tally = Tally()
            if clock.due("save", 4 * options.every):
                self._save()
        self._write()  # before judging, for which there may be no time
        self._tell(clock, tally)
        self._save()
        if self.facts["steps"] < clock.step:
            last, facts = self.average.t3.state_dict(), self.facts | {"steps": clock.step}
            save_stage(options.out, "t3_last", last, facts, torch.float16)

    def _step(self, batch: T3Batch, rate: float, step: int) -> Tensor:
        """→ the loss in speech tokens"""
        self.lesson.train()
        with self._autocast():
            answers = self.lesson(batch)
            loss = surprise(answers.logits, batch.targets, SMOOTHING)
            phoneme_loss = surprise(answers.phonemes, batch.phonemes)
            line = line_loss(answers.weights, batch)
        weights = list(self.lesson.parameters())
        self.descent.step(loss + PHONEME_LOSS * phoneme_loss + LINE_LOSS * line, rate, weights)
        new = 1 - min(AVERAGED, step / (step + 10))
        torch._foreach_lerp_(list(self.average.parameters()), weights, new)
        return loss.detach()

    def _autocast(self) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, self.device.type == "cuda")

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """The averaged model on the rows held out: losses, sharpness and word times."""
        sums = dict.fromkeys(("loss", "top1", "phonemes", "line", "sharp"), 0.0)
        errors: list[np.ndarray] = []
        total = 0
        for batch in self.valid:
            batch = batch.to(self.device)
            with self._autocast():
                answers = self.average(batch)
            spoken = batch.targets != IGNORED
            count = int(spoken.sum())
            total += count
            weights = answers.weights.exp().mean(1)
            named = answers.phonemes.argmax(-1) == batch.phonemes
            sums["loss"] += count * float(surprise(answers.logits, batch.targets))
            sums["top1"] += int((answers.logits.argmax(-1) == batch.targets).sum())
            sums["phonemes"] += int(named.sum())
            sums["line"] += count * float(line_loss(answers.weights, batch))
            sums["sharp"] += float(weights.amax(-1)[spoken].sum())
            errors += word_errors(batch, weights.cpu().numpy())
        found = {name: value / max(total, 1) for name, value in sums.items()}
        seconds = SECONDS_A_TOKEN * np.concatenate(errors or [np.zeros(1)])
        found["word_error_50"], found["word_error_90"] = np.quantile(seconds, (0.5, 0.9)).tolist()
        return found

    def _tell(self, clock: Clock, tally: Tally) -> None:
        """Validates, and keeps the averaged weights if they are the best yet."""
        found = self.validate()
        rate = self.descent.optimiser.param_groups[0]["lr"]
        _say(
            f"{clock.seconds:5.0f} s step {clock.step} lr {rate:.1e} "
            f"train {tally.loss:.3f} valid {found['loss']:.3f} top-1 {found['top1']:.1%} "
            f"phonemes {found['phonemes']:.1%} line {found['line']:.2f} "
            f"sharp {found['sharp']:.2f} words {1000 * found['word_error_50']:.0f}/"
            f"{1000 * found['word_error_90']:.0f} ms (50/90 %) {tally.speed:,.0f} tokens/s"
        )
        if found["loss"] < self.facts.get("valid", {}).get("loss", np.inf):
            self.facts |= {"steps": clock.step, "minutes": clock.seconds / 60}
            self.facts |= {"train_loss": tally.loss, "valid": found}
            self.best.load_state_dict(self.average.t3.state_dict())

    def _save(self) -> None:
        """Writes the best weights, after a look at how they speak."""
        with self._autocast():
            found = report(self.best, self.to_speak.to(self.device), Sampling(), self.options.seed)
        self.facts["spoken"] = found
        _say(
            f"      spoke {found['spoken']}: stopped {found['stopped']:.0%}, "
            f"at the text's end {found['at_end']:.0%}, length {found['length_05']:.2f} "
            f"{found['length_50']:.2f} {found['length_95']:.2f} of the truth (5, 50, 95 %), "
            f"0.6-1.6: {found['good_length']:.0%}, token twice {found['repeated']:.1%}"
        )
        self._write()

    def _write(self) -> None:
        out = self.options.out
        save_stage(out, "t3", self.best.state_dict(), self.facts, torch.float16)
        write_json(out / "text_tokenizer.json", tokenizer_json())


class Tally:
    """Training losses since the last line that told of them; read off the device only then."""

    def __init__(self) -> None:
        self._losses: list[Tensor] = []
        self._tokens: list[Tensor] = []
        self._clock = Clock(steps=1)

    def add(self, loss: Tensor, batch: T3Batch) -> None:
        self._losses.append(loss)
        self._tokens.append((batch.targets != IGNORED).sum())

    @property
    def loss(self) -> float:
        return float(torch.stack(self._losses).mean()) if self._losses else float("nan")

    @property
    def speed(self) -> float:
        return float(sum(self._tokens)) / max(self._clock.seconds, 1e-9)


def word_errors(batch: T3Batch, weights: np.ndarray) -> list[np.ndarray]:
    """For each row with the teacher's times: how far its words' starts are off, in speech tokens.

    weights: [B, K, text], of the alignment heads on average
    """
    errors = []
    for row in np.flatnonzero(batch.trust.cpu().numpy() == 1):
        text = int(batch.ask[row, 0]) - 1
        steps = int((batch.targets[row] != IGNORED).sum())
        is_space = (batch.text[row, :text] == SPACE).cpu().numpy()
        truth = batch.edges[row].cpu().numpy()[np.r_[2, np.flatnonzero(is_space)]]
        found = word_starts(is_space, follow(weights[row, :steps, :text]))
        errors.append(np.abs(found - truth))
    return errors


def _optimiser(lesson: nn.Module, device: torch.device) -> torch.optim.AdamW:
    matrices = [weight for weight in lesson.parameters() if weight.ndim > 1]
    vectors = [weight for weight in lesson.parameters() if weight.ndim <= 1]
    groups = [
        {"params": matrices, "weight_decay": 0.05},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, betas=(0.9, 0.98), fused=device.type == "cuda")


def _say(line: str) -> None:
    print(line, flush=True)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m train.t3", description=__doc__)
    add_training(parser, 11, SIZES)
    parser.add_argument("--tokens", type=Path, help="default: OUT/tokens.npz")
    parser.add_argument("--speakers", type=Path, help="default: OUT/speakers.npz")
    parser.add_argument("--also", type=Path, nargs="+", default=[], metavar="HEARD")
    parser.add_argument("--positions", type=int, default=POSITIONS, help="of a batch")
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--dropout", type=float, default=0.2)
    parser.add_argument("--every", type=float, default=30, help="seconds between validations")
    parser.add_argument("--compile", action="store_true")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    Stage(parse(sys.argv[1:])).run()
