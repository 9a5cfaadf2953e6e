"""The stages of a model one by one, as parity with the reference is checked."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import numpy as np

from . import _core
from .arguments import floats, token_ids
from .audio import SAMPLE_RATE, Audio
from .engine import FRAME_SAMPLES, HARMONICS, Engine
from .networks import MELS
from .options import SpeechOptions
from .voice import Voice

logger = logging.getLogger(__name__)


class Stages(ABC):
    """T3 with given tokens, the flow and the vocoder, each alone."""

    @property
    @abstractmethod
    def _engine(self) -> Engine: ...

    @abstractmethod
    def _voice(self, voice: Voice | str | Path | None) -> Voice: ...

    @abstractmethod
    def _resolved(self, options: SpeechOptions, voice: Voice) -> SpeechOptions: ...

    def t3_logits(
        self,
        text_tokens: np.ndarray,
        speech_tokens: np.ndarray,
        voice: Voice | str | Path | None = None,
    ) -> np.ndarray:
        """Teacher-forced logits, float32 [2, n, vocabulary]: the text's row, then the zeroed one.

        speech_tokens[0] is the start of speech at position 0; out[:, i] follows the first i + 1.
        """
        return self._engine.logits(
            token_ids("text_tokens", text_tokens),
            token_ids("speech_tokens", speech_tokens),
            self._voice(voice),
        )

    def mel(
        self,
        tokens: np.ndarray,
        voice: Voice | str | Path | None = None,
        *,
        steps: int | None = None,
        noise: np.ndarray | None = None,
        finalize: bool = True,
        seed: int = 0,
    ) -> np.ndarray:
        """The mel of speech tokens in a voice, float32 [80, frames], 50 frames a second.

        steps: of the flow; None is the model's own (10), 8 is the faster setting. noise:
        float32 [80, prompt frames + frames] to start from as it is, in place of the seed's times
        the model's temperature. finalize=False: more tokens follow; the last three only serve as
        context, and 0 frames may come.
        """
        self._engine.s3gen()
        sound = self._sound_tokens(tokens)
        chosen = self._voice(voice)
        options = self._resolved(SpeechOptions(steps=steps, seed=seed), chosen)
        if noise is not None:
            noise = np.ascontiguousarray(floats("noise", noise, (MELS, None)).T)
        solving = self._engine.mel(sound, chosen, options, finalize=bool(finalize), noise=noise)
        while True:
            try:
                next(solving)
            except StopIteration as solved:
                return np.ascontiguousarray(solved.value.T)

    def vocode(
        self,
        mel: np.ndarray,
        phase: np.ndarray | None = None,
        noise: np.ndarray | None = None,
        *,
        seed: int = 0,
    ) -> np.ndarray:
        """The audio of a mel [80, frames]: float32 [480 * frames] at 24 kHz.

        phase: float32 [9], the harmonics' initial phases in radians, the first 0; noise: float32
        [9, 480 * frames], unit normal; None draws them by the seed.
        """
        self._engine.s3gen()
        frames = np.ascontiguousarray(floats("mel", mel, (MELS, None)).T)
        if not len(frames):
            raise ValueError("mel has no frames")
        if phase is not None:
            phase = floats("phase", phase, (HARMONICS,))
        if noise is not None:
            expected = (HARMONICS, FRAME_SAMPLES * len(frames))
            noise = np.ascontiguousarray(floats("noise", noise, expected).T)
        checked = SpeechOptions(seed=seed)
        state = self._engine.begin_sound(checked.seed, phase=phase, noise=noise)
        return self._engine.sound(state, frames, last=True)

    def synthesize(
        self,
        tokens: np.ndarray,
        voice: Voice | str | Path | None = None,
        *,
        steps: int | None = None,
        seed: int = 0,
    ) -> Audio:
        """The audio of speech tokens in a voice; the same seed gives the same audio."""
        sound = self._sound_tokens(tokens)
        start = time.perf_counter()
        mel = self.mel(sound, voice, steps=steps, seed=seed)
        solved = time.perf_counter()
        samples = _core.fade_in(self.vocode(mel, seed=seed))
        end = time.perf_counter()
        timings = {
            "flow": solved - start,
            "vocoder": end - solved,
            "total": end - start,
            "rtf": (end - start) / max(len(samples) / SAMPLE_RATE, 1e-9),
        }
        return Audio(samples, sound, timings)

    def _sound_tokens(self, tokens: Any) -> np.ndarray:
        """What is sound among the tokens, between start and stop."""
        ids = token_ids("tokens", tokens)
        sound, dropped = _core.sound_tokens(ids)
        if dropped:
            logger.warning(
                "%d of %d speech tokens are not sound and are dropped", dropped, len(ids)
            )
        if not sound:
            raise ValueError("there is no sound among the speech tokens")
        return np.array(sound, np.int32)
