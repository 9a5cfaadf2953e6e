"""Training examples of the flow: speech tokens with their mel frames, laid out like a prompt and a
sentence in synthesis."""

from __future__ import annotations

import copy
import dataclasses
import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from .data import SPEED_FACTORS, Batch, Corpus, load_tokens, sorted_batches
from .features import mel_24k
from .masking import length_mask
from .networks.conformer import FRAMES_PER_TOKEN
from .networks.flow import Flow
from .speakers import embed, load_speakers
from .speech_tokenizer import encode_without_repeats, load_tokenizer

TOKENS_PER_SECOND = 25
PREPARE_SECONDS = 400.0  # of audio in a batch while the data is prepared

PERTURBED = 0.4  # of the rows are added a second time at another speed
OTHER_PROMPT = 0.4  # of the examples have other rows of the voice as their prompt
OWN_PROMPT = 0.35  # have their own beginning as their prompt, up to OWN_SHARE of the row
OWN_SHARE = 0.6
LONG_PROMPT = 0.2  # of the prompts of other rows have 5 to 10 s, the others 1 to 5 s
CUT = 0.3  # of the examples end early, like the chunks of a stream
SHORTEST_CUT = 8  # tokens
LOOKAHEAD = 7  # tokens behind a cut, as in streams of the embedded voice
OTHER_SPEAKER = 0.5  # of the examples have the x-vector of another row of the voice
POOL = 8  # batches whose examples are sorted by length together


