"""The networks that hear recordings: for baking voices and for voice conversion."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from . import _core
from ._core import Error
from .checkpoint import VOICE_ENCODER_FILES
from .mlx_files import is_conversion
from .networks import Networks, warn_of_unknown
from .recording import Recording
from .torch_file import open_tensors


class Hearing(Networks):
    """Also the baking models. They are loaded when first asked for: few programs bake, and they
    are a quarter of the weights."""

    @property
    def bakes_voices(self) -> bool:
        """Whether the checkpoint has what baking a voice needs."""
        return self.flow is not None and self.checkpoint.voice_encoder is not None

    def bake(self, recording: Recording) -> dict[str, Any]:
        """What the baking models make of a recording, by the names of a voice's fields."""
        prompt = self.rules.prompt
        prepared = prompt.prepared(recording)
        with self._turn:
            baker = self._voice_baker
            fields = baker.bake(prepared.at_24k, prepared.at_16k, prompt.tokens)
        return {**fields, "prompt": prompt.name}

    def log_mel(self, samples: np.ndarray) -> np.ndarray:
        """What the speech tokenizer hears of samples at 16 kHz, 100 frames a second."""
        with self._turn:
            return self._speech_tokenizer.log_mel(samples)

    def recording_tokens(self, log_mel: np.ndarray, loudest: float) -> np.ndarray:
        """The speech tokens of a part of a recording, 30 s at most. loudest: of the whole."""
        with self._turn:
            return self._speech_tokenizer.tokens(np.ascontiguousarray(log_mel), loudest)

    @cached_property
    def _voice_baker(self) -> _core.VoiceBaker:
        self.s3gen()
        self._check_hears()
        folder, s3gen = self.checkpoint.folder, self.checkpoint.s3gen
        encoder = self.checkpoint.voice_encoder
        if s3gen is None or encoder is None:
            raise Error(
                f"{folder} has no voice encoder, which baking a voice needs; expected one of "
                + ", ".join(VOICE_ENCODER_FILES)
            )
        baker, unknown = _core.VoiceBaker.load(
            open_tensors(s3gen), open_tensors(encoder), self._speech_tokenizer
        )
        warn_of_unknown(unknown, folder)
        return baker

    @cached_property
    def _speech_tokenizer(self) -> _core.SpeechTokenizer:
        self.s3gen()
        self._check_hears()
        path = self.checkpoint.s3gen
        assert path is not None
        tokenizer, unknown = _core.SpeechTokenizer.load(open_tensors(path))
        warn_of_unknown(unknown, path)
        return tokenizer

    def _check_hears(self) -> None:
        """An Error where the checkpoint has no tokenizer of recordings."""
        path = self.checkpoint.s3gen
        if path is not None and is_conversion(path):
            raise Error(
                f"{path} is a conversion for MLX, which has no tokenizer of recordings: bake "
                "voices and convert recordings with the official files"
            )
