"""Stage 2: the speech tokenizer, trained to keep the words and the melody but not the speaker.

python -m train.speech_tokenizer CORPUS OUT [--minutes 8]
python -m train.speech_tokenizer tokens CORPUS OUT/speech_tokenizer.safetensors OUT/tokens.npz
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from .clock import Clock
from .data import Corpus
from .descent import Descent
from .networks.speech_tokenizer import TOKENIZER_SIZES, SpeechTokenizer, TokenizerSize, token_ids
from .networks.tokenizer_heads import HEADS_SIZES, Heads
from .options import add_device, add_training, training_clock
from .passes import one_pass, write_arrays
from .pitch import PITCHES
from .state import load_stage, save_stage
from .tokenizer_objective import TOKEN, WEIGHTS, Validation, Wording, hear, losses

STAGE = "speech_tokenizer"
HEADS = "speech_tokenizer_heads"
PREFIX = "tokenizer."
# The heads' tensors of which a row belongs to a voice, a letter or a phoneme.
ROWS_OF = {
    "mel.speaker.weight": "voices",
    "text.letters.weight": "letters",
    "text.letters.bias": "letters",
    "phonemes.phonemes.weight": "phonemes",
    "phonemes.phonemes.bias": "phonemes",
}
BLANK = ""  # CTC's, the first letter

PEAK_RATE = 1e-3
HEADS_ALONE = 0.08  # of a run that goes on without its heads: new ones tell the tokenizer nothing


class Stage:
    """The networks, what they are trained on, and how far they are."""

    def __init__(self, options: argparse.Namespace) -> None:
        torch.manual_seed(options.seed)
        self.options = options
        self.corpus = Corpus(options.corpus, options.device)
        self.valid = self.corpus.part("valid")
        self.wording = Wording(self.corpus.rows, options.device)
        self.size = TOKENIZER_SIZES[options.size]
        self.tokenizer = SpeechTokenizer(self.size).to(options.device)
        self.heads = Heads(
            HEADS_SIZES[options.size],
            voices=len(self.corpus.voices),
            letters=len(self.wording.letters.alphabet),
            phonemes=self.wording.phonemes.count,
            pitches=PITCHES,
        ).to(options.device)
        self.new_heads = bool(options.resume) and not self._resume(Path(options.resume))
        self.history: list[dict[str, float]] = []

    def _resume(self, path: Path) -> bool:
        """Heads go on too where they lie beside, with the voices, letters and phonemes that they
        know. → whether they do"""
        load_weights(self.tokenizer, path)
        beside = path.with_name(f"{HEADS}.safetensors")
        if not beside.exists():
            return False
        tensors, known = load_stage(beside)
        ours, own = self._heads_facts(), self.heads.state_dict()
        for name, kind in ROWS_OF.items():
            _take_rows(own[name], tensors.pop(name, None), ours[kind], known.get(kind, []))
        self.heads.load_state_dict(own | tensors)
        return True

    def _heads_facts(self) -> dict[str, list[str]]:
        """What the rows of the heads' tensors belong to."""
        return {
            "voices": self.corpus.voices,
            "letters": [BLANK, *self.wording.letters.alphabet],
            "phonemes": [*self.wording.phonemes.inventory],
        }

    def train(self) -> None:
        options, device = self.options, torch.device(self.options.device)
        parameters = [*self.tokenizer.parameters(), *self.heads.parameters()]
        optimiser = torch.optim.AdamW(
            parameters, betas=(0.9, 0.98), weight_decay=0.01, fused=device.type == "cuda"
        )
        descent = Descent(optimiser, device)
        generator = torch.Generator(device).manual_seed(options.seed)
        batches = self.corpus.batches(options.seconds, options.seed)
        print(
            f"{STAGE}: {count(self.tokenizer)} parameters, {count(self.heads)} to train it by, "
            f"{self.corpus.hours:.1f} hours, {len(self.wording.letters.alphabet)} letters",
            flush=True,
        )
        clock = training_clock(options)
        while clock.tick():
            self.tokenizer.requires_grad_(not self.new_heads or clock.progress >= HEADS_ALONE)
            with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                found = losses(self.tokenizer, self.heads, next(batches), self.wording, generator)
            loss = sum(WEIGHTS[name] * loss for name, loss in found.items())
            descent.step(loss, clock.learning_rate(PEAK_RATE), parameters)
            if clock.step == 1 or clock.due("report", 30):
                self.report(clock, found)
            if clock.due("save", 120):
                self.save(clock)
        self.save(clock)  # before judging, for which there may be no time
        self.report(clock, found)
        self.save(clock)

    def report(self, clock: Clock, found: dict[str, Tensor]) -> None:
        generator = torch.Generator(self.corpus.device).manual_seed(0)
        validation = Validation()
        for batch in one_pass(self.valid, self.options.seconds):
            validation.add(self.tokenizer, self.heads, batch, self.wording, generator)
        summary = validation.summary()
        trained = {name: loss.item() for name, loss in found.items()}
        self.history.append({"step": clock.step, "seconds": clock.seconds, **trained, **summary})
        print(
            f"step {clock.step} {clock.seconds:.0f} s |",
            *(f"{name} {value:.3f}" for name, value in trained.items()),
            "| valid",
            *(f"{name} {value:.4g}" for name, value in summary.items()),
            flush=True,
        )

    def save(self, clock: Clock) -> None:
        """As float16: tokens are computed of what is shipped."""
        tensors = {PREFIX + name: x for name, x in self.tokenizer.state_dict().items()}
        facts = {
            **dataclasses.asdict(self.size),
            "parameters": count(self.tokenizer),
            "steps": clock.step,
            "hours": self.corpus.hours,
            "history": self.history,
        }
        save_stage(self.options.out, HEADS, self.heads.state_dict(), self._heads_facts())
        save_stage(self.options.out, STAGE, tensors, facts, torch.float16)


