"""Checkpoints with synthetic weights in the official file layout, for tests and benchmarks.

Every tensor is a function of (seed, tensor name) alone, so the reference and Nightingale can be
given the same model on any machine. The models produce noise, but their logits, mels and audio vary
as much and are as well conditioned as a trained model's.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nightingale.checkpoint import CANGJIE_TABLE, LANGUAGES
from nightingale.family import GPT2, MEMBERS, Member
from nightingale.safetensors_writer import stream_safetensors

from .byte_level import write_byte_level
from .s3gen import S3GEN_SIZES, s3gen_weights, with_legacy_weight_norm
from .t3 import GPT2_SIZES, SPEECH_CODES, T3_SIZES, gpt2_t3_weights, t3_weights
from .text import cangjie_table, tokenizer_json
from .torch_file import stream_torch, write_torch
from .voice import (
    SPEAKER_SIZE,
    VOICE_SIZES,
    speaker_encoder_weights,
    speech_tokenizer_tables,
    speech_tokenizer_weights,
    voice_encoder_weights,
)
from .weights import Tensors, uniform

MEANFLOW_FILE = "s3gen_meanflow.safetensors"
SMALL_ALIGNMENT_HEADS = [[1, 2], [2, 1], [3, 0]]


PROMPT_TOKENS, GPT2_PROMPT_TOKENS = 150, 375  # of T3's voice
S3GEN_PROMPT_TOKENS = 250


@dataclass(frozen=True)
class Model:
    """A member of the family and the names its other files have beside its T3."""

    member: Member
    s3gen_file: str = "s3gen.pt"
    voice_encoder_file: str = "ve.pt"

    @property
    def t3_file(self) -> str:
        return self.member.t3[0]

    @property
    def languages(self) -> tuple[str, ...]:
        return tuple(LANGUAGES) if self.member.multilingual else ()

    @property
    def meanflow(self) -> bool:
        return self.s3gen_file == MEANFLOW_FILE


def _model(variant: str) -> Model:
    member = next(member for member in MEMBERS if member.variant == variant)
    if member.multilingual:
        return Model(member)
    return Model(member, member.s3gen[0], "ve.safetensors")


MODELS = {
    "multilingual": _model("v2"),
    "multilingual-v3": _model("v3"),
    "multilingual-v1": _model("v1"),
    "english": _model("english"),
    "turbo": _model("turbo"),
    "nano": _model("nano"),
    "pt-br": _model("pt-br"),
}


def write_checkpoint(
    folder: str | Path,
    size: str = "small",
    model: str = "multilingual",
    seed: int = 0,
    dtype: str = "float32",
    progress: Callable[[int, int], None] | None = None,
    *,
    meanflow: bool = False,
    legacy_weight_norm: bool = False,
    s3gen_prompt_tokens: int = S3GEN_PROMPT_TOKENS,
) -> None:
    """Writes the models, tokenizer and voice into `folder`: new, empty or of an equal write.

    dtype: of the weights: float32, float16 or bfloat16. progress(done, total): called with the
    number of parameters written so far. meanflow: give S3Gen the file and the time mixer of Turbo.
    legacy_weight_norm: name the vocoder's weight-norm pairs as older files do.
    s3gen_prompt_tokens: of the voice. The flow solves its prompt along with every chunk, so that
    with fewer than the official ten seconds it speaks sooner.
    """
    _choose("size", size, T3_SIZES)
    _choose("model", model, MODELS)
    _choose("dtype", dtype, ("float32", "float16", "bfloat16"))
    spec = MODELS[model]
    meanflow = meanflow or spec.meanflow
    s3gen_file = MEANFLOW_FILE if meanflow else spec.s3gen_file
    s3gen = {
        **s3gen_weights(S3GEN_SIZES[size], meanflow),
        **speech_tokenizer_weights(VOICE_SIZES[size]),
        **speaker_encoder_weights(VOICE_SIZES[size]),
    }
    # The reference wants the tokenizer's tables in every S3Gen file but the English one.
    if s3gen_file != MODELS["english"].s3gen_file:
        s3gen |= speech_tokenizer_tables()
    tensor_files = {
        spec.t3_file: _t3_weights(spec.member, size),
        s3gen_file: with_legacy_weight_norm(s3gen) if legacy_weight_norm else s3gen,
        spec.voice_encoder_file: voice_encoder_weights(VOICE_SIZES[size]),
    }
    json_files: dict[str, Any] = {}
    if spec.member.backbone != GPT2:
        vocabulary = tokenizer_json(spec.member.text_vocabulary, spec.languages)
        json_files[spec.member.tokenizer] = vocabulary
    if spec.languages:
        json_files[CANGJIE_TABLE] = cangjie_table()
    if settings := _settings(size, spec):
        json_files["nightingale.json"] = settings
    names = list({**tensor_files, **json_files, **dict.fromkeys(spec.member.tokenizer_files)})
    names.append("conds.pt")

    folder = Path(folder)
    _refuse_foreign_files(folder, names)
    folder.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        _write_tensor_files(staging, tensor_files, seed, dtype, progress)
        for name, content in json_files.items():
            _write_json(staging / name, content)
        if spec.member.backbone == GPT2:
            write_byte_level(staging)
        write_torch(staging / "conds.pt", default_voice(seed, spec.member, s3gen_prompt_tokens))
        folder.mkdir(exist_ok=True)
        for name in names:
            os.replace(staging / name, folder / name)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _t3_weights(member: Member, size: str) -> Tensors:
    if member.backbone == GPT2:
        return gpt2_t3_weights(GPT2_SIZES[member.variant][size])
    return t3_weights(T3_SIZES[size], member.text_vocabulary)


def default_voice(
    seed: int = 0, member: Member | None = None, s3gen_prompt_tokens: int = S3GEN_PROMPT_TOKENS
) -> dict[str, Any]:
    """The content of conds.pt: a unit speaker embedding, prompt tokens, prompt mel and x-vector.
    member: whose prompt it has; None: a multilingual one's"""
    frames = 2 * s3gen_prompt_tokens
    gpt2 = member is not None and member.backbone == GPT2
    prompt_tokens = GPT2_PROMPT_TOKENS if gpt2 else PROMPT_TOKENS

    def draw(name: str, *shape: int) -> np.ndarray:
        return uniform(seed, f"conds.{name}", shape)

    def tokens(name: str, count: int) -> np.ndarray:
        fraction = 0.5 * (draw(name, 1, count).astype(np.float64) + 1)
        return np.minimum(fraction * SPEECH_CODES, SPEECH_CODES - 1).astype(np.int64)

    speaker = np.maximum(draw("t3.speaker_emb", 1, SPEAKER_SIZE), 0)
    # Rounding the norm to float32 after a float64 sum hides the platform's order of addition.
    norm = np.float32(np.sqrt(np.sum(speaker.astype(np.float64) ** 2)))
    return {
        "t3": {
            "speaker_emb": speaker / norm,
            "clap_emb": None,
            "cond_prompt_speech_tokens": tokens("t3.cond_prompt_speech_tokens", prompt_tokens),
            "cond_prompt_speech_emb": None,
            "emotion_adv": np.full((1, 1, 1), 0.5, np.float32),
        },
        "gen": {
            "prompt_token": tokens("gen.prompt_token", s3gen_prompt_tokens),
            "prompt_token_len": np.array([s3gen_prompt_tokens], np.int64),
            "prompt_feat": np.float32(3.5) * draw("gen.prompt_feat", 1, frames, 80)
            - np.float32(3.5),
            "prompt_feat_len": None,
            "embedding": np.float32(3**0.5) * draw("gen.embedding", 1, 192),
        },
    }


