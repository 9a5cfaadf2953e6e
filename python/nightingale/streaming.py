"""One sentence's speech tokens to sound, whole or chunk by chunk, without seams."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence

import numpy as np

from .audio import SAMPLE_RATE
from .engine import FRAME_SAMPLES, MELS, Engine, flow_side
from .options import SpeechOptions
from .voice import Voice

FRAMES_PER_TOKEN = 2
TOKEN_SAMPLES = FRAMES_PER_TOKEN * FRAME_SAMPLES
CHUNK_GROWTH = 1.5  # of each chunk over the one before it, from the third
LONGEST_CHUNK = 100  # tokens, or the second chunk's where that is longer
CROSS_FADE = 480  # samples over which a chunk goes over into the next
FADE_OUT = 240
BLEND = 2  # frames over which a chunk's mel goes over into the next one's
SHORTEST_CUT = 8  # tokens of speech from which the last one's sound is dropped


def chunk_ends(options: SpeechOptions) -> Iterator[int]:
    """Token counts at which a chunk of a sentence ends; none where sentences are not divided."""
    if options.first_chunk is None:
        return
    end, length = options.first_chunk, float(options.chunk)
    while True:
        yield end
        end += round(length)
        length = min(CHUNK_GROWTH * length, max(LONGEST_CHUNK, options.chunk))


class SentenceSound:
    """The sound of one sentence, made while its tokens come. options: resolved; seconds: by stage,
    to which those of the flow and the vocoder are added; cuts: token counts at which a chunk ends,
    in place of those that the options ask for.

    A chunk's frames are solved with some tokens of look-ahead, as many as the model asks for.
    Those of its last `overlap` tokens are kept back and soon give way to what the next chunk, which
    sees more, makes of them. The vocoder takes only frames that will not change; what it would say
    next is heard from a copy of its state, which knows the frames that may, and fades into what it
    does say.
    """

    def __init__(
        self,
        engine: Engine,
        voice: Voice,
        options: SpeechOptions,
        sentence: int = 0,
        seconds: dict[str, float] | None = None,
        cuts: Iterator[int] | None = None,
    ) -> None:
        self._engine = engine
        self._voice = voice
        self._options = options
        self._sentence = sentence
        self._cuts = chunk_ends(options) if cuts is None else cuts
        self._cut = next(self._cuts, None)
        self._lookahead = engine.flow_settings.lookahead  # tokens
        self._speed = options.speed
        prompt_tokens, prompt_mel, _ = flow_side(voice)
        self._prompt_excess = len(prompt_mel) - FRAMES_PER_TOKEN * len(prompt_tokens)
        self.mel = np.zeros((0, MELS), np.float32)  # every frame that was not forgotten
        self._first = 0  # which frame of the sentence is the first of them
        self._settled = 0  # frames of it that will not change
        self.solved = 0  # tokens
        self._state = engine.begin_sound(options.seed, sentence)
        self._fed = 0  # frames, at the speed asked for, that the vocoder has taken
        self._sounded = 0  # samples it has given
        self.sent = 0  # samples the listener has
        self._held = np.zeros(0, np.float32)  # what the last chunk had to say after them
        self._seconds = {"flow": 0.0, "vocoder": 0.0} if seconds is None else seconds

    def ready(self, tokens: Sequence[int]) -> bool:
        """Whether the next chunk can be made of these tokens, with more to come."""
        return self._cut is not None and len(tokens) >= self._cut + self._lookahead

    def advance(self, tokens: Sequence[int], last: bool) -> Iterator[np.ndarray | None]:
        """Makes the next chunk: None after each step of the flow, then its samples."""
        started = time.perf_counter()
        end = len(tokens) if last else self._cut
        assert end is not None
        yield from self._solve(tokens, end, last)
        solved = time.perf_counter()
        samples = self._sound(last)
        if last:
            samples = self._ended(samples, len(tokens))
        samples = fade_in(samples, self.sent)
        self.sent += len(samples)
        self._seconds["flow"] += solved - started
        self._seconds["vocoder"] += time.perf_counter() - solved
        self._cut = next(self._cuts, None)
        yield samples

    def forget(self) -> None:
        """Drops the frames of the mel that neither the vocoder nor a later chunk looks at."""
        needed = min(self._settled, int((self._fed + 0.5) * self._speed - 0.5))
        self.mel = self.mel[max(0, needed - self._first) :]
        self._first = max(self._first, needed)

    def _solve(self, tokens: Sequence[int], end: int, last: bool) -> Iterator[None]:
        """Frames up to the token `end`, blended into those there are."""
        begin = 0  # the first token that the solution sees
        if self._options.context is not None:
            begin = max(0, self._settled // FRAMES_PER_TOKEN - self._options.context)
        first_frame = FRAMES_PER_TOKEN * begin
        frames = yield from self._engine.mel(
            tokens[begin:] if last else tokens[begin : end + self._lookahead],
            self._voice,
            self._options,
            finalize=last,
            first_frame=first_frame,
            sentence=self._sentence,
        )
        fresh = frames[self._settled - first_frame :]
        self.mel = _blend(self.mel, fresh, self._settled - self._first)
        self.solved = end
        kept_back = 0 if last else self._options.overlap
        self._settled = max(0, FRAMES_PER_TOKEN * (end - kept_back) - self._prompt_excess)

    def _sound(self, last: bool) -> np.ndarray:
        """The samples of all settled frames that the listener does not have."""
        begin = self._sounded
        known = self._first + len(self.mel)
        if last:
            samples = self._feed(stretched_length(known, self._speed), last=True)
            return self._crossed(samples[self.sent - begin :])
        samples = self._feed(determined_length(self._settled, self._speed), last=False)
        frames = determined_length(known, self._speed)
        ahead = stretch(self.mel, self._speed, self._fed, frames, self._first)
        unsettled = self._engine.sound(self._state.copy(), ahead, last=True)
        samples = self._crossed(np.concatenate([samples, unsettled])[self.sent - begin :])
        count = max(0, FRAME_SAMPLES * self._fed - CROSS_FADE - self.sent)
        self._held = samples[count : count + CROSS_FADE]
        return samples[:count]

    def _feed(self, frames: int, last: bool) -> np.ndarray:
        """Takes the vocoder to this many frames; the samples that are ready then."""
        fresh = stretch(self.mel, self._speed, self._fed, frames, self._first)
        samples = self._engine.sound(self._state, fresh, last=last)
        self._fed = frames
        self._sounded += len(samples)
        return samples

    def _ended(self, samples: np.ndarray, tokens: int) -> np.ndarray:
        """The last chunk's samples as the sentence is to end, which has so many tokens."""
        return _end(samples, tokens)

    def _crossed(self, samples: np.ndarray) -> np.ndarray:
        """Samples that follow those sent, faded in over what the last chunk had to say."""
        return _cross_fade(self._held[: len(samples)], samples)


