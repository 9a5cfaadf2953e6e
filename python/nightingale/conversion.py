"""Voice conversion: a recording to speech tokens, and those to sound in another voice."""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from . import _core
from ._core import Error
from .audio import SAMPLE_RATE, Audio
from .chunks import Chunk
from .engine import Engine
from .long_recording import MOST_SECONDS, Level, LongRecording
from .networks import flow_side
from .options import SpeechOptions, conversion_names
from .voice import Voice

# The speech tokenizer hears 30 s at most. Windows of a longer recording overlap by 4 s, and the
# tokens of each half of the overlap come from the window in which they are further inside.
HOP = 160  # samples from a frame to the next
FRAMES_PER_TOKEN = 4
WINDOW, STRIDE, HALF_OVERLAP = 750, 650, 50  # tokens
MARGIN = 2  # frames at an end of a part that hear what is beyond it
# A recording of WHOLE tokens is solved as one, as the reference does; longer ones in sections.
WHOLE, SECTION = 750, 500
CONTEXT = 100  # tokens before a chunk that its solution sees


def conversion_options(
    function: str,
    options: SpeechOptions | None,
    overrides: Mapping[str, Any],
    chunks: bool = False,
) -> SpeechOptions:
    """What a function was given, or a ValueError that names an option without effect on a
    conversion. chunks: are those that divide a stream among its options?"""
    found = SpeechOptions.merged(function, options, overrides)
    used = conversion_names(chunks)
    changed = (name for name in vars(found) if getattr(found, name) != _DEFAULTS[name])
    for name in (*overrides, *changed):
        if name not in used:
            raise ValueError(
                f"{function}() has no use for {name}: the words come from the recording; "
                f"its options are {', '.join(used)}"
            )
    return found


_DEFAULTS = vars(SpeechOptions())


class Converter:
    """Converts a recording. `run` yields None after each part of the work, and chunks.

    The recording is read twice: what the tokenizer hears depends on the loudest sound in it, and
    what cannot be converted is then told before any sound is made.
    """

    def __init__(
        self, engine: Engine, recording: LongRecording, voice: Voice, options: SpeechOptions
    ) -> None:
        """options: resolved; undivided where `first_chunk` is None, but for long recordings"""
        flow_side(voice)
        engine.s3gen()
        self._started = time.perf_counter()
        self._engine = engine
        self._recording = recording
        self._voice = voice
        self._options = replace(options, context=options.context or CONTEXT)
        self._seconds = {"tokenizer": 0.0, "flow": 0.0, "vocoder": 0.0}
        self._first_sound = 0.0
        self._chunks = 0

    def run(self) -> Iterator[Chunk | None]:
        heard = yield from self._hear_all()
        cuts = _cuts(self._options, heard.tokens)
        # The end is the recording's own: nothing is cut off.
        sound = self._engine.sentence_sound(
            self._voice, self._options, cuts=cuts, drop_last_token=False
        )
        tokens: list[int] = []
        for found in self._tokens(heard):
            tokens += found
            yield None
            while sound.ready(len(tokens)):
                yield from self._advance(sound, tokens, last=False)
        yield from self._advance(sound, tokens, last=True)

    def _advance(
        self, sound: _core.SentenceSound, tokens: list[int], last: bool
    ) -> Iterator[Chunk | None]:
        told = sound.solved
        self._engine.begin_chunk(sound, tokens, last)
        while (samples := self._engine.step(sound)) is None:
            yield None
        sound.forget()
        self._seconds |= {"flow": sound.flow_seconds, "vocoder": sound.vocoder_seconds}
        yield self._chunk(samples, tokens[told : sound.solved], sound.sent)

    def _chunk(self, samples: np.ndarray, tokens: list[int], sent: int) -> Chunk:
        total = time.perf_counter() - self._started
        self._first_sound = self._first_sound or total
        timings = {
            **self._seconds,
            "total": total,
            "ttfa": self._first_sound,
            "rtf": total / max(sent / SAMPLE_RATE, 1e-9),
        }
        index, self._chunks = self._chunks, self._chunks + 1
        return Chunk(samples, np.array(tokens, np.int32), [], index, timings)

    def _hear_all(self) -> Generator[None, None, _Heard]:
        """Checks the whole recording and finds what its tokens depend on."""
        level = Level(self._recording.name, MOST_SECONDS)
        part = _Part(self._engine, self._recording, level)
        loudest, first = -math.inf, 0
        while not part.over(first):
            began = time.perf_counter()
            end = first + FRAMES_PER_TOKEN * WINDOW
            loudest = max(loudest, float(part.log_mel(first, end).max(initial=-math.inf)))
            first = end
            self._seconds["tokenizer"] += time.perf_counter() - began
            yield None
        level.check()
        return _Heard(level.samples, loudest)

    def _tokens(self, heard: _Heard) -> Iterator[list[int]]:
        """The speech tokens, in one list for each window."""
        level = Level(self._recording.name, MOST_SECONDS)
        part = _Part(self._engine, self._recording, level)
        for begin in range(0, max(1, heard.tokens - HALF_OVERLAP), STRIDE):
            began = time.perf_counter()
            first = FRAMES_PER_TOKEN * begin
            frames = part.log_mel(first, first + FRAMES_PER_TOKEN * WINDOW)
            found = self._engine.recording_tokens(frames, heard.loudest)
            skipped = HALF_OVERLAP if begin else 0
            is_last = begin + STRIDE + HALF_OVERLAP >= heard.tokens
            kept = found[skipped:] if is_last else found[skipped : STRIDE + HALF_OVERLAP]
            self._seconds["tokenizer"] += time.perf_counter() - began
            yield kept.tolist()
        part.read_to_end()
        if level.samples != heard.samples:
            raise Error(f"{self._recording.name} changed while it was converted")