def _take_rows(own: Tensor, given: Tensor | None, names: list[str], known: list[str]) -> None:
    """Rows of `given` that have the names of those of `own`."""
    both = [name for name in names if name in known]
    if given is not None and both:
        to, of = ([all.index(name) for name in both] for all in (names, known))
        own[to] = given[of].to(own)


def count(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


def load_weights(tokenizer: SpeechTokenizer, path: str | Path) -> None:
    tensors, _ = load_stage(path)
    tokenizer.load_state_dict({name.removeprefix(PREFIX): x for name, x in tensors.items()})


def load_tokenizer(path: str | Path, device: str = "cpu") -> SpeechTokenizer:
    """What the stage wrote, in float32."""
    _, facts = load_stage(path)
    tokenizer = SpeechTokenizer(TokenizerSize(facts["width"], facts["layers"]))
    load_weights(tokenizer, path)
    return tokenizer.to(device).eval()


def tokens_of(tokenizer: SpeechTokenizer, wave: Tensor, samples: Tensor) -> list[Tensor]:
    """As the voice baker would give them.

    wave: [B, N] at 24 kHz; samples: [B] → B times [samples // 960] int16
    """
    return _rows(token_ids(_digits(tokenizer, wave, samples)).cpu(), samples)


def tokens_to_say(tokenizer: SpeechTokenizer, wave: Tensor, samples: Tensor) -> list[Tensor]:
    """The same without repeats: as T3 is to say them."""
    return _rows(without_repeats(_digits(tokenizer, wave, samples)), samples)


@torch.inference_mode()
def _digits(tokenizer: SpeechTokenizer, wave: Tensor, samples: Tensor) -> Tensor:
    with sdpa_kernel(SDPBackend.MATH):
        return tokenizer(*hear(wave, samples)).digits


def _rows(ids: Tensor, samples: Tensor) -> list[Tensor]:
    counts = (samples // TOKEN).tolist()
    return [row[:count] for row, count in zip(ids.short(), counts, strict=True)]


def without_repeats(digits: Tensor) -> Tensor:
    """Ids of [B, T, 8] digits. A token that would equal the one before it has its least certain
    digit rounded the other way: two equal ones make the core's analyser end the speech."""
    rounded = digits.round()
    doubt = digits - rounded
    least_certain = doubt.abs().argmax(-1, keepdim=True)
    # Never out of -1..1, which digits are within.
    step = torch.where(doubt.gather(-1, least_certain) > 0, 1.0, -1.0)
    other = rounded.scatter_add(-1, least_certain, step)
    ids, others = token_ids(rounded).cpu(), token_ids(other).cpu()
    for at in range(1, ids.shape[1]):
        ids[:, at] = torch.where(ids[:, at] == ids[:, at - 1], others[:, at], ids[:, at])
    return ids


def write_tokens(options: argparse.Namespace) -> None:
    """The tokens of every row of a corpus to be learned, in its order: starts [rows + 1], tokens
    int16."""
    corpus = Corpus(options.corpus, options.device, "all")
    tokenizer = load_tokenizer(options.tokenizer, options.device)
    rows: list[Tensor] = [torch.zeros(0, dtype=torch.int16)] * len(corpus.rows)
    for batch in one_pass(corpus, options.seconds):
        found = tokens_to_say(tokenizer, batch.wave, batch.samples)
        for row, ids in zip(batch.row.tolist(), found, strict=True):
            rows[row] = ids
    starts = np.cumsum([0, *(len(row) for row in rows)], dtype=np.int64)
    write_arrays(Path(options.out), starts=starts, tokens=torch.cat(rows).numpy())
    print(f"{starts[-1]} tokens of {len(rows)} rows in {options.out}", flush=True)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m train.speech_tokenizer")
    commands = parser.add_subparsers(required=True)
    train = commands.add_parser("train", help="the command where none is named")
    add_training(train, 8.0, TOKENIZER_SIZES)
    train.set_defaults(run=lambda options: Stage(options).train())
    tokens = commands.add_parser("tokens", help="computes the tokens of a corpus")
    tokens.add_argument("corpus")
    tokens.add_argument("tokenizer")
    tokens.add_argument("out", help="an .npz file")
    tokens.set_defaults(run=write_tokens)
    add_device(tokens)
    for command in (train, tokens):
        command.add_argument("--seconds", type=float, default=400.0, help="of sound a batch")
    if arguments and arguments[0] not in (*commands.choices, "-h", "--help"):
        arguments = ["train", *arguments]
    options = parser.parse_args(arguments)
    # Ten bits are too few for what is heard of quiet sound and for digits near their edges.
    torch.backends.cudnn.allow_tf32 = False
    options.run(options)


if __name__ == "__main__":
    main(sys.argv[1:])
