"""Training examples of T3: texts, speech tokens and alignments of a corpus, in batches."""

from __future__ import annotations

import signal
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from .alignment import PhonemeVocabulary, align_text, even_times
from .data import Row, Tokens
from .masking import IGNORED
from .networks.t3 import START_SPEECH, STOP_SPEECH, T3Size, pack_rows
from .text_tokenizer import SPACE, TextTokenizer

TOKENS_PER_SECOND = 25
LEAD, TAIL = 2, 3  # speech tokens of silence before and after the speech
PAUSE = 8  # maximum between two sentences
LONGEST = 18 * TOKENS_PER_SECOND
SHORT = 2 * TOKENS_PER_SECOND  # speech tokens of a row that may be repeated
JOINED, REPEATED = 0.35, 0.25  # of the rows, and of the short ones among them
PROMPT = (25, 150)  # speech tokens
PROMPT_ROWS = 5  # maximum of rows in a prompt
NO_PROMPT = 0.08  # of the batches
OTHER_VOICE = 0.08  # of the rows get another voice, so that any voice can speak any text
NO_TEXT = 0.12  # of the rows have no text, for guidance
CORRUPTED = 0.12  # of the input speech tokens
SPEAKER_NOISE = 0.02
EMOTION = 0.5  # what T3's emotion input says at the usual speaking rate,
# and how many times as much for twice that rate. The first norm removes the input's size: only
# beside what the first layer adds to it can a far larger or smaller one be told from it.
EMOTION_PER_OCTAVE = 64
EMOTION_SPREAD = 0.04  # of its logarithm
WORKERS = 5  # processes that make batches for a GPU
PREFETCH = 4  # batches per worker: a worker makes many at once, then none for a while
POOL = 48  # batches whose rows are sorted by length together


def emotion_of_rate(rate: np.ndarray) -> np.ndarray:
    """What T3's emotion input says for speech at `rate` times the usual rate."""
    return EMOTION * EMOTION_PER_OCTAVE ** np.log2(rate)


@dataclass(frozen=True, eq=False)
class SpokenRow:
    text: np.ndarray  # [text] int16, the space before the first word included
    starts: np.ndarray  # [text] float32, start of each in speech tokens
    speech: np.ndarray  # [tokens] int16
    phonemes: np.ndarray  # [tokens] int16, ids of PhonemeVocabulary
    begin: float  # of the speech
    end: float
    last_word: int
    timing_weight: float
    tag: int | None
    voice: str
    speed: float = 1.0  # the teacher's

    @property
    def first(self) -> int:
        """The first speech token that is used."""
        return max(0, int(self.begin) - LEAD)

    def last(self, tail: int) -> int:
        """The end of the speech tokens that are used."""
        return min(len(self.speech), int(np.ceil(self.end)) + tail)


def spoken_rows(
    rows: Sequence[Row],
    numbers: Sequence[int],
    tokens: Tokens,
    phonemes: PhonemeVocabulary,
    tokenizer: TextTokenizer | None = None,
) -> list[SpokenRow]:
    """The rows of these numbers. tokens: of all rows"""
    tokenizer = tokenizer or TextTokenizer()
    texts = tokenizer.encode([rows[number].text for number in numbers])
    made = []
    for number, letters in zip(numbers, texts, strict=True):
        row, speech = rows[number], tokens[number].numpy().astype(np.int16)
        text = np.concatenate((np.array([SPACE], np.int16), letters))
        timing = align_text(
            text == SPACE, tokenizer.is_letter[text], len(speech), row.phonemes, row.durations
        )
        made.append(
            SpokenRow(
                text=text,
                speech=speech,
                phonemes=phonemes.labels(row, len(speech)),
                tag=tokenizer.tag(row.language),
                voice=row.voice,
                speed=row.speed,
                **vars(timing),
            )
        )
    return made


