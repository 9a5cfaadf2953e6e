"""Runs the checks of `validate`: generates the audio and evaluates it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _core
from .._overrides import SpeechOverrides
from ..alignment import START_SPEECH
from ..audio import Audio
from ..options import DTYPES, SpeechOptions
from ..tts import TTS
from . import languages, precision, repeatability, seams, spectrum
from .repeatability import sha256
from .report import Result, skipped
from .seams import StreamRun

# The first text is streamed in each of these ways, the others in the first.
CHUNKINGS: tuple[SpeechOverrides, ...] = (
    {},
    {"first_chunk": 6, "chunk": 10},
    {"first_chunk": 20, "chunk": 60},
)
QUICK_CHUNKINGS = CHUNKINGS[:1]
THREADS = (1, 2)
COMPARED_TEXT, COMPARED_TOKENS = 400, 200  # tokens that precisions are compared on


Tick = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """Texts, options and extent of the checks."""

    texts: Sequence[str]
    options: SpeechOptions
    runs: int
    quick: bool
    load: Callable[[str], TTS]  # the same model in another precision

    @property
    def chunkings(self) -> tuple[SpeechOverrides, ...]:
        return QUICK_CHUNKINGS if self.quick else CHUNKINGS

    @property
    def steps(self) -> int:
        """How often `Checklist` reports progress."""
        spoken = self.runs + len(THREADS) + len(self.texts)
        streams = len(self.texts) - 1 + len(self.chunkings)
        return spoken + streams + (0 if self.quick else len(DTYPES))


class Checklist:
    """Generates the texts of a plan and checks the audio; `tick` receives the next step."""

    def __init__(self, tts: TTS, plan: Plan, tick: Tick = lambda doing: None) -> None:
        self._tts = tts
        self._plan = plan
        self._tick = tick
        self.spoken: list[Audio] = []  # each text, once `run` has begun

    def run(self) -> Iterator[Result]:
        """Every check, in the order of the report."""
        yield from self._repeatability()
        yield from self._streaming()
        yield from self._precision()
        clips = [audio.samples for audio in self.spoken]
        yield spectrum.clipping(clips)
        yield spectrum.dc_offset(clips)
        yield spectrum.level(clips)
        yield spectrum.silence(clips)
        yield spectrum.bands(clips)
        yield languages.tokenised(self._tts)

    def _repeatability(self) -> Iterator[Result]:
        first, *others = self._plan.texts
        self.spoken.append(self._generate(first, "speaking"))
        expected = sha256(self.spoken[0].samples)
        again = [self._hash(first, "the same again") for _ in range(self._plan.runs - 1)]
        yield repeatability.same_every_run([expected, *again])
        yield self._threads(first, expected)
        seed = self._plan.options.seed + 1
        other = self._generate(first, "another seed", seed=seed)
        yield repeatability.other_with_another_seed(expected, sha256(other.samples))
        self.spoken += [self._generate(text, "speaking") for text in others]

    def _threads(self, text: str, expected: str) -> Result:
        if self._tts.info["device"] != "cpu":
            return skipped("same seed: threads", "the model is not on the CPU")
        found = {}
        for count in THREADS:
            with threads(count):
                found[count] = self._hash(text, f"{count} threads")
        return repeatability.same_with_threads(expected, found)

    def _streaming(self) -> Iterator[Result]:
        runs = [
            self._stream(text, whole, chunking)
            for number, (text, whole) in enumerate(zip(self._plan.texts, self.spoken, strict=True))
            for chunking in (self._plan.chunkings if number == 0 else QUICK_CHUNKINGS)
        ]
        yield seams.same_tokens(runs)
        yield seams.same_length(runs)
        yield seams.jumps(runs)
        yield seams.kinks(runs)
        yield from seams.likeness(runs)

    def _precision(self) -> Iterator[Result]:
        if self._plan.quick:
            yield skipped("precision", "left out by --quick")
            return
        tokens = self.spoken[0].tokens[:COMPARED_TOKENS]
        dtype = self._tts.info["t3"]["dtype"]
        base = self._reading(self._tts, dtype, self.spoken[0].tokens, tokens)
        others = [self._other_reading(name, tokens) for name in DTYPES if name != dtype]
        yield precision.token_counts(base, others)
        yield precision.same_logits(base, others)
        yield precision.same_sound(base, others)

    def _other_reading(self, dtype: str, tokens: np.ndarray) -> precision.Reading:
        """The same, with a model that is loaded for it and released afterwards."""
        tts = self._plan.load(dtype)
        drawn = tts.generate(self._plan.texts[0], self._plan.options).tokens
        return self._reading(tts, dtype, drawn, tokens)

    def _reading(
        self, tts: TTS, dtype: str, drawn: np.ndarray, tokens: np.ndarray
    ) -> precision.Reading:
        """The results of a precision for the first text and for these tokens."""
        self._tick(f"in {dtype}")
        options = self._plan.options
        voice, seed = options.voice, options.seed
        text_tokens = tts.tokenize(self._plan.texts[0], options.language)[:COMPARED_TEXT]
        logits = tts.t3_logits(text_tokens, np.r_[START_SPEECH, tokens], voice)
        mel = tts.mel(tokens, voice, steps=options.steps, seed=seed)
        return precision.Reading(dtype, drawn, logits[0], mel, tts.vocode(mel, seed=seed))

    def _generate(self, text: str, doing: str, **changed: Any) -> Audio:
        self._tick(doing)
        return self._tts.generate(text, self._plan.options, **changed)

    def _hash(self, text: str, doing: str) -> str:
        return sha256(self._generate(text, doing).samples)

    def _stream(self, text: str, whole: Audio, chunking: SpeechOverrides) -> StreamRun:
        self._tick("streaming")
        chunks = list(self._tts.stream(text, self._plan.options, **chunking))
        ends = np.cumsum([len(chunk.samples) for chunk in chunks])
        name = ", ".join(f"{key} {value}" for key, value in chunking.items()) or "default chunks"
        return StreamRun(
            name,
            np.concatenate([chunk.samples for chunk in chunks]),
            np.concatenate([chunk.tokens for chunk in chunks]),
            [int(end) for end in ends[:-1] if 0 < end < ends[-1]],
            whole,
        )


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Sets the number of threads of the CPU backend inside the block."""
    before = _core.threads()
    _core.set_threads(count)
    try:
        yield
    finally:
        _core.set_threads(before)
