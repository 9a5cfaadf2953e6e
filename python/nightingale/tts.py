"""A loaded model and what it can do."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from . import _core
from ._core import Error
from .arguments import floats, number, token_ids, whole
from .audio import SAMPLE_RATE, Audio
from .checkpoint import S3GEN_FILES, find_checkpoint
from .hub import resolve
from .text import Tokenizer
from .voice import Voice

logger = logging.getLogger(__name__)

DTYPES = ("float32", "float16", "bfloat16")
DEVICES = ("auto", "cpu", "gpu")
KEPT_CONDITIONS = 8  # of 8 MB each at full size in float32
MELS = 80
HARMONICS = 9
FRAME_SAMPLES = 480


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
        _warn_of(unknown, self._checkpoint.t3)
        self._flow: _core.Flow | None = None
        self._vocoder: _core.Vocoder | None = None
        if self._checkpoint.s3gen is not None:
            self._load_s3gen(self._checkpoint.s3gen, dtype, gpu)
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

    def _load_s3gen(self, path: Path, dtype: str | None, gpu: bool) -> None:
        self._flow, unknown = _core.Flow.load(str(path), dtype, gpu)
        self._vocoder, unknown_too = _core.Vocoder.load(str(path), gpu)
        _warn_of(sorted({*unknown, *unknown_too}), path)

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
        info = {
            "model": str(self._checkpoint.folder),
            "family": self._checkpoint.family.name,
            "device": self._settings["device"],
            "threads": _core.threads(),
            "mlx": _core.mlx_version(),
            "t3": dict(self._settings),
        }
        if self._flow is not None and self._vocoder is not None:
            info["flow"] = self._flow.describe()
            info["vocoder"] = {"weight_bytes": self._vocoder.weight_bytes}
        return info

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
                self._condition(chosen, number("exaggeration", exaggeration)),
                cfg_weight=number("cfg_weight", cfg_weight),
                temperature=number("temperature", temperature),
                repetition_penalty=number("repetition_penalty", repetition_penalty),
                min_p=number("min_p", min_p),
                top_p=number("top_p", top_p),
                analyser=self._settings["analyser"],
                seed=whole("seed", seed, 0, 2**64 - 1),
                max_tokens=whole("max_tokens", max_tokens, 1, 2**31 - 1),
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
                token_ids("text_tokens", text_tokens),
                token_ids("speech_tokens", speech_tokens),
                self._condition(chosen, number("emotion_adv", chosen.emotion_adv)),
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
        float32 [80, prompt frames + frames] to start from in place of the seed's. finalize=False:
        more tokens follow; the last three only serve as context, and 0 frames may come.
        """
        flow, _ = self._s3gen()
        sound = self._sound_tokens(tokens)
        chosen = self._voice(voice)
        if noise is not None:
            noise = np.ascontiguousarray(floats("noise", noise, (MELS, None)).T)
        if steps is None:
            steps = flow.describe()["steps"]
        with self._turn:
            solver = flow.solve(
                sound,
                *_flow_side(chosen),
                steps=whole("steps", steps, 1, 1000),
                finalize=bool(finalize),
                seed=whole("seed", seed, 0, 2**64 - 1),
                noise=noise,
            )
        while True:
            with self._turn:
                if not solver.step():
                    return np.ascontiguousarray(solver.mel().T)

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
        _, vocoder = self._s3gen()
        frames = _frames(mel)
        if phase is not None:
            phase = floats("phase", phase, (HARMONICS,))
        if noise is not None:
            expected = (HARMONICS, FRAME_SAMPLES * len(frames))
            noise = np.ascontiguousarray(floats("noise", noise, expected).T)
        with self._turn:
            state = vocoder.begin(seed=whole("seed", seed, 0, 2**64 - 1), phase=phase, noise=noise)
            return vocoder.feed(state, frames, last=True)

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
        samples = _fade_in(self.vocode(mel, seed=seed))
        end = time.perf_counter()
        timings = {
            "flow": solved - start,
            "vocoder": end - solved,
            "total": end - start,
            "rtf": (end - start) / max(len(samples) / SAMPLE_RATE, 1e-9),
        }
        return Audio(samples, sound, timings)

    def _s3gen(self) -> tuple[_core.Flow, _core.Vocoder]:
        if self._flow is None or self._vocoder is None:
            raise Error(
                f"{self._checkpoint.folder} has no S3Gen checkpoint, which makes audio of speech "
                f"tokens; expected one of {', '.join(S3GEN_FILES)}"
            )
        return self._flow, self._vocoder

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


def _warn_of(unknown: list[str], path: Path) -> None:
    for name in unknown:
        logger.warning("%s: unknown tensor %s is not used", path.name, name)


def _frames(mel: Any) -> np.ndarray:
    """A mel [80, frames] as the core takes it: [frames, 80]."""
    frames = np.ascontiguousarray(floats("mel", mel, (MELS, None)).T)
    if not len(frames):
        raise ValueError("mel has no frames")
    return frames


def _fade_in(samples: np.ndarray) -> np.ndarray:
    """20 ms of silence and 20 ms of fade-in: what spills over from the voice's prompt goes."""
    count = SAMPLE_RATE // 50
    fade = (np.cos(np.linspace(np.pi, 0, count)) + 1) / 2
    gain = np.concatenate([np.zeros(count), fade]).astype(np.float32)[: len(samples)]
    faded = samples.copy()
    faded[: len(gain)] *= gain
    return faded


def _flow_side(voice: Voice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A voice's prompt tokens, prompt mel [frames, 80] and x-vector as the core takes them."""
    for name in ("prompt_token", "prompt_feat", "embedding"):
        if getattr(voice, name) is None:
            raise ValueError(f"the voice has no {name}, which synthesis needs: bake it again")
    return (
        token_ids("the voice's prompt_token", voice.prompt_token),
        floats("the voice's prompt_feat", voice.prompt_feat, (None, MELS)),
        floats("the voice's embedding", voice.embedding, (None,)),
    )


def _t3_side(voice: Voice) -> tuple[np.ndarray, np.ndarray | None]:
    """A voice's speaker embedding and prompt tokens as the core takes them."""
    speaker = np.asarray(voice.speaker_emb, dtype=np.float32)
    if speaker.ndim != 1:
        raise ValueError(f"the voice's speaker_emb has shape {list(speaker.shape)}; expected [256]")
    tokens = voice.cond_prompt_speech_tokens
    if tokens is not None:
        tokens = token_ids("the voice's cond_prompt_speech_tokens", tokens)
    return np.ascontiguousarray(speaker), tokens