@dataclass(frozen=True, eq=False)
class Example:
    """One or more rows, concatenated."""

    text: np.ndarray  # [text], after the language tag if there is one
    boundaries: np.ndarray  # [text + 3] float32: starts of start, text and stop, and the end
    speech: np.ndarray  # [tokens]
    phonemes: np.ndarray  # [tokens + 1]
    timing_weight: float
    rows: tuple[int, ...]  # their indices
    speed: float

    @property
    def length(self) -> int:
        return len(self.text) + len(self.speech) + 4


def join(rows: Sequence[SpokenRow], places: tuple[int, ...], silence: int) -> Example:
    """Concatenates rows. The final silence and the speech's stop belong to the text's stop."""
    tag = [] if rows[0].tag is None else [rows[0].tag]
    text, starts, speech, phonemes = [tag], [], [], []
    said = 0
    for number, row in enumerate(rows):
        is_last = number == len(rows) - 1
        first, last = row.first, row.last(TAIL if is_last else PAUSE)
        at = row.starts + (said - first)
        end = row.end + (said - first)
        if is_last:
            # The analyser stops if one of the last text tokens gets more than five speech tokens.
            word = row.last_word
            at[word:] = even_times(at[word], end, len(at) - word)
        if number == 0:  # without the space before the first word
            text.append(row.text[1:])
            starts += [at[:1], at[2:]]
        else:
            text.append(row.text)
            starts.append(at)
        speech.append(row.speech[first:last])
        phonemes.append(row.phonemes[first:last])
        said += last - first
    times = np.concatenate(starts)
    # The time before the first word belongs to the start; the tag has none.
    boundaries = np.concatenate(([0.0], times[: len(tag)], times, [end, said + 1]))
    return Example(
        text=np.concatenate(text).astype(np.int64),
        boundaries=np.maximum.accumulate(np.clip(boundaries, 0, said + 1)).astype(np.float32),
        speech=np.concatenate(speech).astype(np.int64),
        phonemes=np.append(np.concatenate(phonemes), silence).astype(np.int64),
        timing_weight=min(row.timing_weight for row in rows),
        rows=places,
        speed=rows[0].speed,
    )


@dataclass(frozen=True, eq=False)
class T3Batch:
    tokens: Tensor  # [B, T], positions and ask as in networks.t3.PackedRows
    positions: Tensor  # [B, T]
    output_positions: Tensor  # [B, K]
    targets: Tensor  # [B, K], IGNORED past each row's stop
    phonemes: Tensor  # [B, K], likewise
    text: Tensor  # [B, L], with start and stop, zero past each row's end
    boundaries: Tensor  # [B, L + 1]: starts of the text tokens in the speech
    timing_weight: Tensor  # [B], of the boundaries in the loss
    has_text: Tensor  # [B] bool, false where the text is zeroed
    speaker: Tensor  # [B, 256]
    emotion: Tensor  # [B]
    prompt: Tensor | None  # [B, P], zero past each row's end
    prompt_counts: Tensor | None  # [B]

    def to(self, device: torch.device | str) -> T3Batch:
        values = (getattr(self, field.name) for field in fields(self))
        moved = (v if v is None else v.to(device, non_blocking=True) for v in values)
        return T3Batch(*moved)

    def pin_memory(self) -> T3Batch:
        values = (getattr(self, field.name) for field in fields(self))
        return T3Batch(*(v if v is None else v.pin_memory() for v in values))


