"""Stage 2: the speech tokenizer, trained to keep the words and the intonation but not the speaker.

python -m train.speech_tokenizer CORPUS OUT [--minutes 8]
python -m train.speech_tokenizer tokenize CORPUS OUT/speech_tokenizer.safetensors OUT/tokens.npz
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from .data import Corpus, sorted_batches
from .nan_guard import guarded_adamw
from .networks.speech_tokenizer import TOKENIZER_SIZES, SpeechTokenizer, TokenizerSize, token_ids
from .networks.tokenizer_heads import HEADS_SIZES, Heads
from .pitch_salience import PITCHES
from .schedule import Schedule
from .state import load_stage, save_stage, write_npz
from .tokenizer_objective import TOKEN, WEIGHTS, Transcripts, Validation, losses, tokenizer_inputs
from .training import EncoderStage, Losses, log, parameter_count, run_encoder_stage

STAGE = "speech_tokenizer"
HEADS = "speech_tokenizer_heads"
PREFIX = "tokenizer."
# Tensors of the heads with one row per voice, letter or phoneme.
ROW_LABELS = {
    "mel.speaker.weight": "voices",
    "text.letters.weight": "letters",
    "text.letters.bias": "letters",
    "phonemes.phonemes.weight": "phonemes",
    "phonemes.phonemes.bias": "phonemes",
}
BLANK = ""  # of CTC, the first letter

PEAK_RATE = 1e-3
LENGTH_STEP = 0.48  # seconds
HEADS_ONLY = 0.08  # of a run resumed without its heads: at first only the new heads are trained


class Stage(EncoderStage):
    name, minutes, sizes, batch_seconds = STAGE, 8.0, TOKENIZER_SIZES, 400.0

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        self.corpus = Corpus(options.corpus, options.device)
        self.valid = self.corpus.part("valid")
        self.transcripts = Transcripts(self.corpus.rows, options.device)
        self.size = TOKENIZER_SIZES[options.size]
        self.tokenizer = SpeechTokenizer(self.size).to(options.device)
        self.heads = Heads(
            HEADS_SIZES[options.size],
            voices=len(self.corpus.voices),
            letters=len(self.transcripts.letters.alphabet),
            phonemes=self.transcripts.phonemes.count,
            pitches=PITCHES,
        ).to(options.device)
        self.new_heads = bool(options.resume) and not self._resume(Path(options.resume))
        if not options.resume:
            self._spread_digits()
        self.parameters = [*self.tokenizer.parameters(), *self.heads.parameters()]
        self.optimizer = guarded_adamw(self.parameters, self.device)
        self.generator = torch.Generator(self.device).manual_seed(options.seed)

    def _resume(self, path: Path) -> bool:
        """Loads the tokenizer, and the heads if they are saved beside it: rows of known voices,
        letters and phonemes. Returns whether there were heads."""
        load_weights(self.tokenizer, path)
        beside = path.with_name(f"{HEADS}.safetensors")
        if not beside.exists():
            return False
        tensors, known = load_stage(beside)
        labels, own = self._row_labels(), self.heads.state_dict()
        for name, kind in ROW_LABELS.items():
            _copy_rows(own[name], tensors.pop(name, None), labels[kind], known.get(kind, []))
        self.heads.load_state_dict(own | tensors)
        return True

    def _spread_digits(self) -> None:
        batch = next(self.corpus.batches(self.options.batch_seconds, self.options.seed))
        with torch.no_grad():
            self.tokenizer.spread(*tokenizer_inputs(batch.wave, batch.samples))

    def _row_labels(self) -> dict[str, list[str]]:
        return {
            "voices": self.corpus.voices,
            "letters": [BLANK, *self.transcripts.letters.alphabet],
            "phonemes": [*self.transcripts.phonemes.inventory],
        }

    def train(self) -> bool:
        options = self.options
        self.batches = self.corpus.batches(options.batch_seconds, options.seed, step=LENGTH_STEP)
        log(
            f"{STAGE}: {parameter_count(self.tokenizer)} parameters, "
            f"{parameter_count(self.heads)} in its training heads, {self.corpus.hours:.1f} hours, "
            f"{len(self.transcripts.letters.alphabet)} letters"
        )
        return super().train()

    def step(self, schedule: Schedule) -> Losses:
        self.tokenizer.requires_grad_(not self.new_heads or schedule.progress >= HEADS_ONLY)
        batch = next(self.batches)
        with self.autocast():
            found = losses(self.tokenizer, self.heads, batch, self.transcripts, self.generator)
        loss = sum(WEIGHTS[name] * loss for name, loss in found.items())
        self.optimizer.step(loss, schedule.learning_rate(PEAK_RATE), self.parameters)
        return found

    def validate(self) -> dict[str, float]:
        generator = torch.Generator(self.corpus.device).manual_seed(0)
        validation = Validation()
        for batch in sorted_batches(self.valid, self.options.batch_seconds):
            validation.add(self.tokenizer, self.heads, batch, self.transcripts, generator)
        return validation.summary()

    def save(self, schedule: Schedule) -> None:
        """In float16: tokens are computed with the weights that are shipped."""
        tensors = {PREFIX + name: x for name, x in self.tokenizer.state_dict().items()}
        facts = {
            **dataclasses.asdict(self.size),
            "parameters": parameter_count(self.tokenizer),
            "steps": schedule.step,
            "hours": self.corpus.hours,
            "history": self.history,
        }
        out, half = self.options.out, torch.float16
        save_stage(out, HEADS, self.heads.state_dict(), self._row_labels(), half)
        save_stage(out, STAGE, tensors, facts, half)


def _copy_rows(own: Tensor, given: Tensor | None, names: list[str], known: list[str]) -> None:
    """Copies the rows of `given` whose names `own` has, too."""
    both = [name for name in names if name in known]
    if given is not None and both:
        to, of = ([all.index(name) for name in both] for all in (names, known))
        own[to] = given[of].to(own)


def load_weights(tokenizer: SpeechTokenizer, path: str | Path) -> None:
    tensors, _ = load_stage(path)
    tokenizer.load_state_dict({name.removeprefix(PREFIX): x for name, x in tensors.items()})


def load_tokenizer(path: str | Path, device: str = "cpu") -> SpeechTokenizer:
    """Loads the weights that the stage saved, in float32."""
    _, facts = load_stage(path)
    tokenizer = SpeechTokenizer(TokenizerSize(facts["width"], facts["layers"]))
    load_weights(tokenizer, path)
    return tokenizer.to(device).eval()


def encode_speech(tokenizer: SpeechTokenizer, wave: Tensor, samples: Tensor) -> list[Tensor]:
    """The tokens that the voice baker computes.

    wave: [B, N] at 24 kHz; samples: [B] → B times [samples // 960] int16
    """
    return _rows(token_ids(_digits(tokenizer, wave, samples)).cpu(), samples)


def encode_without_repeats(
    tokenizer: SpeechTokenizer, wave: Tensor, samples: Tensor
) -> list[Tensor]:
    """The tokens that T3 and the flow learn from: no two in a row are equal."""
    return _rows(without_repeats(_digits(tokenizer, wave, samples)), samples)


@torch.inference_mode()
def _digits(tokenizer: SpeechTokenizer, wave: Tensor, samples: Tensor) -> Tensor:
    with sdpa_kernel(SDPBackend.MATH):
        return tokenizer(*tokenizer_inputs(wave, samples)).digits


def _rows(ids: Tensor, samples: Tensor) -> list[Tensor]:
    counts = (samples // TOKEN).tolist()
    return [row[:count] for row, count in zip(ids.short(), counts, strict=True)]


def without_repeats(digits: Tensor) -> Tensor:
    """Ids of [B, T, 8] digits. A token that would equal its predecessor has its least certain digit
    rounded the other way: two equal tokens make the core's alignment analyser stop the speech."""
    rounded = digits.round()
    doubt = digits - rounded
    least_certain = doubt.abs().argmax(-1, keepdim=True)
    # The result stays in -1..1, because the digits are.
    step = torch.where(doubt.gather(-1, least_certain) > 0, 1.0, -1.0)
    other = rounded.scatter_add(-1, least_certain, step)
    ids, others = token_ids(rounded).cpu(), token_ids(other).cpu()
    for at in range(1, ids.shape[1]):
        ids[:, at] = torch.where(ids[:, at] == ids[:, at - 1], others[:, at], ids[:, at])
    return ids


def write_tokens(options: argparse.Namespace) -> None:
    """computes the tokens of all rows of a corpus"""
    corpus = Corpus(options.corpus, options.device, "all")
    tokenizer = load_tokenizer(options.weights, options.device)
    rows: list[Tensor] = [torch.zeros(0, dtype=torch.int16)] * len(corpus.rows)
    for batch in sorted_batches(corpus, options.batch_seconds):
        found = encode_without_repeats(tokenizer, batch.wave, batch.samples)
        for row, ids in zip(batch.row.tolist(), found, strict=True):
            rows[row] = ids
    starts = np.cumsum([0, *(len(row) for row in rows)], dtype=np.int64)
    write_npz(options.out, starts=starts, tokens=torch.cat(rows).numpy())
    log(f"{starts[-1]} tokens of {len(rows)} rows in {options.out}")


def main(arguments: list[str]) -> None:
    run_encoder_stage(Stage, "tokenize", write_tokens, arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