class Speech:
    """Rows of one part of a corpus: tokens with two mel frames each, on a device."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.starts = [0]  # of every row, and the end
        self.voice: list[int] = []  # of every row; a speed-perturbed row counts as another voice
        self.rows_of: dict[int, list[int]] = defaultdict(list)  # by voice
        self._tokens: list[Tensor] = []
        self._mel: list[Tensor] = []
        self._x_vector: list[Tensor] = []

    def add(self, batch: Batch, tokens: list[Tensor], x_vector: Tensor) -> None:
        """batch: with voice numbers as `Corpus.perturb_speed` gives them; tokens: of each row;
        x_vector: [B, 192]"""
        mel = mel_24k(batch.wave, batch.samples)
        length = mel.shape[1] // FRAMES_PER_TOKEN
        mel = mel[:, : FRAMES_PER_TOKEN * length].unflatten(1, (length, FRAMES_PER_TOKEN))
        counts = [min(len(row), length) for row in tokens]
        inside = length_mask(torch.tensor(counts, device=mel.device), length)
        self._mel.append(mel[inside].half())
        rows = [row[:count] for row, count in zip(tokens, counts, strict=True)]
        self._tokens.append(torch.cat(rows).short())
        self._x_vector.append(x_vector.half())
        for count, voice in zip(counts, batch.voice.tolist(), strict=True):
            self.rows_of[voice].append(len(self.voice))
            self.voice.append(voice)
            self.starts.append(self.starts[-1] + count)

    def close(self) -> Speech:
        """Call after the last `add`."""
        self.tokens = torch.cat(self._tokens).to(self.device)  # [N] int16
        self.mel = torch.cat(self._mel).to(self.device)  # [N, 2, 80] float16
        self.x_vector = torch.cat(self._x_vector).to(self.device)  # [rows, 192] float16
        self._tokens, self._mel, self._x_vector = [], [], []
        return self

    def __len__(self) -> int:
        return len(self.voice)

    def count(self, row: int) -> int:
        """Tokens of a row."""
        return self.starts[row + 1] - self.starts[row]

    @property
    def hours(self) -> float:
        return self.starts[-1] / TOKENS_PER_SECOND / 3600

    def mean_mel(self) -> Tensor:
        """[80]"""
        return self.mel.mean((0, 1), dtype=torch.float32)

    def another(self, row: int, rng: random.Random) -> int | None:
        """Another row of the same voice, where there is one."""
        rows = self.rows_of[self.voice[row]]
        if len(rows) < 2:
            return None
        while (other := rng.choice(rows)) == row:
            pass
        return other


def load_speech(corpus: Corpus, models: str | Path, perturb_speed: bool, seed: int) -> Speech:
    """A part of a corpus with its speech tokens and x-vectors.

    models: the folder with tokens.npz and speakers.npz, and with speech_tokenizer.safetensors and
    speakers.safetensors if `perturb_speed` asks for speed-perturbed copies of some rows.
    """
    models = Path(models)
    speech = Speech(str(corpus.device))
    tokens = load_tokens(models / "tokens.npz")
    with np.load(models / "speakers.npz") as stored:
        x_vector = torch.from_numpy(stored["x_vector"])
    for batch in sorted_batches(corpus, PREPARE_SECONDS):
        # The bucket of `Corpus.perturb_speed` whose factor is 1.
        batch.voice.mul_(len(SPEED_FACTORS)).add_(len(SPEED_FACTORS) // 2)
        rows = batch.row.cpu()
        speech.add(batch, [tokens[row] for row in rows.tolist()], x_vector[rows])
    if perturb_speed:
        add_perturbed(speech, corpus, models, seed)
    return speech.close()


def add_perturbed(speech: Speech, corpus: Corpus, models: Path, seed: int) -> None:
    device = str(corpus.device)
    tokenizer = load_tokenizer(models / "speech_tokenizer.safetensors", device)
    speakers = load_speakers(models / "speakers.safetensors", device)
    some, generator = copy.copy(corpus), torch.Generator().manual_seed(seed)
    some.members = corpus.members[
        np.random.default_rng(seed).random(len(corpus.members)) < PERTURBED
    ]
    for batch in sorted_batches(some, PREPARE_SECONDS):
        perturbed = corpus.perturb_speed(batch, generator)
        tokens = encode_without_repeats(tokenizer, perturbed.wave, perturbed.samples)
        x_vector, _ = embed(speakers, perturbed.wave, perturbed.samples)
        speech.add(perturbed, tokens, x_vector.cpu())


@dataclass(frozen=True)
class Example:
    ranges: tuple[tuple[int, int], ...]  # of the tokens of a Speech, concatenated
    ahead: int  # lookahead tokens at the end, whose frames are not generated
    prompt: int  # frames at the beginning that are given
    speaker: int  # row whose x-vector is given

    @property
    def tokens(self) -> int:
        return sum(end - begin for begin, end in self.ranges)


@dataclass(frozen=True, eq=False)
class FlowBatch:
    tokens: Tensor  # [B, T] int64
    counts: Tensor  # [B] int64, tokens of each row
    mel: Tensor  # [B, 2 T, 80] float32
    frames: Tensor  # [B] int64, frames of each row, without those of lookahead tokens
    prompt: Tensor  # [B] int64, frames of the prompt
    x_vector: Tensor  # [B, 192] float32

    @property
    def frame_mask(self) -> Tensor:
        """[B, 2 T] bool"""
        return length_mask(self.frames, self.mel.shape[1])

    @property
    def prompt_mask(self) -> Tensor:
        """[B, 2 T] bool"""
        return length_mask(self.prompt, self.mel.shape[1])

    @property
    def prompt_mel(self) -> Tensor:
        """[B, 2 T, 80], zero behind the prompt"""
        return self.mel * self.prompt_mask[..., None]


def conditioning_of(flow: Flow, batch: FlowBatch) -> Tensor:
    """The estimator's inputs of a batch beside its state: [B, 2 T, 240]"""
    mean = flow.encode(batch.tokens, batch.counts)
    return flow.conditioning(mean, batch.x_vector, batch.prompt_mel)


