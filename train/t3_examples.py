"""What T3 learns from: rows of a corpus as text, speech tokens and times, in batches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .alignment import IGNORED, Phonemes, spread, time_text
from .data import Row, Tokens
from .networks.t3 import START_SPEECH, STOP_SPEECH, T3Size, lay_out
from .text_tokenizer import SPACE, TextTokenizer

TOKENS_A_SECOND = 25
LEAD, TAIL = 2, 3  # speech tokens of silence before and after what is said
PAUSE = 8  # and between two sentences, at most
LONGEST = 18 * TOKENS_A_SECOND
SHORT = 2 * TOKENS_A_SECOND  # speech tokens of what may be said twice
JOINED, REPEATED = 0.35, 0.25  # of the rows, and of the short ones among them
PROMPT = (25, 150)  # speech tokens
PROMPT_ROWS = 5  # that they come from, at most
NO_PROMPT = 0.08  # of the batches
OTHER_VOICE = 0.08  # of the rows have the voice of somebody else, so that any voice says any text
UNGUIDED = 0.12  # of the rows have no text
WRONG = 0.12  # of the speech tokens fed in
SPEAKER_NOISE = 0.02
EMOTION, EMOTION_SPREAD = 0.5, 0.2
POOL = 48  # batches whose rows are sorted by length together


@dataclass(frozen=True, eq=False)
class SpokenRow:
    text: np.ndarray  # [text] int16, the space before the first word included
    starts: np.ndarray  # [text] float32, when each begins, in speech tokens
    speech: np.ndarray  # [tokens] int16
    phonemes: np.ndarray  # [tokens] int16, of Phonemes
    begin: float  # of the sound
    end: float
    last_word: int
    trust: float
    tag: int | None
    voice: str

    @property
    def first(self) -> int:
        """The speech token to begin with."""
        return max(0, int(self.begin) - LEAD)

    def last(self, tail: int) -> int:
        """The speech token to end before."""
        return min(len(self.speech), int(np.ceil(self.end)) + tail)


def spoken_rows(
    rows: Sequence[Row],
    numbers: Sequence[int],
    tokens: Tokens,
    phonemes: Phonemes,
    tokenizer: TextTokenizer | None = None,
) -> list[SpokenRow]:
    """The rows of these numbers; `tokens` has the speech of all rows."""
    tokenizer = tokenizer or TextTokenizer()
    texts = tokenizer.encode([rows[number].text for number in numbers])
    made = []
    for number, letters in zip(numbers, texts, strict=True):
        row, speech = rows[number], tokens[number].numpy().astype(np.int16)
        text = np.concatenate((np.array([SPACE], np.int16), letters))
        timing = time_text(
            text == SPACE, tokenizer.is_letter[text], len(speech), row.phonemes, row.durations
        )
        made.append(
            SpokenRow(
                text=text,
                speech=speech,
                phonemes=phonemes.heard(row, len(speech)),
                tag=tokenizer.tag(row.language),
                voice=row.voice,
                **vars(timing),
            )
        )
    return made


@dataclass(frozen=True, eq=False)
class Example:
    """One or more rows said in one go."""

    text: np.ndarray  # [text], the language's tag first where there is one
    edges: np.ndarray  # [text + 3] float32: where start, text and stop begin, and the end
    speech: np.ndarray  # [tokens]
    phonemes: np.ndarray  # [tokens + 1]
    trust: float
    rows: tuple[int, ...]  # places in the list that they come from

    @property
    def length(self) -> int:
        return len(self.text) + len(self.speech) + 4


def join(rows: Sequence[SpokenRow], places: tuple[int, ...], silence: int) -> Example:
    """`rows` one after another; the last silence and the stop of speech are the text's stop's."""
    tag = [] if rows[0].tag is None else [rows[0].tag]
    text, starts, speech, phonemes = [tag], [], [], []
    said = 0
    for number, row in enumerate(rows):
        is_last = number == len(rows) - 1
        first, last = row.first, row.last(TAIL if is_last else PAUSE)
        at = row.starts + (said - first)
        end = row.end + (said - first)
        if is_last:
            # The analyser lets none of the last text tokens have more than five speech tokens.
            word = row.last_word
            at[word:] = spread(at[word], end, len(at) - word)
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
    # Before the first word is the text's start; its tag has no time of its own.
    edges = np.concatenate(([0.0], times[: len(tag)], times, [end, said + 1]))
    return Example(
        text=np.concatenate(text).astype(np.int64),
        edges=np.maximum.accumulate(np.clip(edges, 0, said + 1)).astype(np.float32),
        speech=np.concatenate(speech).astype(np.int64),
        phonemes=np.append(np.concatenate(phonemes), silence).astype(np.int64),
        trust=min(row.trust for row in rows),
        rows=places,
    )


@dataclass(frozen=True, eq=False)
class T3Batch:
    tokens: Tensor  # [B, T], positions and ask as in networks.t3.Layout
    positions: Tensor  # [B, T]
    ask: Tensor  # [B, K]
    targets: Tensor  # [B, K], IGNORED past each row's stop
    phonemes: Tensor  # [B, K], likewise
    text: Tensor  # [B, L], with start and stop, zero past each row's end
    edges: Tensor  # [B, L + 1]: where each text token begins in the speech
    trust: Tensor  # [B], how much the edges count
    kept: Tensor  # [B] bool, false where the text is zeroed
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
    """Batches of `rows`. speakers: [rows, 256] float32, a speaker embedding heard in each row.

    varied: rows are joined, texts and prompts are left out, and the share `wrong` of the tokens is;
    else all is as it is, every row once.
    """

    def __init__(
        self,
        rows: Sequence[SpokenRow],
        speakers: np.ndarray,
        size: T3Size,
        silence: int,
        varied: bool = True,
        wrong: float = WRONG,
    ) -> None:
        self.rows, self.varied = rows, varied
        self._wrong = wrong
        self._speakers, self._size, self._silence = speakers, size, silence
        self._of_voice = _places(row.voice for row in rows)
        self._alike = _places((row.voice, row.tag) for row in rows)

    def batches(self, positions: int, seed: int | Sequence[int]) -> Iterator[T3Batch]:
        """Endless, or once if not varied, of at most `positions` places each, padding included."""
        rng = np.random.default_rng(seed)
        pool: list[Example] = []
        while True:
            room = 0
            for place in rng.permutation(len(self.rows)):
                example = self.example(int(place), rng if self.varied else None)
                pool.append(example)
                room += example.length
                if self.varied and room > POOL * positions:
                    yield from self._sorted(pool, positions, rng)
                    pool, room = [], 0
            if not self.varied or room:
                yield from self._sorted(pool, positions, rng)
                pool = []
            if not self.varied:
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
        """The row at this place, joined with others as `rng` says."""
        places = [place]
        if rng is not None and rng.random() < JOINED:
            row = self.rows[place]
            alike = self._alike[row.voice, row.tag]
            again = len(row.speech) < SHORT and rng.random() < REPEATED
            room = LONGEST - len(row.speech)
            others = _drawn(alike, rng.integers(1, 4), rng)
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
            [_with_errors(tokens, self._wrong, rng) for tokens in speech] if self.varied else speech
        )
        layout = lay_out(self._size, texts, fed)
        framed = [len(text) + 2 for text in texts]
        edges = _padded([example.edges for example in examples], np.float32, repeat=True)
        voices = [self._voice(example, rng) for example in examples]
        kept = rng.random(rows) >= UNGUIDED if self.varied else np.ones(rows, bool)
        emotion = np.full(rows, EMOTION)
        prompt = counts = None
        if self.varied:
            emotion = np.maximum(rng.normal(EMOTION, EMOTION_SPREAD, rows), 0)
        if not self.varied or rng.random() >= NO_PROMPT:
            prompts = [tokens for _, tokens in voices]
            prompt = torch.from_numpy(_padded(prompts, np.int64))
            counts = torch.tensor([len(tokens) for tokens in prompts])
        targets = [np.append(tokens, STOP_SPEECH) for tokens in speech]
        return T3Batch(
            tokens=torch.from_numpy(layout.tokens),
            positions=torch.from_numpy(layout.positions),
            ask=torch.from_numpy(layout.ask),
            targets=torch.from_numpy(_padded(targets, np.int64, IGNORED)),
            phonemes=torch.from_numpy(_padded([e.phonemes for e in examples], np.int64, IGNORED)),
            text=torch.from_numpy(
                _padded([layout.tokens[i, :n] for i, n in enumerate(framed)], np.int64)
            ),
            edges=torch.from_numpy(edges),
            trust=torch.tensor([e.trust for e in examples]) * torch.from_numpy(kept),
            kept=torch.from_numpy(kept),
            speaker=torch.from_numpy(np.stack([speaker for speaker, _ in voices])),
            emotion=torch.from_numpy(emotion.astype(np.float32)),
            prompt=prompt,
            prompt_counts=counts,
        )

    def _voice(self, example: Example, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """A speaker embedding and prompt tokens from other rows of the example's voice."""
        voice = self.rows[example.rows[0]].voice
        if self.varied and rng.random() < OTHER_VOICE:
            voice = list(self._of_voice)[rng.integers(len(self._of_voice))]
        candidates = self._of_voice[voice]
        length = int(rng.integers(PROMPT[0], PROMPT[1] + 1)) if self.varied else PROMPT[1]
        prompt: list[np.ndarray] = []
        missing = length
        others = np.setdiff1d(_drawn(candidates, PROMPT_ROWS, rng), example.rows)
        for other in others if len(others) else candidates[:1]:
            row = self.rows[other]
            prompt.append(row.speech[row.first : row.last(PAUSE)][:missing])
            missing -= len(prompt[-1])
        speaker = self._speakers[_drawn(candidates, 1, rng)[0]]
        if self.varied:
            speaker = speaker + SPEAKER_NOISE * rng.standard_normal(len(speaker))
        speaker = speaker / max(float(np.linalg.norm(speaker)), 1e-6)
        return speaker.astype(np.float32), np.concatenate(prompt)


def _places(keys: Iterable[Hashable]) -> dict[Any, np.ndarray]:
    """Where in the sequence each key stands."""
    found = defaultdict(list)
    for place, key in enumerate(keys):
        found[key].append(place)
    return {key: np.array(places) for key, places in found.items()}


def _drawn(places: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    return places[rng.integers(len(places), size=count)]


def _with_errors(speech: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """Some tokens replaced, half of them by the one before, as when speaking freely. Not by the one
    after: what is to follow that is itself, and two equal tokens end the speech."""
    wrong = rng.random(len(speech)) < share
    drawn = rng.integers(0, START_SPEECH, len(speech))
    before = speech[np.maximum(np.arange(len(speech)) - 1, 0)]
    return np.where(wrong, np.where(rng.random(len(speech)) < 0.5, drawn, before), speech)


def _padded(
    arrays: Sequence[np.ndarray], dtype: type, fill: float = 0, repeat: bool = False
) -> np.ndarray:
    """[B, longest], filled up with `fill` or with each row's last value."""
    out = np.full((len(arrays), max(map(len, arrays))), fill, dtype)
    for row, array in zip(out, arrays, strict=True):
        row[: len(array)] = array
        if repeat:
            row[len(array) :] = array[-1]
    return out