class Examples:
    """Batches of `rows`. speakers: [rows, 256] float32, the speaker embedding of each row

    augment: join rows, drop texts and prompts, and corrupt the share `corrupted` of the input
    tokens; otherwise every row comes once and unchanged.
    """

    def __init__(
        self,
        rows: Sequence[SpokenRow],
        speakers: np.ndarray,
        size: T3Size,
        silence: int,
        augment: bool = True,
        corrupted: float = CORRUPTED,
    ) -> None:
        self.rows, self.augment = rows, augment
        self._corrupted = corrupted
        self._speakers, self._size, self._silence = speakers, size, silence
        self._of_voice = _positions_by_key(row.voice for row in rows)
        self._alike = _positions_by_key((row.voice, row.tag, row.speed) for row in rows)

    def batches(self, positions: int, seed: int | Sequence[int]) -> Iterator[T3Batch]:
        """Endless, or once if not `augment`, of at most `positions` each, including padding."""
        rng = np.random.default_rng(seed)
        pool: list[Example] = []
        while True:
            room = 0
            for place in rng.permutation(len(self.rows)):
                example = self.example(int(place), rng if self.augment else None)
                pool.append(example)
                room += example.length
                if self.augment and room > POOL * positions:
                    yield from self._sorted(pool, positions, rng)
                    pool, room = [], 0
            if not self.augment or room:
                yield from self._sorted(pool, positions, rng)
                pool = []
            if not self.augment:
                return

    def _sorted(
        self, pool: list[Example], positions: int, rng: np.random.Generator
    ) -> Iterator[T3Batch]:
        pool.sort(key=lambda example: example.length)
        groups: list[list[Example]] = [[]]
        voice = self._size.perceiver_queries + 2
        for example in pool:
            if (len(groups[-1]) + 1) * (example.length + voice) > positions and groups[-1]:
                groups.append([])
            groups[-1].append(example)
        for number in rng.permutation(len(groups)):
            yield self.collate(groups[number], rng)

    def example(self, place: int, rng: np.random.Generator | None = None) -> Example:
        """The row at this index, with `rng` randomly joined with others."""
        places = [place]
        if rng is not None and rng.random() < JOINED:
            row = self.rows[place]
            alike = self._alike[row.voice, row.tag, row.speed]
            again = len(row.speech) < SHORT and rng.random() < REPEATED
            room = LONGEST - len(row.speech)
            others = _draw(alike, rng.integers(1, 4), rng)
            for other in [place] if again else others:
                room -= len(self.rows[other].speech)
                if room < 0:
                    break
                places.append(int(other))
        return join([self.rows[p] for p in places], tuple(places), self._silence)

    def collate(self, examples: Sequence[Example], rng: np.random.Generator) -> T3Batch:
        rows = len(examples)
        texts = [example.text for example in examples]
        speech = [example.speech for example in examples]
        fed = (
            [_corrupt(tokens, self._corrupted, rng) for tokens in speech]
            if self.augment
            else speech
        )
        layout = pack_rows(self._size, texts, fed)
        framed = [len(text) + 2 for text in texts]
        boundaries = _padded([example.boundaries for example in examples], np.float32, repeat=True)
        voices = [self._voice(example, rng) for example in examples]
        has_text = rng.random(rows) >= NO_TEXT if self.augment else np.ones(rows, bool)
        emotion = emotion_of_rate(np.array([example.speed for example in examples]))
        prompt = counts = None
        if self.augment:
            emotion *= np.exp(rng.normal(0, EMOTION_SPREAD, rows))
        if not self.augment or rng.random() >= NO_PROMPT:
            prompts = [tokens for _, tokens in voices]
            prompt = torch.from_numpy(_padded(prompts, np.int64))
            counts = torch.tensor([len(tokens) for tokens in prompts])
        targets = [np.append(tokens, STOP_SPEECH) for tokens in speech]
        return T3Batch(
            tokens=torch.from_numpy(layout.tokens),
            positions=torch.from_numpy(layout.positions),
            output_positions=torch.from_numpy(layout.output_positions),
            targets=torch.from_numpy(_padded(targets, np.int64, IGNORED)),
            phonemes=torch.from_numpy(_padded([e.phonemes for e in examples], np.int64, IGNORED)),
            text=torch.from_numpy(
                _padded([layout.tokens[i, :n] for i, n in enumerate(framed)], np.int64)
            ),
            boundaries=torch.from_numpy(boundaries),
            timing_weight=torch.tensor([e.timing_weight for e in examples])
            * torch.from_numpy(has_text),
            has_text=torch.from_numpy(has_text),
            speaker=torch.from_numpy(np.stack([speaker for speaker, _ in voices])),
            emotion=torch.from_numpy(emotion.astype(np.float32)),
            prompt=prompt,
            prompt_counts=counts,
        )

    def _voice(self, example: Example, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """A speaker embedding and prompt tokens from other rows of the example's voice."""
        voice = self.rows[example.rows[0]].voice
        if self.augment and rng.random() < OTHER_VOICE:
            voice = list(self._of_voice)[rng.integers(len(self._of_voice))]
        candidates = self._of_voice[voice]
        length = int(rng.integers(PROMPT[0], PROMPT[1] + 1)) if self.augment else PROMPT[1]
        prompt: list[np.ndarray] = []
        missing = length
        others = np.setdiff1d(_draw(candidates, PROMPT_ROWS, rng), example.rows)
        for other in others if len(others) else candidates[:1]:
            row = self.rows[other]
            prompt.append(row.speech[row.first : row.last(PAUSE)][:missing])
            missing -= len(prompt[-1])
        speaker = self._speakers[_draw(candidates, 1, rng)[0]]
        if self.augment:
            speaker = speaker + SPEAKER_NOISE * rng.standard_normal(len(speaker))
        speaker = speaker / max(float(np.linalg.norm(speaker)), 1e-6)
        return speaker.astype(np.float32), np.concatenate(prompt)


def _positions_by_key(keys: Iterable[Hashable]) -> dict[Any, np.ndarray]:
    """The indices of each key."""
    found = defaultdict(list)
    for place, key in enumerate(keys):
        found[key].append(place)
    return {key: np.array(places) for key, places in found.items()}


def _draw(places: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    return places[rng.integers(len(places), size=count)]


def _corrupt(speech: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """Replaces some tokens, half of them by their predecessor and half at random. Never by their
    successor: it would then have to follow itself, and two equal tokens end the speech."""
    wrong = rng.random(len(speech)) < share
    drawn = rng.integers(0, START_SPEECH, len(speech))
    before = speech[np.maximum(np.arange(len(speech)) - 1, 0)]
    return np.where(wrong, np.where(rng.random(len(speech)) < 0.5, drawn, before), speech)


def _padded(
    arrays: Sequence[np.ndarray], dtype: type, fill: float = 0, repeat: bool = False
) -> np.ndarray:
    """[B, longest], padded with `fill` or with each row's last value"""
    out = np.full((len(arrays), max(map(len, arrays))), fill, dtype)
    for row, array in zip(out, arrays, strict=True):
        row[: len(array)] = array
        if repeat:
            row[len(array) :] = array[-1]
    return out


class BatchStream(IterableDataset):
    """Endless batches, with a seed of its own for each worker."""

    def __init__(self, examples: Examples, positions: int, seed: int) -> None:
        self._examples, self._positions, self._seed = examples, positions, seed

    def __iter__(self) -> Iterator[T3Batch]:
        worker = get_worker_info()
        number = worker.id if worker else 0
        return self._examples.batches(self._positions, (self._seed, number))


def batch_loader(
    examples: Examples, positions: int, seed: int, on_gpu: bool, workers: int | None = None
) -> DataLoader:
    """Loads `Examples.batches`. workers: processes; by default none without a GPU"""
    if workers is None:
        workers = WORKERS if on_gpu else 0
    return DataLoader(
        BatchStream(examples, positions, seed),
        None,
        num_workers=workers,
        prefetch_factor=PREFETCH if workers else None,
        pin_memory=on_gpu,
        worker_init_fn=_ignore_sigterm,
    )


def _ignore_sigterm(worker: int) -> None:
    """The training process ends its workers itself after its last step."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
