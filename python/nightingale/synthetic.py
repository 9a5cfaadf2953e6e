"""Checkpoints with made-up weights in the official file layout, for tests and benchmarks.

Every tensor is a function of (seed, tensor name) alone, so the reference and Nightingale can be
given the same model on any machine. The models speak noise, but their logits, mels and sound are as
lively and as well conditioned as a trained model's.
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

from .checkpoint import CANGJIE_TABLE, LANGUAGES, MULTILINGUAL_TOKENIZER
from .synthetic_s3gen import S3GEN_SIZES, s3gen_weights, with_legacy_weight_norm
from .synthetic_text import cangjie_table
from .synthetic_voice import (
    SPEAKER_SIZE,
    VOICE_SIZES,
    speaker_encoder_weights,
    speech_tokenizer_tables,
    speech_tokenizer_weights,
    voice_encoder_weights,
)
from .synthetic_weights import Tensors, Weights, uniform
from .tensor_writers import stream_safetensors, stream_torch, write_torch

SPEECH_VOCABULARY = 8194
SPEECH_CODES = 6561  # ids below this are sound
TEXT_POSITIONS = 2050
SPEECH_POSITIONS = 4100
PERCEIVER_QUERIES = 32
MEANFLOW_FILE = "s3gen_meanflow.safetensors"


@dataclass(frozen=True)
class T3Size:
    hidden: int  # a multiple of the head size, 64, and of the perceiver's 4 heads
    layers: int
    ffn: int


# Small keeps the official vocabularies and positions, which at width 192 are 21 of its 29 MB.
SIZES = {
    "small": T3Size(hidden=192, layers=4, ffn=512),
    "full": T3Size(hidden=1024, layers=30, ffn=4096),
}
SMALL_ALIGNMENT_HEADS = [[1, 2], [2, 1], [3, 0]]


@dataclass(frozen=True)
class Model:
    t3_file: str
    s3gen_file: str
    voice_encoder_file: str
    tokenizer_file: str
    text_vocabulary: int
    languages: tuple[str, ...]
    alignment_heads: bool
    analyser: bool


MODELS = {
    "multilingual": Model(
        "t3_mtl23ls_v2.safetensors",
        "s3gen.pt",
        "ve.pt",
        MULTILINGUAL_TOKENIZER,
        2454,
        tuple(LANGUAGES),
        alignment_heads=True,
        analyser=True,
    ),
    "multilingual-v3": Model(
        "t3_mtl23ls_v3.safetensors",
        "s3gen.pt",
        "ve.pt",
        MULTILINGUAL_TOKENIZER,
        2454,
        tuple(LANGUAGES),
        alignment_heads=True,
        analyser=False,
    ),
    "english": Model(
        "t3_cfg.safetensors",
        "s3gen.safetensors",
        "ve.safetensors",
        "tokenizer.json",
        704,
        (),
        alignment_heads=False,
        analyser=False,
    ),
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
) -> None:
    """Writes the models, tokenizer and voice into `folder`: new, empty or of an equal write.

    `dtype` is that of the weights: float32, float16 or bfloat16. `progress(done, total)` is told
    how many parameters have been written. `meanflow` gives S3Gen the file and the time mixer of
    Turbo; `legacy_weight_norm` names the vocoder's weight-norm pairs as older files do.
    """
    _choose("size", size, SIZES)
    _choose("model", model, MODELS)
    _choose("dtype", dtype, ("float32", "float16", "bfloat16"))
    spec = MODELS[model]
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
        spec.t3_file: t3_weights(SIZES[size], spec.text_vocabulary),
        s3gen_file: with_legacy_weight_norm(s3gen) if legacy_weight_norm else s3gen,
        spec.voice_encoder_file: voice_encoder_weights(VOICE_SIZES[size]),
    }
    json_files: dict[str, Any] = {spec.tokenizer_file: tokenizer_json(spec)}
    if spec.languages:
        json_files[CANGJIE_TABLE] = cangjie_table()
    if settings := _settings(size, spec):
        json_files["nightingale.json"] = settings
    names = [*tensor_files, *json_files, "conds.pt"]

    folder = Path(folder)
    _refuse_foreign_files(folder, names)
    folder.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        _write_tensor_files(staging, tensor_files, seed, dtype, progress)
        for name, content in json_files.items():
            _write_json(staging / name, content)
        write_torch(staging / "conds.pt", voice(seed))
        folder.mkdir(exist_ok=True)
        for name in names:
            os.replace(staging / name, folder / name)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def t3_weights(size: T3Size, text_vocabulary: int) -> Tensors:
    """T3's tensors by official name, with scales that keep 30 layers bounded and logits lively."""
    hidden, ffn = size.hidden, size.ffn
    fan_hidden, fan_ffn = hidden**-0.5, ffn**-0.5
    branch = (2 * size.layers) ** -0.5

    def norm(channels: int) -> Weights:
        return Weights((channels,), std=0.1, mean=1.0)

    weights = {"tfmr.embed_tokens.weight": Weights((8, hidden), std=1.0)}
    for layer in range(size.layers):
        name = f"tfmr.layers.{layer}."
        # Query and key gains of 1.5 give attention scores a deviation near 2: far from uniform.
        weights |= {
            name + "self_attn.q_proj.weight": Weights((hidden, hidden), 1.5 * fan_hidden),
            name + "self_attn.k_proj.weight": Weights((hidden, hidden), 1.5 * fan_hidden),
            name + "self_attn.v_proj.weight": Weights((hidden, hidden), fan_hidden),
            name + "self_attn.o_proj.weight": Weights((hidden, hidden), 2 * branch * fan_hidden),
            name + "mlp.gate_proj.weight": Weights((ffn, hidden), 1.5 * fan_hidden),
            name + "mlp.up_proj.weight": Weights((ffn, hidden), fan_hidden),
            name + "mlp.down_proj.weight": Weights((hidden, ffn), branch * fan_ffn),
            name + "input_layernorm.weight": norm(hidden),
            name + "post_attention_layernorm.weight": norm(hidden),
        }
    weights |= {
        "tfmr.norm.weight": norm(hidden),
        "cond_enc.spkr_enc.weight": Weights((hidden, SPEAKER_SIZE), 1.0),
        "cond_enc.spkr_enc.bias": Weights((hidden,), 0.1),
        "cond_enc.emotion_adv_fc.weight": Weights((hidden, 1), 1.0),
    }
    perceiver = "cond_enc.perceiver."
    weights |= {
        perceiver + "pre_attention_query": Weights((1, PERCEIVER_QUERIES, hidden), 0.5),
        perceiver + "attn.norm.weight": norm(hidden),
        perceiver + "attn.norm.bias": Weights((hidden,), 0.1),
    }
    for projection, gain in (("to_q", 1.5), ("to_k", 1.5), ("to_v", 1.0), ("proj_out", 1.0)):
        weights |= {
            f"{perceiver}attn.{projection}.weight": Weights((hidden, hidden), gain * fan_hidden),
            f"{perceiver}attn.{projection}.bias": Weights((hidden,), 0.1),
        }
    return weights | {
        "text_emb.weight": Weights((text_vocabulary, hidden), 1.0),
        "speech_emb.weight": Weights((SPEECH_VOCABULARY, hidden), 0.7),
        "text_pos_emb.emb.weight": Weights((TEXT_POSITIONS, hidden), 0.3),
        "speech_pos_emb.emb.weight": Weights((SPEECH_POSITIONS, hidden), 0.3),
        "text_head.weight": Weights((text_vocabulary, hidden), 2.5 * fan_hidden),
        # The ids past stop mean nothing to S3Gen: no model says them.
        "speech_head.weight": Weights(
            (SPEECH_VOCABULARY, hidden), 2.5 * fan_hidden, quiet_from=SPEECH_CODES + 2
        ),
    }