def _cuts(options: SpeechOptions, tokens: int) -> list[int] | None:
    """Token counts at which a chunk ends; None: as the options say."""
    if options.first_chunk is not None:
        return None
    return list(range(SECTION, tokens - SECTION // 2, SECTION)) if tokens > WHOLE else []


@dataclass(frozen=True)
class _Heard:
    """A whole recording."""

    samples: int  # at 16 kHz
    loudest: float  # value of its log-mel

    @property
    def tokens(self) -> int:
        return math.ceil(self.samples // HOP / FRAMES_PER_TOKEN)


class _Part:
    """The part of a recording that is in memory, which moves on through it."""

    def __init__(self, engine: Engine, recording: LongRecording, level: Level) -> None:
        self._engine = engine
        self._blocks = recording.blocks()
        self._level = level
        self._samples = np.zeros(0, np.float32)
        self._begin = 0  # which sample of the recording is the first of them
        self._ended = False

    def over(self, frame: int) -> bool:
        """Whether the recording has ended before this frame."""
        self._read(HOP * (frame + 1))
        return self._ended and self._level.samples < HOP * (frame + 1)

    def log_mel(self, first: int, end: int) -> np.ndarray:
        """Frames [first, end) as the tokenizer hears them in the whole recording, or up to its
        end. What is before `first` is not asked for again."""
        begin = max(0, first - MARGIN)
        self._read(HOP * (end + MARGIN))
        self._samples = self._samples[HOP * begin - self._begin :]
        self._begin = HOP * begin
        if self._ended:
            self._level.check()
        heard = self._engine.log_mel(self._samples[: HOP * (end + MARGIN - begin)])
        return heard[first - begin : end - begin]

    def read_to_end(self) -> None:
        for block in self._blocks:
            self._level.add(block)

    def _read(self, end: int) -> None:
        """Samples up to this one, where there are as many."""
        blocks = [self._samples]
        while not self._ended and self._level.samples < end:
            block = next(self._blocks, None)
            if block is None:
                self._ended = True
            else:
                self._level.add(block)
                blocks.append(block)
        self._samples = np.concatenate(blocks)


def whole(chunks: Iterator[Chunk | None]) -> Audio:
    """All chunks of a conversion as one."""
    made = [chunk for chunk in chunks if chunk is not None]
    return Audio(
        np.concatenate([chunk.samples for chunk in made]),
        np.concatenate([chunk.tokens for chunk in made]),
        made[-1].timings,
    )
