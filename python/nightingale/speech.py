"""A text, segment by segment, to sound: the loop behind `generate` and `stream`."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from . import _core
from .audio import SAMPLE_RATE
from .chunks import Chunk
from .engine import Engine
from .options import SpeechOptions
from .text import Segment
from .text.segment import Style
from .voice import Voice
from .word_times import spoken_words

logger = logging.getLogger(__name__)


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
        self._prepared = time.perf_counter() - self.started
        self._first_sound: float | None = None
        self._chunks = 0
        self._manner = Manner(self.voice, self.options)

    def run(self) -> Iterator[Chunk | None]:
        session = self.engine.session(self.together, self.min_tokens)
        waiting = deque(self.segments)
        while waiting or not session.done:
            while waiting and session.wants_segment:
                segment = waiting.popleft()
                self._add(session, segment, last=not waiting)
            if not session.done:
                spoken = self.engine.step(session)
                self._note_ended(session)
                yield None if spoken is None else self._chunk(spoken)

    def _add(self, session: _core.Session, segment: Segment, last: bool) -> None:
        silence = round(segment.silence(last) * SAMPLE_RATE)
        if segment.encoded is None:
            session.add_silence(silence)
            return
        manner = self.manners.get(segment.style, self._manner)
        self.engine.add(session, segment.encoded, manner.voice, manner.options, silence)

    def _note_ended(self, session: _core.Session) -> None:
        for ended in session.take_ended():
            if ended.silent:
                logger.warning("the model said nothing for %r", self.segments[ended.segment].said)
            if self.engine.drafts is not None and self.segments[ended.segment].text:
                self.engine.drafts.count(ended.speculation)

    def _chunk(self, spoken: _core.SpokenChunk) -> Chunk:
        total = time.perf_counter() - self.started
        if self._first_sound is None:
            self._first_sound = total
        timings = {
            "text": self._prepared,
            **spoken.seconds,
            "total": total,
            "ttfa": self._first_sound,
            "rtf": total / max(spoken.spoken / SAMPLE_RATE, 1e-9),
        }
        encoded = self.segments[spoken.segment].encoded
        words = [] if encoded is None else spoken_words(encoded.words, spoken.words)
        index, self._chunks = self._chunks, self._chunks + 1
        return Chunk(
            spoken.samples,
            spoken.tokens,
            [word.later(spoken.offset) for word in words],
            index,
            timings,
            self._unspoken(index),
            [] if index else list(self.ignored),
            text_tokens=spoken.text_tokens,
            language=self.options.language,
        )

    def _unspoken(self, index: int) -> list[str]:
        """Characters that are left out of the text, each once; the first chunk has them."""
        found = (c for segment in self.segments for c in segment.unspoken)
        return [] if index else list(dict.fromkeys(found))