def voice(seed: int = 0) -> dict[str, Any]:
    """The content of conds.pt: a unit speaker embedding, prompt tokens, prompt mel and x-vector."""

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
            "cond_prompt_speech_tokens": tokens("t3.cond_prompt_speech_tokens", 150),
            "cond_prompt_speech_emb": None,
            "emotion_adv": np.full((1, 1, 1), 0.5, np.float32),
        },
        "gen": {
            "prompt_token": tokens("gen.prompt_token", 250),
            "prompt_token_len": np.array([250], np.int64),
            "prompt_feat": np.float32(3.5) * draw("gen.prompt_feat", 1, 500, 80) - np.float32(3.5),
            "prompt_feat_len": None,
            "embedding": np.float32(3**0.5) * draw("gen.embedding", 1, 192),
        },
    }


def tokenizer_json(model: Model) -> dict[str, Any]:
    """A BPE tokenizer of our own in the official format and vocabulary size."""
    special = {"[STOP]": 0, "[UNK]": 1, "[SPACE]": 2, "[START]": 255}
    tagged = [f"[{language}]" for language in model.languages]
    if model.languages:
        tagged += [f"[cj_{c}]" for c in "abcdefghijklmnopqrstuvwxyz0123456789."]
    merges = _merges()
    characters = _characters(MULTILINGUAL_SCRIPTS if model.languages else ENGLISH_SCRIPTS)
    tokens = characters + [left + right for left, right in merges] + tagged
    free_ids = (i for i in range(model.text_vocabulary) if i not in special.values())
    vocabulary = special | dict(zip(tokens, free_ids, strict=False))
    if len(vocabulary) != len(special) + len(tokens):
        raise ValueError(f"{len(tokens)} tokens do not fit in {model.text_vocabulary} ids")
    vocabulary |= {f"[FILLER{i}]": i for i in free_ids}
    added = sorted((vocabulary[token], token) for token in [*special, *tagged])
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": i,
                "special": True,
                "content": token,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
            }
            for i, token in added
        ],
        "normalizer": None,
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None,
        "decoder": None,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": "[UNK]",
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "vocab": dict(sorted(vocabulary.items(), key=lambda item: item[1])),
            "merges": [f"{left} {right}" for left, right in merges],
        },
    }


