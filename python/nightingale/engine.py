"""The models of one checkpoint and the order in which callers use them."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any

import numpy as np

from . import _core
from .hearing import Hearing
from .options import SpeechOptions
from .text.segment import Encoded
from .voice import Voice

HARMONICS = 9
FRAME_SAMPLES = 480


class Engine(Hearing):
    """All models. Callers take turns, one pass of T3 or flow step each.

    Dropping what a `begin_*` or `speak` returned is all that cancelling takes.
    """

    found_heads: list[tuple[int, int]] | None = None  # None: they were not looked for

    def speak(
        self, text_tokens: np.ndarray, voice: Voice, options: SpeechOptions, **request: Any
    ) -> _core.SpeechTokens:
        """Begins to say a text; `next_token` gives its speech tokens. options: resolved; request:
        further arguments of the core's `speak`."""
        with self._turn:
            condition = self._condition(voice, options.exaggeration)
            return self.t3.speak(
                text_tokens,
                condition.cache,
                options,
                analyser=self.settings["analyser"],
                draft=condition.draft,
                **request,
            )

    @property
    def speaks_together(self) -> bool:
        """Whether several texts can be spoken at once, without changing any."""
        return self.drafts is None and self.settings["kv_budget"] is None

    def next_token(
        self, speech: _core.SpeechTokens, ahead: Sequence[_core.SpeechTokens] = ()
    ) -> int | None:
        """The next token; where that takes a step, those `ahead` take theirs in the same pass."""
        with self._turn, self._naming_tensors():
            token = speech.next(list(ahead))
            if token is None and self.drafts is not None:
                self.drafts.count(speech.speculation)
            return token

    def tokens(self, speech: _core.SpeechTokens) -> Iterator[int]:
        """All tokens."""
        while (token := self.next_token(speech)) is not None:
            yield token

    def session(self, together: bool = False, min_tokens: int = 0) -> _core.Session:
        """What says the segments that `add` gives it, step by step."""
        self.s3gen()
        has_positions = self.follows_while_speaking or self.found_heads == []
        return _core.Session(
            self._model,
            together=together and self.speaks_together,
            analyser=self.settings["analyser"],
            min_tokens=min_tokens,
            closing_tokens=list(self.rules.closing_tokens),
            followed=None if has_positions else self.found_heads or [],
        )

    def add(
        self,
        session: _core.Session,
        encoded: Encoded,
        voice: Voice,
        options: SpeechOptions,
        silence: int,
    ) -> None:
        """Gives a session its next segment, in this voice and with these options, resolved, and
        the samples of silence after it."""
        with self._turn:
            condition = self._condition(voice, options.exaggeration)
            flow_voice = _core.FlowVoice(*self._flow_side(voice))
            manner = _core.Manner(
                condition.cache, condition.draft, flow_voice, options, condition.digest
            )
            session.add(manner, encoded.ids, len(encoded.words), encoded.word_of, silence)

    def sentence_sound(
        self, voice: Voice, options: SpeechOptions, **request: Any
    ) -> _core.SentenceSound:
        """What makes sound of speech tokens, chunk by chunk. request: further arguments of the
        core's."""
        self.s3gen()
        flow_voice = _core.FlowVoice(*self._flow_side(voice))
        return _core.SentenceSound(self._model, flow_voice, options, **request)

    def begin_chunk(self, sound: _core.SentenceSound, tokens: list[int], last: bool) -> None:
        with self._turn:
            sound.begin(tokens, last)

    def step(self, work: _core.Session | _core.SentenceSound) -> Any:
        """One token, one step of the flow, or what that completes: a chunk, or its samples."""
        with self._turn, self._naming_tensors():
            return work.step()

    def logits(
        self, text_tokens: np.ndarray, speech_tokens: np.ndarray, voice: Voice
    ) -> np.ndarray:
        with self._turn:
            cache = self._condition(voice, voice.emotion_adv).cache
            return self.t3.logits(text_tokens, speech_tokens, cache)

    def text_positions(
        self, text_tokens: np.ndarray, speech_tokens: np.ndarray, voice: Voice
    ) -> list[int]:
        """Where in the text, start and stop included, each speech token would be spoken."""
        with self._turn:
            cache = self._condition(voice, voice.emotion_adv).cache
            return self.t3.text_positions(text_tokens, speech_tokens, cache)

    def text_weights(
        self,
        text_tokens: np.ndarray,
        queries: np.ndarray,
        voice: Voice,
        emotion: float | None,
        heads: list[tuple[int, int]],
    ) -> np.ndarray:
        """What heads give to the text at each query, and before the first."""
        with self._turn:
            cache = self._condition(voice, emotion).cache
            return self.t3.text_weights(text_tokens, queries, cache, heads)

    @property
    def follows_while_speaking(self) -> bool:
        """Whether T3's analyser gives the text positions of speech tokens as they come."""
        return bool(self.settings["analyser"])

    @property
    def knows_heads(self) -> bool:
        """Whether heads are known that follow the text, from the files or found."""
        return self.settings["alignment"] or self.found_heads is not None

    def mel(
        self,
        tokens: Sequence[int] | np.ndarray,
        voice: Voice,
        options: SpeechOptions,
        **request: Any,
    ) -> Generator[None, None, np.ndarray]:
        """Solves the flow, with a turn for each step; gives the new frames, [frames, 80]."""
        flow, _ = self.s3gen()
        given = (np.asarray(tokens, np.int32), *self._flow_side(voice), options)
        with self._turn:
            solver = flow.solve(*given, temperature=self.flow_settings.temperature, **request)
        more = True
        while more:
            with self._turn:
                more = solver.step()
            if more:
                yield
        with self._turn:
            mel = solver.mel()
        self._check_finite(mel, "flow")
        return mel

    def begin_sound(self, seed: int, sentence: int = 0, **draws: Any) -> _core.VocoderState:
        _, vocoder = self.s3gen()
        with self._turn:
            return vocoder.begin(seed=seed, sentence=sentence, **draws)

    def sound(self, state: _core.VocoderState, frames: np.ndarray, last: bool) -> np.ndarray:
        """The samples that are ready after these frames, [n, 80]."""
        _, vocoder = self.s3gen()
        with self._turn:
            samples = vocoder.feed(state, np.ascontiguousarray(frames), last=last)
        self._check_finite(samples, "vocoder")
        return samples