def truncate(batch: FlowBatch, place: Tensor) -> FlowBatch:
    """Truncates rows as streaming does: some tokens, at least SHORTEST_CUT, and the lookahead.

    place: [B] in 0..1, where to cut; rows that are too short stay whole
    """
    least = -(-batch.prompt // FRAMES_PER_TOKEN) + SHORTEST_CUT
    most = batch.counts - LOOKAHEAD
    end = torch.minimum(least + (place * (most - least + 1)).long(), most)
    fits = most >= least
    return dataclasses.replace(
        batch,
        counts=torch.where(fits, end + LOOKAHEAD, batch.counts),
        frames=torch.where(fits, FRAMES_PER_TOKEN * end, batch.frames),
    )


def sample_example(speech: Speech, row: int, rng: random.Random) -> Example:
    """A row, whole or cut, with a prompt of other rows, of its own beginning, or without."""
    begin, count = speech.starts[row], speech.count(row)
    end, ahead = count, 0
    if count > SHORTEST_CUT + LOOKAHEAD and rng.random() < CUT:
        end, ahead = rng.randint(SHORTEST_CUT, count - LOOKAHEAD), LOOKAHEAD
    ranges, prompt = [(begin, begin + end + ahead)], 0
    kind = rng.random()
    if kind < OTHER_PROMPT:
        seconds = rng.uniform(5, 10) if rng.random() < LONG_PROMPT else rng.uniform(1, 5)
        before = prompt_ranges(speech, row, round(TOKENS_PER_SECOND * seconds), rng)
        ranges = before + ranges
        prompt = FRAMES_PER_TOKEN * sum(last - first for first, last in before)
    elif kind < OTHER_PROMPT + OWN_PROMPT:
        prompt = int(rng.uniform(0, OWN_SHARE) * FRAMES_PER_TOKEN * end)
    other = speech.another(row, rng) if rng.random() < OTHER_SPEAKER else None
    return Example(tuple(ranges), ahead, prompt, row if other is None else other)


def prompt_ranges(
    speech: Speech, row: int, tokens: int, rng: random.Random
) -> list[tuple[int, int]]:
    """Other rows of the voice with `tokens` tokens in total, the last row truncated."""
    ranges: list[tuple[int, int]] = []
    while tokens > 0 and (other := speech.another(row, rng)) is not None:
        begin = speech.starts[other]
        length = min(tokens, speech.count(other))
        ranges.append((begin, begin + length))
        tokens -= length
    return ranges


def gather(speech: Speech, examples: list[Example]) -> FlowBatch:
    length = max(example.tokens for example in examples)
    at = np.zeros((len(examples), length), np.int64)
    for row, example in zip(at, examples, strict=True):
        filled = 0
        for begin, end in example.ranges:
            row[filled : filled + end - begin] = np.arange(begin, end)
            filled += end - begin
    counts = np.array([example.tokens for example in examples])
    ahead = np.array([example.ahead for example in examples])
    prompt = np.array([example.prompt for example in examples])
    speaker = np.array([example.speaker for example in examples])
    facts = np.stack([counts, FRAMES_PER_TOKEN * (counts - ahead), prompt, speaker])
    count, frames, prompts, speakers = _to_device(facts, speech.device)
    places = _to_device(at, speech.device)
    return FlowBatch(
        tokens=speech.tokens[places].long(),
        counts=count,
        mel=speech.mel[places].flatten(1, 2).float(),
        frames=frames,
        prompt=prompts,
        x_vector=speech.x_vector[speakers].float(),
    )


def _to_device(array: np.ndarray, device: str) -> Tensor:
    """Copies without a host sync."""
    tensor = torch.from_numpy(array)
    if torch.device(device).type == "cuda":
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)


def batches(speech: Speech, seconds: float, seed: int) -> Iterator[FlowBatch]:
    """Endless and shuffled; at most `seconds` of padded audio, at least one example in a batch."""
    rng = random.Random(seed)
    most = round(TOKENS_PER_SECOND * seconds)
    pool = max(1, POOL * most * len(speech) // max(1, speech.starts[-1]))
    while True:
        order = rng.sample(range(len(speech)), len(speech))
        for first in range(0, len(order), pool):
            examples = [sample_example(speech, row, rng) for row in order[first : first + pool]]
            groups = grouped(sorted(examples, key=lambda example: example.tokens), most)
            rng.shuffle(groups)
            for group in groups:
                yield gather(speech, group)


def grouped(examples: list[Example], most: int) -> list[list[Example]]:
    """examples: sorted by length; most: tokens of a group, including padding"""
    groups: list[list[Example]] = [[]]
    for example in examples:
        if groups[-1] and (len(groups[-1]) + 1) * example.tokens > most:
            groups.append([])
        groups[-1].append(example)
    return groups


def validation_examples(speech: Speech, count: int, seconds: float, seed: int) -> list[Example]:
    """At most `count` whole rows, each after a prompt of `seconds` of other rows of its voice.
    Voices with a single row are left out."""
    rng = random.Random(seed)
    rows = [row for rows in speech.rows_of.values() if len(rows) > 1 for row in rows]
    examples = []
    for row in rng.sample(rows, min(count, len(rows))):
        before = prompt_ranges(speech, row, round(TOKENS_PER_SECOND * seconds), rng)
        prompt = FRAMES_PER_TOKEN * sum(end - begin for begin, end in before)
        own = (speech.starts[row], speech.starts[row + 1])
        other = speech.another(row, rng)
        examples.append(Example((*before, own), 0, prompt, row if other is None else other))
    return sorted(examples, key=lambda example: example.tokens)
