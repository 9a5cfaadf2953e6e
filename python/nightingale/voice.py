"""A voice: what T3 and S3Gen know of a speaker."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, overload

import numpy as np

from ._core import Error, TensorFile
from .arguments import a_path, floats, token_ids
from .option import number
from .safetensors_writer import write_safetensors
from .sound_file import is_recording
from .torch_file import open_tensors

TOKEN_RATE = 25  # speech tokens a second
MEL_RATE = 50  # frames of S3Gen's prompt a second


@dataclass(frozen=True, eq=False)
class Voice:
    """A baked voice. Saved as one safetensors file; the official conds.pt loads too."""

    speaker_emb: np.ndarray  # [256] float32
    cond_prompt_speech_tokens: np.ndarray | None = None  # [P] int32
    emotion_adv: float = 0.5
    prompt_token: np.ndarray | None = None  # [N] int32
    prompt_feat: np.ndarray | None = None  # [frames, 80] float32
    embedding: np.ndarray | None = None  # [192] float32
    prompt: str | None = None  # which kind of model it was baked for; None: the file does not say

    @classmethod
    def load(cls, path: str | Path) -> Voice:
        """Reads a .safetensors voice or an official conds.pt."""
        path = a_path("path", path)
        if is_recording(path):
            raise Error(f"{path} is a recording, not a voice: bake a voice of it first")
        file = open_tensors(path)
        if "t3.speaker_emb" not in file:
            raise Error(f"{path} is not a voice: it has no tensor t3.speaker_emb")
        found = {name: _read(file, path, name) for name in _DIMENSIONS}
        values: dict[str, Any] = {name.split(".", 1)[1]: array for name, array in found.items()}
        values["prompt"] = file.metadata(_PROMPT)
        emotion = _read_emotion(file, path)
        return cls(**values) if emotion is None else cls(**values, emotion_adv=emotion)

    def save(self, path: str | Path) -> None:
        """Writes the voice as safetensors; the file appears whole or not at all."""
        tensors = {}
        for name, ndim in _DIMENSIONS.items():
            field = name.split(".", 1)[1]
            value = getattr(self, field)
            if value is None:
                continue
            if name in _TOKENS:
                tensors[name] = token_ids(field, value)
            else:
                tensors[name] = floats(field, value, (None,) * ndim)
        tensors[_EMOTION] = floats("emotion_adv", [number("emotion_adv", self.emotion_adv)], (1,))
        metadata = {} if self.prompt is None else {_PROMPT: self.prompt}
        write_safetensors(a_path("path", path), tensors, metadata)

    def with_exaggeration(self, exaggeration: float) -> Voice:
        """The same voice with another exaggeration, 0 or more; nothing is baked again."""
        value = number("exaggeration", exaggeration)
        if not 0 <= value < math.inf:
            raise ValueError(f"exaggeration must be 0 or more, not {exaggeration}")
        return replace(self, emotion_adv=value)

    def mixed(self, other: Voice, share: float) -> Voice:
        """A voice between this one and another: embeddings and exaggeration lie at `share` of the
        way, from 0 (this voice) to 1 (the other). T3's prompt is that of the nearer voice.

        Of S3Gen's prompt only a moment is kept: the sound is that of the prompt, whatever the
        embedding.
        """
        if not isinstance(other, Voice):
            raise ValueError(f"a voice is mixed with another Voice, not {type(other).__name__}")
        share = number("share", share)
        if not 0 <= share <= 1:
            raise ValueError(f"share must be between 0 and 1, not {share:g}")
        kinds = {voice.prompt for voice in (self, other)} - {None}
        if len(kinds) > 1:
            raise ValueError(
                f"the voices were baked for different models, {self.prompt} and {other.prompt}: "
                "bake the recording of one again with the model of the other"
            )
        if share in (0, 1):
            return other if share else self
        nearer = self if share <= 0.5 else other
        tokens, mel = nearer.prompt_token, nearer.prompt_feat
        return Voice(
            _between("speaker_emb", self.speaker_emb, other.speaker_emb, share),
            nearer.cond_prompt_speech_tokens,
            (1 - share) * self.emotion_adv + share * other.emotion_adv,
            None if tokens is None else tokens[:1].copy(),
            None if mel is None else mel[: MEL_RATE // TOKEN_RATE].copy(),
            _between("embedding", self.embedding, other.embedding, share),
            kinds.pop() if kinds else None,
        )

    @property
    def digest(self) -> str:
        """Of all that the voice is: another voice has another one."""
        digest = hashlib.sha256()
        for name, value in vars(self).items():
            shape = getattr(value, "shape", value)
            digest.update(f"{name}{shape}".encode())
            if hasattr(value, "tobytes"):
                digest.update(value.tobytes())
        return digest.hexdigest()

    def __repr__(self) -> str:
        told = f", emotion_adv={self.emotion_adv:g}"
        if self.prompt is not None:
            told += f", prompt={self.prompt!r}"
        return f"Voice({self._parts}{told})"

    @property
    def _parts(self) -> str:
        """What a person wants to know of the arrays."""
        tokens, mel = self.cond_prompt_speech_tokens, self.prompt_feat
        prompts = [] if tokens is None else [f"{len(tokens) / TOKEN_RATE:.1f} s for T3"]
        if mel is not None:
            prompts.append(f"{len(mel) / MEL_RATE:.1f} s for S3Gen")
        return f"prompt of {' and '.join(prompts)}" if prompts else "no prompt"


# Tensor names of a voice file and their dimensions once the batch is dropped.
_DIMENSIONS = {
    "t3.speaker_emb": 1,
    "t3.cond_prompt_speech_tokens": 1,
    "gen.prompt_token": 1,
    "gen.prompt_feat": 2,
    "gen.embedding": 1,
}
_TOKENS = ("t3.cond_prompt_speech_tokens", "gen.prompt_token")
_EMOTION = "t3.emotion_adv"  # one number, in whatever shape
_PROMPT = "prompt"  # in the file's metadata


@overload
def _between(name: str, one: np.ndarray, other: np.ndarray, share: float) -> np.ndarray: ...
@overload
def _between(
    name: str, one: np.ndarray | None, other: np.ndarray | None, share: float
) -> np.ndarray | None: ...
def _between(
    name: str, one: np.ndarray | None, other: np.ndarray | None, share: float
) -> np.ndarray | None:
    """A vector between two in direction and in length, of which models read the direction."""
    if one is None and other is None:
        return None
    if one is None or other is None or one.shape != other.shape:
        raise ValueError(f"the voices cannot be mixed: {name} is not of one size in both")
    lengths = [float(np.linalg.norm(each)) for each in (one, other)]
    if 0 in lengths:
        raise ValueError(f"the voices cannot be mixed: {name} of one of them is zero")
    mixed = (1 - share) * one / lengths[0] + share * other / lengths[1]
    if not (length := float(np.linalg.norm(mixed))):
        raise ValueError(f"the voices cannot be mixed: {name} of one is the other's opposite")
    mixed *= ((1 - share) * lengths[0] + share * lengths[1]) / length
    return mixed.astype(np.float32)


def _read(file: TensorFile, path: str | Path, name: str) -> np.ndarray | None:
    if name not in file:
        return None
    array = _read_finite(file, path, name)
    if (array.dtype.kind == "i") != (name in _TOKENS):
        expected = "whole numbers" if name in _TOKENS else "floats"
        raise Error(f"{path}: {name} is {file.dtype(name)}; expected {expected}")
    ndim = _DIMENSIONS[name]
    while array.ndim > ndim and array.shape[0] == 1:
        array = array[0]
    if array.ndim != ndim:
        raise Error(f"{path}: {name} has shape {list(array.shape)}; expected {ndim} dimensions")
    return np.ascontiguousarray(array)


def _read_emotion(file: TensorFile, path: str | Path) -> float | None:
    if _EMOTION not in file:
        return file.scalar(_EMOTION)
    array = _read_finite(file, path, _EMOTION)
    if array.size != 1:
        raise Error(f"{path}: {_EMOTION} has shape {list(array.shape)}; expected one number")
    # The shortest number with these 32 bits: 0.7 comes back as 0.7, not as 0.699999988.
    return float(str(array.reshape(-1)[0]))


def _read_finite(file: TensorFile, path: str | Path, name: str) -> np.ndarray:
    array = file.read(name)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise Error(f"{path}: {name} holds values that are not finite")
    return array
