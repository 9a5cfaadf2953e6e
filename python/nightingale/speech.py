"""A text, segment by segment, to sound: the loop behind `generate` and `stream`."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

import numpy as np

from . import _core
from .audio import SAMPLE_RATE
from .engine import Engine
from .model_settings import LOOKAHEAD_TOKENS
from .options import SpeechOptions
from .streaming import SentenceSound
from .text import Segment
from .text.segment import Style
from .voice import Voice
from .word_times import Word, WordTimes

logger = logging.getLogger(__name__)

SPEECH_CODES = 6561  # ids below are sound
# Seconds of silence after a segment that another follows, by how it ends.
GAPS = {"sentence": 0.2, "paragraph": 0.5, "clause": 0.08, "cut": 0.0}
# Sentences spoken at once: as many as have independent rows, two each with guidance.
TOGETHER = 8
LONGEST_SILENCE = SAMPLE_RATE  # samples; a longer pause comes in several chunks
# The analyser's reasons for ending the speech: earlier text again, the same token again.
TEXT_REPETITION, TOKEN_REPETITION = 2, 4


@dataclass(frozen=True, eq=False)
class Chunk:
    """A part of the speech as it comes."""

    samples: np.ndarray  # [n] float32, mono, in [-1, 1]
    tokens: np.ndarray  # [m] int32, the speech tokens new since the last chunk
    words: list[Word]  # that ended in it, with times in seconds of the whole
    index: int
    timings: dict[str, float] = field(default_factory=dict)  # seconds by stage up to here, and rtf
    unspoken: list[str] = field(default_factory=list)  # left out of the text; in the first chunk
    ignored: list[str] = field(default_factory=list)  # options without effect; in the first chunk
    sample_rate: int = SAMPLE_RATE
    text_tokens: int = 0  # of the sentence that begins with it
    language: str = ""  # code of the language that the text is read in


@dataclass(frozen=True, eq=False)
class _Utterance:
    """A segment of the text on its way to tokens."""

    text_tokens: int
    words: WordTimes
    speech: _core.SpeechTokens
    check: Callable[[list[int]], None]  # of the tokens so far


@dataclass(frozen=True, eq=False)
class Manner:
    """In which voice and with which options something is said."""

    voice: Voice
    options: SpeechOptions  # resolved


@dataclass(eq=False)
class Speaker:
    """Says a text. `run` yields None after each token and flow step, and chunks."""

    engine: Engine
    segments: Sequence[Segment]  # tokenised
    voice: Voice
    options: SpeechOptions  # resolved
    started: float  # by time.perf_counter
    together: bool = False  # may later sentences be spoken while an earlier one is?
    min_tokens: int = 0  # of a sentence
    ignored: Sequence[str] = ()  # options that were given and have no effect
    manners: Mapping[Style, Manner] = field(
        default_factory=dict
    )  # of segments with their own style

    def __post_init__(self) -> None:
        prepared = time.perf_counter() - self.started
        self._seconds = {"text": prepared, "t3": 0.0, "flow": 0.0, "vocoder": 0.0}
        self._first_sound: float | None = None
        self._samples = 0
        self._chunks = 0
        self._begun: dict[int, _Utterance] = {}  # by the number of the segment
        self._manner = Manner(self.voice, self.options)

    def run(self) -> Iterator[Chunk | None]:
        for number, segment in enumerate(self.segments):
            silence = _silence(segment, last=number == len(self.segments) - 1)
            if segment.text:
                yield from self._sentence(number, silence)
            else:
                yield from map(self._chunk, silence)

    def _manner_of(self, number: int) -> Manner:
        return self.manners.get(self.segments[number].style, self._manner)

    def _begin(self, number: int) -> _Utterance:
        """A segment that is being spoken or is about to be."""
        if number not in self._begun:
            began = time.perf_counter()
            encoded, manner = self.segments[number].encoded, self._manner_of(number)
            assert encoded is not None, "the segment has not been tokenised"
            options = manner.options
            speech = self.engine.speak(
                encoded.ids, manner.voice, options, sentence=number, min_tokens=self.min_tokens
            )
            times = WordTimes(encoded.words, encoded.word_of, options.speed)
            check = partial(self.engine.check_spoken, encoded.ids, manner.voice, options)
            self._begun[number] = _Utterance(len(encoded.ids), times, speech, check)
            self._seconds["t3"] += time.perf_counter() - began
        return self._begun[number]

    def _ahead(self, number: int) -> list[_core.SpeechTokens]:
        """What may be spoken along with a segment: those that follow it."""
        if not (self.together and self.engine.speaks_together):
            return []
        later = (n for n in range(number + 1, len(self.segments)) if self.segments[n].text)
        return [self._begin(n).speech for n in islice(later, TOGETHER - 1)]

    def _sentence(self, number: int, silence: Iterator[np.ndarray]) -> Iterator[Chunk | None]:
        begun = self._begin(number)
        words, text_tokens = begun.words, begun.text_tokens
        offset = self._samples / SAMPLE_RATE
        manner = self._manner_of(number)
        sound = SentenceSound(self.engine, manner.voice, manner.options, number, self._seconds)
        tokens: list[int] = []

        def advance(silence: np.ndarray | None = None) -> Iterator[Chunk | None]:
            """The next chunk of the sentence, or the last one, which `silence` follows."""
            nonlocal text_tokens
            told = sound.solved  # tokens that chunks have brought
            closing = self.engine.rules.closing_tokens if silence is not None else ()
            for samples in sound.advance([*tokens, *closing], last=silence is not None):
                if samples is None:
                    yield None
                    continue
                self._follow(number, tokens, to_end=silence is not None)
                take = words.take if silence is None else words.take_rest
                spoken = take(sound.sent / SAMPLE_RATE)
                if silence is not None:
                    samples = np.concatenate([samples, silence])
                new = tokens[told : sound.solved]
                yield self._chunk(samples, new, spoken, offset, text_tokens)
                text_tokens = 0

        for _ in self._speak(number, tokens):
            if sound.ready(tokens):
                yield from advance()
            yield None
        if tokens:
            yield from advance(next(silence, np.zeros(0, np.float32)))
        del self._begun[number]
        if tokens:
            yield from map(self._chunk, silence)
        else:
            logger.warning("the model said nothing for %r", self.segments[number].said)

    def _follow(self, number: int, tokens: Sequence[int], to_end: bool) -> None:
        """Tells the words where in the text the tokens are, where that is not known as they
        come."""
        encoded, manner = self.segments[number].encoded, self._manner_of(number)
        if self.engine.follows_while_speaking or encoded is None:
            return
        began = time.perf_counter()
        self._begun[number].words.set_positions(
            self.engine.follow(encoded.ids, tokens, manner.voice, manner.options, to_end)
        )
        self._seconds["t3"] += time.perf_counter() - began

    def _speak(self, number: int, tokens: list[int]) -> Iterator[None]:
        """Puts what T3 says in `tokens`, one a turn; what it says astray goes at the end."""
        said, ahead = self._begin(number), self._ahead(number)
        speech = said.speech
        began = time.perf_counter()
        positions: list[int] = []
        while (token := self.engine.next_token(speech, ahead)) is not None:
            if token < SPEECH_CODES:
                tokens.append(token)
                said.check(tokens)
                positions.append(speech.text_position)
                said.words.add_token(positions[-1])
            self._seconds["t3"] += time.perf_counter() - began
            yield None
            began = time.perf_counter()
        self._seconds["t3"] += time.perf_counter() - began
        end = said.text_tokens + 2
        del tokens[len(tokens) - _astray(tokens, positions, end, speech.stop_forced) :]

    def _chunk(
        self,
        samples: np.ndarray,
        tokens: Sequence[int] = (),
        words: Sequence[Word] = (),
        offset: float = 0.0,
        text_tokens: int = 0,
    ) -> Chunk:
        self._samples += len(samples)
        total = time.perf_counter() - self.started
        if self._first_sound is None:
            self._first_sound = total
        timings = {
            **self._seconds,
            "total": total,
            "ttfa": self._first_sound,
            "rtf": total / max(self._samples / SAMPLE_RATE, 1e-9),
        }
        shifted = [word.later(offset) for word in words]
        index, self._chunks = self._chunks, self._chunks + 1
        new = np.array(tokens, np.int32)
        return Chunk(
            samples,
            new,
            shifted,
            index,
            timings,
            self._unspoken(index),
            [] if index else list(self.ignored),
            text_tokens=text_tokens,
            language=self.options.language,
        )

    def _unspoken(self, index: int) -> list[str]:
        """Characters that are left out of the text, each once; the first chunk has them."""
        found = (c for segment in self.segments for c in segment.unspoken)
        return [] if index else list(dict.fromkeys(found))


def _silence(segment: Segment, last: bool) -> Iterator[np.ndarray]:
    """What follows a segment, made as it is asked for: the pause that was asked for, or a natural
    gap before the next."""
    gap = 0.0 if last or not segment.text else GAPS[segment.ends]
    samples = round(max(segment.pause, gap) * SAMPLE_RATE)
    for begin in range(0, samples, LONGEST_SILENCE):
        yield np.zeros(min(LONGEST_SILENCE, samples - begin), np.float32)


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
