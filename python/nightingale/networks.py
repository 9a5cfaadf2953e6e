"""The networks of one checkpoint, and what they make of voices."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import _core
from ._core import Error
from .arguments import floats, token_ids
from .checkpoint import Checkpoint
from .draft import Drafts
from .family import S3GEN_FILES
from .finite import not_finite
from .mlx_files import S3GEN, open_part
from .model_rules import RULES
from .option import number
from .options import LoadOptions
from .quantized_cache import load_t3
from .voice import Voice
from .warm_up import GpuTurn, Turn

logger = logging.getLogger(__name__)

MELS = 80
FRAMES_PER_TOKEN = 2
GPU_CACHE_BYTES = 2 << 30  # every length of text has its own sizes, which MLX would all keep
S3GEN_PREFIXES = {"flow": "flow.", "vocoder": "mel2wav."}  # of the tensors of its stages
KEPT_CONDITIONS = 8  # of 8 MB each at full size in float32
# Positions of the KV cache of a sentence beside the voice: text, and speech by the default of
# max_tokens.
SENTENCE_POSITIONS = 250 + 1000
SOUND_BYTES = 4 << 20  # of a sentence's mel and 30 s of sound


class Networks:
    """T3, flow and vocoder."""

    def __init__(self, checkpoint: Checkpoint, options: LoadOptions) -> None:
        """options: with the device decided"""
        self.checkpoint = checkpoint
        if options.device == "gpu":
            _core.set_cache_limit(GPU_CACHE_BYTES)
        self.t3, unknown = load_t3(checkpoint.t3, options, checkpoint.settings_of)
        kv_bits = cache_bits(options.kv_bits, self.t3.describe()["bits"])
        self.t3.keep_cache(kv_bits, options.kv_budget or 0.0)
        warn_of_unknown(unknown, checkpoint.t3)
        self.drafts: Drafts | None = None
        if options.draft is not None:
            self.drafts = Drafts(options.draft, self.t3, options)
            warn_of_unknown(self.drafts.unknown, Path(options.draft))
        self.flow: _core.Flow | None = None
        self.flow_settings = checkpoint.settings.flow
        self.vocoder: _core.Vocoder | None = None
        if checkpoint.s3gen is not None:
            file = open_part(checkpoint.s3gen, S3GEN)
            self.flow, unknown = _core.Flow.load(file, options)
            self.vocoder, unknown_too = _core.Vocoder.load(file, options)
            warn_of_unknown(sorted({*unknown, *unknown_too}), checkpoint.s3gen)
            self._model = _core.Model(
                self.t3,
                self.flow,
                self.vocoder,
                lookahead=self.flow_settings.lookahead,
                temperature=self.flow_settings.temperature,
                cache=options.cache or 0,
            )
        self.settings = self.t3.describe()
        rules = RULES[self.settings["backbone"]]
        self.rules = rules.with_speaking_rate(checkpoint.settings.speaking_rate)
        self._conditions: dict[tuple[Voice, float], _Condition] = {}
        self._caches = options.cache is not None
        self._turn = GpuTurn() if options.device == "gpu" else Turn()

    def s3gen(self) -> tuple[_core.Flow, _core.Vocoder]:
        """Flow and vocoder, or an Error where the checkpoint has none."""
        if self.flow is None or self.vocoder is None:
            raise Error(
                f"{self.checkpoint.folder} has no S3Gen checkpoint, which makes audio of speech "
                f"tokens; expected one of {', '.join(S3GEN_FILES)}"
            )
        return self.flow, self.vocoder

    @property
    def cache_counts(self) -> dict[str, int]:
        """Of the cache of sentences: hits, misses, sentences, bytes and their limit."""
        return {} if self.flow is None else self._model.cache

    @property
    def session_bytes(self) -> int:
        """Memory that a text takes at most while it is streamed."""
        positions: int = self.settings["prompt_tokens"] + SENTENCE_POSITIONS
        return int(self.settings["position_bytes"]) * positions + SOUND_BYTES

    @property
    def speech_defaults(self) -> dict[str, Any]:
        """Values of the model's own for SpeechOptions, by name."""
        names = ("repetition_penalty", "min_p", "top_p", "top_k")
        defaults = {name: self.settings[name] for name in names}
        if not self.settings["guidance"]:
            defaults["cfg_weight"] = 0.0
        if self.flow is not None:
            defaults["steps"] = self.flow.describe()["steps"]
        return defaults

    def check_voice(self, voice: Voice) -> None:
        """A ValueError where the voice lacks what speaking needs, or was baked for other models."""
        self.rules.prompt.check(voice)
        _t3_side(voice)
        flow_side(voice)

    def _flow_side(self, voice: Voice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return flow_side(voice, self.flow_settings.prompt_tokens)

    @contextmanager
    def _naming_tensors(self) -> Iterator[None]:
        """Adds to an error of NaN or infinity which tensors hold such values."""
        try:
            yield
        except _core.NotFiniteError as error:
            raise Error(self._not_finite(str(error))) from None

    def _check_finite(self, values: np.ndarray, stage: str) -> None:
        """An Error where a stage gave NaN or infinity."""
        if not np.isfinite(values).all():
            raise Error(self._not_finite(stage))

    def _not_finite(self, stage: str) -> str:
        if stage in S3GEN_PREFIXES and self.checkpoint.s3gen is not None:
            return not_finite(stage, self.checkpoint.s3gen, S3GEN_PREFIXES[stage])
        return not_finite(stage, self.checkpoint.t3, "")

    def _condition(self, voice: Voice, emotion: float | None) -> _Condition:
        """What T3 makes of a voice, kept for the voices used last."""
        emotion = number("emotion_adv", emotion)
        key = (voice, emotion)
        if key not in self._conditions:
            self.rules.prompt.check(voice)
            side = (*_t3_side(voice), emotion)
            self._conditions[key] = _Condition(
                self.t3.condition(*side),
                self.drafts.in_voice(*side) if self.drafts else None,
                voice.digest if self._caches else "",
            )
            if len(self._conditions) > KEPT_CONDITIONS:
                del self._conditions[next(iter(self._conditions))]
        return self._conditions[key]


def cache_bits(kv_bits: int | None, weight_bits: int | None) -> int:
    """Of T3's KV cache, 0 for floats: quantized weights have a cache of 8 bits unless told."""
    if kv_bits is not None:
        return kv_bits
    return 0 if weight_bits is None else 8


@dataclass(frozen=True)
class _Condition:
    """What T3 makes of a voice, and what proposes tokens in it."""

    cache: _core.KvCache
    draft: _core.Draft | None
    digest: str  # of the voice, for the cache of sentences; empty where there is none


def warn_of_unknown(unknown: list[str], path: Path) -> None:
    for name in unknown:
        logger.warning("%s: unknown tensor %s is not used", path.name, name)


def flow_side(
    voice: Voice, most_tokens: int | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A voice's prompt tokens, prompt mel [frames, 80] and x-vector as the core takes them; of a
    longer prompt the last `most_tokens` tokens and their frames."""
    for name in ("prompt_token", "prompt_feat", "embedding"):
        if getattr(voice, name) is None:
            raise ValueError(f"the voice has no {name}, which synthesis needs: bake it again")
    tokens = token_ids("the voice's prompt_token", voice.prompt_token)
    frames = floats("the voice's prompt_feat", voice.prompt_feat, (None, MELS))
    dropped = 0 if most_tokens is None else max(0, len(tokens) - most_tokens)
    dropped = min(dropped, len(frames) // FRAMES_PER_TOKEN)
    return (
        tokens[dropped:],
        frames[FRAMES_PER_TOKEN * dropped :],
        floats("the voice's embedding", voice.embedding, (None,)),
    )


def _t3_side(voice: Voice) -> tuple[np.ndarray, np.ndarray | None]:
    """A voice's speaker embedding and prompt tokens as the core takes them."""
    speaker = floats("the voice's speaker_emb", voice.speaker_emb, (None,))
    tokens = voice.cond_prompt_speech_tokens
    if tokens is not None:
        tokens = token_ids("the voice's cond_prompt_speech_tokens", tokens)
    return speaker, tokens