# Fixed ranges, not Python's Unicode tables, which grow with each version.
ENGLISH_SCRIPTS = (
    (0x21, 0x7E),  # ASCII
    (0xA1, 0xFF),  # Latin-1
    (0x2010, 0x201F),  # dashes and quotation marks
)
MULTILINGUAL_SCRIPTS = (
    *ENGLISH_SCRIPTS,
    (0x100, 0x17F),  # Latin Extended-A
    (0x300, 0x345),  # combining marks, which NFKD leaves behind
    (0x386, 0x3CE),  # Greek
    (0x400, 0x45F),  # Cyrillic
    (0x5B0, 0x5F4),  # Hebrew
    (0x60C, 0x6D5),  # Arabic
    (0x900, 0x97F),  # Devanagari
    (0x1100, 0x11FF),  # Hangul jamo
    (0x3001, 0x3002),  # ideographic comma and full stop
    (0x3041, 0x30FE),  # hiragana and katakana
    (0xFF01, 0xFF01),  # full-width ! , ?
    (0xFF0C, 0xFF0C),
    (0xFF1F, 0xFF1F),
)


def _characters(scripts: tuple[tuple[int, int], ...]) -> list[str]:
    return [chr(code) for first, last in scripts for code in range(first, last + 1)]


def _merges() -> list[tuple[str, str]]:
    syllables = [(consonant, vowel) for vowel in "aeiou" for consonant in "bdhklmnrst"]
    closed = [(consonant + vowel, "n") for consonant, vowel in syllables if vowel in "aei"]
    return syllables + closed


def _settings(size: str, model: Model) -> dict[str, Any]:
    """What the small tensors cannot say; the full size has the official file's built-in values."""
    if size == "full":
        return {}
    t3: dict[str, Any] = {"analyser": model.analyser}
    if model.alignment_heads:
        t3["alignment_heads"] = SMALL_ALIGNMENT_HEADS
    return {"t3": t3}


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