def _blend(mel: np.ndarray, fresh: np.ndarray, settled: int) -> np.ndarray:
    """`mel` up to `settled`, then `fresh`, which takes over within BLEND frames from what `mel` had
    there."""
    old = mel[settled : settled + min(BLEND, len(fresh))]
    return np.concatenate([mel[:settled], _cross_fade(old, fresh)])


def _cross_fade(old: np.ndarray, fresh: np.ndarray) -> np.ndarray:
    """`fresh`, faded in over `old`, which is not longer."""
    count = len(old)
    weight = ((np.arange(count) + 0.5) / max(count, 1)).astype(np.float32)
    weight = weight.reshape(-1, *[1] * (old.ndim - 1))
    return np.concatenate([(1 - weight) * old + weight * fresh[:count], fresh[count:]])


def fade_in(samples: np.ndarray, begin: int = 0) -> np.ndarray:
    """20 ms of silence and 20 ms of fade-in: what spills over from the voice's prompt goes.

    begin: where in the sentence the samples stand.
    """
    count = SAMPLE_RATE // 50
    fade = (np.cos(np.linspace(np.pi, 0, count)) + 1) / 2
    gain = np.concatenate([np.zeros(count), fade]).astype(np.float32)[begin:][: len(samples)]
    faded = samples.copy()
    faded[: len(gain)] *= gain
    return faded


def _end(samples: np.ndarray, tokens: int) -> np.ndarray:
    """Without the last token's sound, which is often a click or a breath, and faded out."""
    if tokens >= SHORTEST_CUT:
        samples = samples[: max(0, len(samples) - TOKEN_SAMPLES)]
    return fade_out(samples)


def fade_out(samples: np.ndarray) -> np.ndarray:
    """Faded out over the last 10 ms."""
    count = min(FADE_OUT, len(samples))
    faded = samples.copy()
    faded[len(samples) - count :] *= np.linspace(1, 0, count, dtype=np.float32)
    return faded


def stretched_length(frames: int, speed: float) -> int:
    """Frames that a mel has at another speed."""
    return frames if speed == 1 else max(1, round(frames / speed))


def determined_length(frames: int, speed: float) -> int:
    """How many of the stretched frames these decide, whatever follows them."""
    return frames if speed == 1 else max(0, math.ceil((frames - 0.5) / speed - 0.5))


def stretch(mel: np.ndarray, speed: float, begin: int, end: int, first: int = 0) -> np.ndarray:
    """Frames [begin, end) of a mel at another speed, linear between those there are. first: which
    of its frames is mel[0]."""
    if speed == 1:
        return mel[begin - first : end - first]
    last = first + len(mel) - 1
    places = np.clip((np.arange(begin, end) + 0.5) * speed - 0.5, 0, last)
    lower = places.astype(np.int64)
    upper = np.minimum(lower + 1, last) - first
    weight = (places - lower).astype(np.float32)[:, None]
    stretched: np.ndarray = (1 - weight) * mel[lower - first] + weight * mel[upper]
    return stretched
