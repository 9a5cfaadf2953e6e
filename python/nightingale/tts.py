"""A loaded model and what it can do."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from . import _core
from ._core import Error
from .checkpoint import find_checkpoint
from .hub import resolve
from .text import Tokenizer
from .voice import Voice

logger = logging.getLogger(__name__)

DTYPES = ("float32", "float16", "bfloat16")
DEVICES = ("auto", "cpu", "gpu")
KEPT_CONDITIONS = 8  # of 8 MB each at full size in float32


def load(
    model: str | Path | None = None,
    *,
    dtype: str | None = None,
    device: str = "auto",
    threads: int | None = None,
    offline: bool = False,
    progress: bool | None = None,
) -> TTS:
    """Loads a checkpoint from a folder or a hub id (owner/name).

    dtype: float32, float16 or bfloat16 for the weights; None keeps the file's. device: auto takes a
    GPU where MLX has one. threads: of the CPU backend; None means all cores. offline: use only what
    an earlier download left. progress: False hides the download's progress bars.
    """
    if model is None:
        raise Error(
            "no model was named and this version carries none: give a folder or a hub id, "
            "or make a checkpoint to try with `nightingale synthetic FOLDER`"
        )
    if dtype is not None and dtype not in DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(DTYPES)}, not {dtype!r}")
    gpu = _wants_gpu(device)
    if threads is not None:
        if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
            raise ValueError(f"threads must be a whole number above 0, not {threads!r}")
        _core.set_threads(threads)
    return TTS(resolve(model, offline, progress), dtype, gpu)


def _wants_gpu(device: str) -> bool:
    if device not in DEVICES:
        raise ValueError(f"device must be one of {', '.join(DEVICES)}, not {device!r}")
    available = _core.gpu_available()
    if device == "gpu" and not available:
        raise Error(
            "device='gpu', but this MLX finds none: on Linux install mlx-cuda-13 over mlx-cpu "
            "(see README), or use device='cpu'"
        )
    return available and device != "cpu"


class TTS:
    """A loaded checkpoint. Calls from several threads take turns, token by token."""

    def __init__(self, folder: Path, dtype: str | None, gpu: bool) -> None:
        self._checkpoint = find_checkpoint(folder)
        self._t3, unknown = _core.T3.load(str(self._checkpoint.t3), dtype, gpu)
        for name in unknown:
            logger.warning("%s: unknown tensor %s is not used", self._checkpoint.t3.name, name)
        self._tokenizer = Tokenizer(
            self._checkpoint.tokenizer,
            self._checkpoint.languages,
            self._checkpoint.family.multilingual,
        )
        self._voices: dict[str, Voice] = {}
        if self._checkpoint.voice is not None:
            self._voices["default"] = Voice.load(self._checkpoint.voice)
        self._settings = self._t3.describe()
        self._conditions: dict[tuple[Voice, float], _core.KvCache] = {}
        self._turn = threading.Lock()

    @property
    def languages(self) -> dict[str, str]:
        """Codes and names of the languages this model speaks."""
        return dict(self._tokenizer.languages)

    @property
    def voices(self) -> list[str]:
        """Names of the voices that come with the model."""
        return list(self._voices)

    @property
    def info(self) -> dict[str, Any]:
        """What was loaded and where it runs."""
        return {
            "model": str(self._checkpoint.folder),
            "family": self._checkpoint.family.name,
            "device": self._settings["device"],
            "threads": _core.threads(),
            "mlx": _core.mlx_version(),
            "t3": dict(self._settings),
        }

    def tokenize(self, text: str, language: str = "en") -> np.ndarray:
        """Text tokens, int32: punctuation normalised, language tag in, no start and stop."""
        return self._tokenizer.encode(text, language)

    def speech_tokens(self, text: str, **settings: Any) -> np.ndarray:
        """The speech tokens of one piece of text, int32; settings as in `iter_speech_tokens`."""
        return np.fromiter(self.iter_speech_tokens(text, **settings), dtype=np.int32)

    def iter_speech_tokens(
        self,
        text: str,
        *,
        voice: Voice | str | Path | None = None,
        language: str = "en",
        seed: int = 0,
        temperature: float = 0.8,
        cfg_weight: float = 0.5,
        exaggeration: float = 0.5,
        repetition_penalty: float | None = None,
        min_p: float = 0.05,
        top_p: float = 1.0,
        max_tokens: int = 1000,
    ) -> Iterator[int]:
        """Yields speech tokens as they are drawn; closing the iterator ends the work.

        Arguments are checked at the call. The same text, voice, seed and settings give the same
        tokens; repetition_penalty None is the model's own.
        """
        if repetition_penalty is None:
            repetition_penalty = self._settings["repetition_penalty"]
        chosen = self._voice(voice)
        text_tokens = self.tokenize(text, language)
        with self._turn:
            stream = self._t3.speak(
                text_tokens,
                self._condition(chosen, _number("exaggeration", exaggeration)),
                cfg_weight=_number("cfg_weight", cfg_weight),
                temperature=_number("temperature", temperature),
                repetition_penalty=_number("repetition_penalty", repetition_penalty),
                min_p=_number("min_p", min_p),
                top_p=_number("top_p", top_p),
                analyser=self._settings["analyser"],
                seed=_whole("seed", seed, 0, 2**64 - 1),
                max_tokens=_whole("max_tokens", max_tokens, 1, 2**31 - 1),
            )
        return self._drain(stream)

    def t3_logits(
        self,
        text_tokens: np.ndarray,
        speech_tokens: np.ndarray,
        voice: Voice | str | Path | None = None,
    ) -> np.ndarray:
        """Teacher-forced logits, float32 [2, n, vocabulary]: the text's row, then the zeroed one.

        speech_tokens[0] is the start of speech at position 0; out[:, i] follows the first i + 1.
        """
        chosen = self._voice(voice)
        with self._turn:
            return self._t3.logits(
                _token_ids("text_tokens", text_tokens),
                _token_ids("speech_tokens", speech_tokens),
                self._condition(chosen, _number("emotion_adv", chosen.emotion_adv)),
            )

    def _drain(self, stream: _core.SpeechTokens) -> Iterator[int]:
        while True:
            with self._turn:
                token = stream.next()
            if token is None:
                return
            yield token

    def _condition(self, voice: Voice, emotion: float) -> _core.KvCache:
        """What T3 makes of a voice, kept for the voices used last."""
        key = (voice, emotion)
        if key not in self._conditions:
            speaker, prompt_tokens = _t3_side(voice)
            self._conditions[key] = self._t3.condition(speaker, prompt_tokens, emotion)
            if len(self._conditions) > KEPT_CONDITIONS:
                del self._conditions[next(iter(self._conditions))]
        return self._conditions[key]

    def _voice(self, voice: Voice | str | Path | None) -> Voice:
        if isinstance(voice, Voice):
            return voice
        if voice is None:
            if "default" not in self._voices:
                raise ValueError(
                    f"{self._checkpoint.folder} has no voice of its own; give voice=, "
                    "a Voice or the path of a voice file"
                )
            return self._voices["default"]
        if not isinstance(voice, (str, Path)):
            raise ValueError(f"voice must be a Voice, a name or a path, not {voice!r}")
        if str(voice) in self._voices:
            return self._voices[str(voice)]
        if Path(voice).is_file():
            return Voice.load(voice)
        known = ", ".join(self._voices) or "none"
        raise ValueError(f"unknown voice {str(voice)!r}: not a file, and the model has {known}")


def _t3_side(voice: Voice) -> tuple[np.ndarray, np.ndarray | None]:
    """A voice's speaker embedding and prompt tokens as the core takes them."""
    speaker = np.asarray(voice.speaker_emb, dtype=np.float32)
    if speaker.ndim != 1:
        raise ValueError(f"the voice's speaker_emb has shape {list(speaker.shape)}; expected [256]")
    tokens = voice.cond_prompt_speech_tokens
    if tokens is not None:
        tokens = _token_ids("the voice's cond_prompt_speech_tokens", tokens)
    return np.ascontiguousarray(speaker), tokens


def _token_ids(name: str, tokens: Any) -> np.ndarray:
    ids = np.asarray(tokens)
    if ids.size == 0:
        ids = ids.astype(np.int32)
    if ids.ndim != 1 or ids.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must be a list of whole numbers, not {ids.dtype} of shape {list(ids.shape)}"
        )
    if ids.size and max(-int(ids.min()), int(ids.max())) >= 2**31:
        raise ValueError(f"{name} holds {ids.min()} to {ids.max()}, which are no token ids")
    return np.ascontiguousarray(ids, dtype=np.int32)


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise ValueError(f"{name} must be a number, not {value!r}")
    return float(value)


def _whole(name: str, value: Any, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise ValueError(f"{name} must be a whole number, not {value!r}")
    if not least <= value <= most:
        raise ValueError(f"{name} must be between {least} and {most}, not {value}")
    return int(value)
