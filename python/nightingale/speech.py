"""A text, segment by segment, to sound: the loop behind `generate` and `stream`."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from . import _core
from .audio import SAMPLE_RATE
from .engine import Engine
from .model_settings import LOOKAHEAD_TOKENS
from .options import SpeechOptions
from .streaming import SentenceSound
from .text import Segment, Tokenizer
from .voice import Voice
from .word_times import Word, WordTimes

logger = logging.getLogger(__name__)

SPEECH_CODES = 6561  # ids below are sound
# Seconds of silence after a segment that another follows, by how it ends.
GAPS = {"sentence": 0.2, "paragraph": 0.5, "clause": 0.08, "cut": 0.0}
# Sentences spoken at once: as many as have independent rows, two each with guidance.
TOGETHER = 8
# The analyser's reasons for ending the speech: earlier text again, the same token again.
TEXT_REPETITION, TOKEN_REPETITION = 2, 4


@dataclass(frozen=True, eq=False)
class Chunk:
    """A part of the speech as it comes."""

    samples: np.ndarray  # [n] float32, mono, in [-1, 1]
    tokens: np.ndarray  # [m] int32, the speech tokens new since the last chunk
    words: list[Word]  # that ended in it: word, start and end in seconds of the whole
    index: int
    timings: dict[str, float] = field(default_factory=dict)  # seconds by stage up to here, and rtf
    sample_rate: int = SAMPLE_RATE


@dataclass(frozen=True)
class SpeechRequest:
    """What to say and how."""

    segments: Sequence[Segment]
    voice: Voice
    options: SpeechOptions  # resolved
    together: bool  # may later sentences be spoken while an earlier one is?
    started: float  # by time.perf_counter
    min_tokens: int = 0  # of a sentence


@dataclass(frozen=True, eq=False)
class _Utterance:
    """A segment of the text on its way to tokens."""

    text_tokens: int
    words: WordTimes
    speech: _core.SpeechTokens


class Speaker:
    """Says one request. `run` yields None after each token and flow step, and chunks."""

    def __init__(self, engine: Engine, tokenizer: Tokenizer, request: SpeechRequest) -> None:
        self._engine = engine
        self._tokenizer = tokenizer
        self._request = request
        prepared = time.perf_counter() - request.started
        self._seconds = {"text": prepared, "t3": 0.0, "flow": 0.0, "vocoder": 0.0}
        self._first_sound: float | None = None
        self._samples = 0
        self._chunks = 0
        self._begun: dict[int, _Utterance] = {}  # by the number of the segment

    def run(self) -> Iterator[Chunk | None]:
        segments = self._request.segments
        for number, segment in enumerate(segments):
            last = number == len(segments) - 1
            silence = _silence(segment, last)
            if segment.text:
                yield from self._sentence(number, silence)
            elif len(silence):
                yield self._chunk(silence)

    def _begin(self, number: int) -> _Utterance:
        """A segment that is being spoken or is about to be."""
        if number not in self._begun:
            request = self._request
            began = time.perf_counter()
            text = _said(request.segments[number])
            text_tokens, *spoken = self._tokenizer.encode_words(text, request.options.language)
            encoded = time.perf_counter()
            speech = self._engine.speak(
                text_tokens,
                request.voice,
                request.options,
                sentence=number,
                min_tokens=request.min_tokens,
            )
            words = WordTimes(*spoken, request.options.speed)
            self._begun[number] = _Utterance(len(text_tokens), words, speech)
            self._seconds["text"] += encoded - began
            self._seconds["t3"] += time.perf_counter() - encoded
        return self._begun[number]

    def _ahead(self, number: int) -> list[_core.SpeechTokens]:
        """What may be spoken along with a segment: those that follow it."""
        if not (self._request.together and self._engine.speaks_together):
            return []
        segments = self._request.segments
        later = (n for n in range(number + 1, len(segments)) if segments[n].text)
        return [self._begin(n).speech for n in islice(later, TOGETHER - 1)]

    def _sentence(self, number: int, silence: np.ndarray) -> Iterator[Chunk | None]:
        request = self._request
        words = self._begin(number).words
        offset = self._samples / SAMPLE_RATE
        sound = SentenceSound(self._engine, request.voice, request.options, number)
        tokens: list[int] = []
        for _ in self._speak(number, tokens):
            if sound.ready(tokens):
                yield from self._advance(sound, tokens, words, offset)
            yield None
        if tokens:
            yield from self._advance(sound, tokens, words, offset, silence)
        else:
            logger.warning("the model said nothing for %r", _said(request.segments[number]))
        del self._begun[number]

    def _advance(
        self,
        sound: SentenceSound,
        tokens: Sequence[int],
        words: WordTimes,
        offset: float,
        silence: np.ndarray | None = None,
    ) -> Iterator[Chunk | None]:
        """The next chunk of a sentence, or the last one, which `silence` follows."""
        last = silence is not None
        told = sound.solved  # tokens that chunks have brought
        for samples in sound.advance(tokens, last):
            if samples is None:
                yield None
                continue
            take = words.take_rest if last else words.take
            spoken = take(sound.sent / SAMPLE_RATE)
            if silence is not None:
                samples = np.concatenate([samples, silence])
            self._add(sound)
            yield self._chunk(samples, tokens[told : sound.solved], spoken, offset)

    def _speak(self, number: int, tokens: list[int]) -> Iterator[None]:
        """Puts what T3 says in `tokens`, one a turn; what it says astray goes at the end."""
        said, ahead = self._begin(number), self._ahead(number)
        speech = said.speech
        began = time.perf_counter()
        positions: list[int] = []
        while (token := self._engine.next_token(speech, ahead)) is not None:
            if token < SPEECH_CODES:
                tokens.append(token)
                positions.append(speech.text_position)
                said.words.add_token(positions[-1])
            self._seconds["t3"] += time.perf_counter() - began
            yield None
            began = time.perf_counter()
        self._seconds["t3"] += time.perf_counter() - began
        end = said.text_tokens + 2
        del tokens[len(tokens) - _astray(tokens, positions, end, speech.stop_forced) :]

    def _add(self, sound: SentenceSound) -> None:
        """Counts what a sentence's sound has taken since it was last counted."""
        for stage, seconds in sound.timings.items():
            self._seconds[stage] += seconds
            sound.timings[stage] = 0.0

    def _chunk(
        self,
        samples: np.ndarray,
        tokens: Sequence[int] = (),
        words: Sequence[Word] = (),
        offset: float = 0.0,
    ) -> Chunk:
        self._samples += len(samples)
        total = time.perf_counter() - self._request.started
        if self._first_sound is None:
            self._first_sound = total
        timings = {
            **self._seconds,
            "total": total,
            "ttfa": self._first_sound,
            "rtf": total / max(self._samples / SAMPLE_RATE, 1e-9),
        }
        shifted = [
            (word, round(start + offset, 3), round(end + offset, 3)) for word, start, end in words
        ]
        index, self._chunks = self._chunks, self._chunks + 1
        return Chunk(samples, np.array(tokens, np.int32), shifted, index, timings)


def _said(segment: Segment) -> str:
    """A segment's text; one that ends inside a clause gets a comma, so that the voice stays up."""
    inside = segment.ends == "cut" and segment.text[-1].isalnum()
    return f"{segment.text}," if inside else segment.text


def _silence(segment: Segment, last: bool) -> np.ndarray:
    """What follows a segment: the pause that was asked for, or a natural gap before the next."""
    gap = 0.0 if last or not segment.text else GAPS[segment.ends]
    return np.zeros(round(max(segment.pause, gap) * SAMPLE_RATE), np.float32)


def _astray(tokens: Sequence[int], positions: Sequence[int], end: int, forced: int) -> int:
    """How many of the last tokens the analyser's forced stop came too late for.

    At most the look-ahead, which no chunk has brought yet.
    """
    count = 0
    while count < min(LOOKAHEAD_TOKENS, len(tokens) - 1):
        last = len(tokens) - 1 - count
        repeated = forced & TOKEN_REPETITION and tokens[last] == tokens[last - 1]
        earlier = forced & TEXT_REPETITION and positions[last] < end - 3
        if not (repeated or earlier):
            break
        count += 1
    return count
