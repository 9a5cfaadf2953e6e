"""What a draft learns from: texts and voices of a corpus as the draft's model reads them, with
speech of the corpus or of the model itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from .alignment import Phonemes
from .clock import Clock
from .data import Corpus, Tokens, part_of
from .passes import write_arrays
from .t3_checkpoint import T3Checkpoint
from .t3_examples import Examples, SpokenRow, spoken_rows
from .t3_speaking import MOST, SLACK, Sampling, speak


@dataclass(frozen=True, eq=False)
class Speech:
    """Rows of one part of a corpus that a file has speech of."""

    numbers: list[int]  # of the corpus
    rows: list[SpokenRow]
    speakers: np.ndarray  # [rows, 256] float32


class Texts:
    """The rows of a corpus in languages that a model reads."""

    def __init__(self, folder: Path, checkpoint: T3Checkpoint, speakers: Path) -> None:
        self.rows = Corpus(folder, "cpu").rows
        self._phonemes = Phonemes(self.rows)
        self._checkpoint = checkpoint
        with np.load(speakers) as stored:
            self._speakers = stored["speaker"].astype(np.float32)
        expected = (len(self.rows), checkpoint.model.size.speaker)
        if self._speakers.shape != expected:
            raise SystemExit(f"{speakers} has speakers {self._speakers.shape}; expected {expected}")

    def speech(self, tokens: Path, part: str) -> Speech:
        """What the file, tokens.npz or what `write_spoken` wrote, has of a part."""
        with np.load(tokens) as stored:
            starts, said_anew = stored["starts"], "spoken" in stored
            heard = Tokens(starts, stored["tokens"])
        if len(starts) != len(self.rows) + 1:
            raise SystemExit(
                f"{tokens} has {len(starts) - 1} rows; expected the corpus's {len(self.rows)}"
            )
        tokenizer = self._checkpoint.tokenizer
        numbers = [
            number
            for number, row in enumerate(self.rows)
            if starts[number + 1] > starts[number]
            and tokenizer.reads(row.language)
            and part_of(row.id, row.voice) == part
        ]
        if not numbers:
            raise SystemExit(f"{tokens} has no row to {part} by in a language that the model reads")
        # The durations are of what the corpus's own teacher said.
        rows = [replace(row, durations=None) for row in self.rows] if said_anew else self.rows
        made = spoken_rows(rows, numbers, heard, self._phonemes, tokenizer)
        return Speech(numbers, made, self._speakers[numbers])

    def examples(self, speech: Sequence[Speech], varied: bool) -> Examples:
        """Of all of it together; only what was drawn is fed in."""
        rows = [row for each in speech for row in each.rows]
        speakers = np.concatenate([each.speakers for each in speech])
        size = self._checkpoint.model.size
        return Examples(rows, speakers, size, self._phonemes.silence, varied, wrong=0.0)


def write_spoken(
    texts: Texts,
    checkpoint: T3Checkpoint,
    tokens: Path,
    out: Path,
    *,
    most: dict[str, int],  # rows of each part
    together: int,
    clock: Clock,
    seed: int,
) -> None:
    """Has the model say rows of the corpus, prompted by what `tokens` has of their voices.

    Writes starts [rows + 1] and tokens as tokens.npz has them, and spoken [rows] bool: rows that
    were not asked for, or that the model found no end to, have no tokens.
    """
    model = checkpoint.model
    device = next(model.parameters()).device
    sampling = Sampling(repetition_penalty=checkpoint.repetition_penalty)
    generator = torch.Generator(device).manual_seed(seed)
    rng = np.random.default_rng(seed)
    said: dict[int, np.ndarray] = {}
    asked = 0
    for part, limit in most.items():
        speech = texts.speech(tokens, part)
        examples = texts.examples([speech], varied=False)
        places = rng.permutation(len(speech.rows))[:limit]
        places = sorted(places.tolist(), key=lambda place: len(speech.rows[place].speech))
        groups = [places[i : i + together] for i in range(0, len(places), together)]
        for group in rng.permutation(len(groups)):
            if not clock.tick():
                break
            chosen = groups[group]
            batch = examples.collate([examples.example(place) for place in chosen], rng).to(device)
            longest = int(MOST * batch.targets.shape[1]) + SLACK
            longest = min(longest, model.size.speech_positions - 1)
            asked += len(chosen)
            with torch.autocast(device.type, torch.bfloat16, device.type == "cuda"):
                spoken = speak(model, batch, longest, sampling, generator)
            for place, row in zip(chosen, spoken, strict=True):
                if row.stopped and len(row.tokens):
                    said[speech.numbers[place]] = row.tokens.astype(np.int16)
    none = np.empty(0, np.int16)
    all_said = [said.get(number, none) for number in range(len(texts.rows))]
    starts = np.cumsum([0, *map(len, all_said)], dtype=np.int64)
    write_arrays(out, starts=starts, tokens=np.concatenate(all_said), spoken=np.diff(starts) > 0)
    print(f"{starts[-1]} tokens of {len(said)} rows of {asked} in {out}", flush=True)