def _settings(size: str, model: Model) -> dict[str, Any]:
    """What the small tensors cannot say; the full size has the official file's built-in values."""
    if size == "full" or not model.languages:
        return {}
    return {"t3": {"alignment_heads": SMALL_ALIGNMENT_HEADS}}


def _write_tensor_files(
    folder: Path,
    tensor_files: dict[str, Tensors],
    seed: int,
    dtype: str,
    progress: Callable[[int, int], None] | None,
) -> None:
    total = sum(
        int(np.prod(weights.shape))
        for tensors in tensor_files.values()
        for weights in tensors.values()
    )
    done = 0
    for file_name, tensors in tensor_files.items():

        def values(name: str, tensors: Tensors = tensors) -> np.ndarray:
            nonlocal done
            array = tensors[name].values(seed, name)
            done += array.size
            if progress:
                progress(done, total)
            return array

        layout = {
            name: (weights.dtype or dtype, weights.shape) for name, weights in tensors.items()
        }
        if file_name.endswith(".pt"):
            stream_torch(folder / file_name, layout, values)
        else:
            stream_safetensors(folder / file_name, layout, values, {"format": "pt"})


def _write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def _choose(what: str, value: str, choices: Any) -> None:
    if value not in choices:
        raise ValueError(f"{what} is {value!r}, expected one of {', '.join(choices)}")


def _refuse_foreign_files(folder: Path, names: list[str]) -> None:
    if not folder.exists():
        return
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file, expected a folder")
    foreign = sorted({entry.name for entry in folder.iterdir()} - set(names))
    if foreign:
        raise FileExistsError(
            f"{folder} holds {foreign[0]}, which this checkpoint would not replace; "
            "give a new or empty folder"
        )
