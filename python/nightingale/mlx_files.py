"""Conversions by mlx-audio, as mlx-community publishes them: T3 and S3Gen in one file, under names
of their own, with convolutions in MLX's order."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ._core import Error, TensorFile
from .family import FULL_CASE, LLAMA, LOWER_CASE, MEMBERS, TURBO, Member
from .safetensors_writer import SAFETENSORS_DTYPES
from .small_files import read_small
from .torch_file import open_tensors

MODEL_FILE, CONFIG_FILE = "model.safetensors", "config.json"
T3, S3GEN, VOICE_ENCODER = "t3.", "s3gen.", "ve."  # what names of each part begin with
MOST_CONFIG_BYTES = 2**20
MOST_HEADER_BYTES = 100_000_000
Patterns = tuple[tuple[str, str], ...]
_DTYPES = {name: dtype for dtype, name in SAFETENSORS_DTYPES.items()}

# What config.json calls the members with a Llama, and Turbo.
_LLAMA_TYPE, _TURBO_TYPE = "chatterbox", "chatterbox_turbo"

# Patterns of a converted name and what they are officially, each applied once.
_OFFICIAL_T3 = ((r"^tfmr\.model\.", "tfmr."),)
_EMBEDDINGS = (
    (r"\b(embed|up_embed)\.linear\.", r"\1.out.0."),
    (r"\b(embed|up_embed)\.norm\.", r"\1.out.1."),
)
_OFFICIAL_S3GEN = (
    (r"\b(down|mid|up)_blocks_(\d+)\.resnet\.", r"\1_blocks.\2.0."),
    (r"\b(down|mid|up)_blocks_(\d+)\.transformer_(\d+)\.", r"\1_blocks.\2.1.\3."),
    (r"\b(down|up)_blocks_(\d+)\.(?:down|up)sample\.conv\.", r"\1_blocks.\2.2."),
    (r"\b(block1|block2|final_block)\.conv\.conv\.", r"\1.block.0."),
    (r"\b(block1|block2|final_block)\.norm\.", r"\1.block.2."),
    (r"\.mlp_linear\.", ".mlp.1."),
    (r"\.attn\.query_proj\.", ".attn1.to_q."),
    (r"\.attn\.key_proj\.", ".attn1.to_k."),
    (r"\.attn\.value_proj\.", ".attn1.to_v."),
    (r"\.attn\.out_proj\.", ".attn1.to_out.0."),
    (r"\.ff\.layers\.0\.", ".ff.net.0.proj."),
    (r"\.ff\.layers\.1\.", ".ff.net.2."),
    *_EMBEDDINGS,
    (r"\b(encoders|up_encoders)_(\d+)\.", r"\1.\2."),
)
_OFFICIAL_TURBO_S3GEN = (
    (r"^(?!mel2wav\.)", "flow."),
    (r"_blocks\.(\d+)\.resnet\.", r"_blocks.\1.0."),
    (r"_blocks\.(\d+)\.transformer_blocks\.(\d+)\.", r"_blocks.\1.1.\2."),
    (r"_blocks\.(\d+)\.(?:down|up)sample\.conv\.conv\.", r"_blocks.\1.2."),
    (r"\b(block1|block2|final_block)\.block\.1\.", r"\1.block.2."),
    (r"\b(block1|block2|final_block)\.block\.0\.conv\.conv\.", r"\1.block.0."),
    (r"\.mlp\.0\.", ".mlp.1."),
    (r"\.ff\.net\.1\.", ".ff.net.2."),
    (r"\.(res_conv|final_proj)\.conv\.", r".\1."),
    (r"^(mel2wav\..*)\.conv\.(weight|bias)$", r"\1.\2"),
    *_EMBEDDINGS,
)
_GPT2_MATRIX = re.compile(r"tfmr\.h\.\d+\.(attn|mlp)\.c_\w+\.weight")
_PITCH_LAYER = re.compile(r"\.condnet\.(\d+)\.")  # mlx-audio counts no activations between them
# Where each axis of an official tensor is in MLX's order, by number of axes.
_CONV_AXES = {3: (0, 2, 1), 4: (0, 3, 1, 2)}
_TRANSPOSED_CONV_AXES = (2, 0, 1)


def is_conversion(path: Path) -> bool:
    """Whether a checkpoint's file is one of all parts."""
    return path.name == MODEL_FILE


def open_part(path: Path, part: str) -> TensorFile:
    """The tensors of one model of a checkpoint under their official names: T3 or S3GEN of a
    conversion, or a file of its own."""
    return _open_conversion(path, part) if is_conversion(path) else open_tensors(path)


def read_config(folder: Path) -> dict[str, Any]:
    """config.json of a conversion, or an Error where it is of another kind of model."""
    path = folder / CONFIG_FILE
    try:
        config = json.loads(read_small(path, MOST_CONFIG_BYTES))
    except (ValueError, RecursionError) as error:
        raise Error(f"{path} is not JSON in UTF-8: {error}") from error
    kind = config.get("model_type") if isinstance(config, dict) else None
    if kind not in (_LLAMA_TYPE, _TURBO_TYPE):
        raise Error(f"{path}: model_type is {kind!r}, expected {_LLAMA_TYPE!r} or {_TURBO_TYPE!r}")
    found: dict[str, Any] = config
    return found


def converted_member(config: dict[str, Any], path: Path) -> Member:
    """What a conversion was made of; those that do not say are of English or v2."""
    if config["model_type"] == _TURBO_TYPE:
        return TURBO
    multilingual = config.get("multilingual") or config.get("vocab_size") == 2454
    variant = config.get("t3_model", "v2" if multilingual else "english")
    known = {member.variant: member for member in MEMBERS if member.backbone == LLAMA}
    if variant not in known:
        raise Error(f"{path}: t3_model is {variant!r}, expected one of {', '.join(known)}")
    return known[variant]


def converted_preprocessing(config: dict[str, Any], path: Path) -> str | None:
    """How the text is read, one of family.TEXT_PREPROCESSING; None where it does not say."""
    known = {"legacy": LOWER_CASE, FULL_CASE.lower(): FULL_CASE}
    given = config.get("text_preprocessing")
    if given is None:
        return None
    if not isinstance(given, str) or given.lower() not in known:
        raise Error(f"{path}: text_preprocessing is {given!r}, expected one of {', '.join(known)}")
    return known[given.lower()]


def _open_conversion(path: Path, part: str) -> TensorFile:
    header, begin = _read_header(path)
    patterns = _patterns(header, part)
    ranges, tensors = [], []
    for name, entry in header.items():
        official = _official_name(name.removeprefix(part), part, patterns)
        if not name.startswith(part) or official is None:
            continue
        try:
            dtype, shape = _DTYPES[entry["dtype"]], tuple(map(int, entry["shape"]))
            first, end = map(int, entry["data_offsets"])
        except (KeyError, TypeError, ValueError) as error:
            raise Error(f"{path}: the header's entry of {name!r} is not one") from error
        if min(first, end - first, *shape, 0) < 0:
            raise Error(f"{path}: the header's entry of {name!r} has negative numbers")
        axes = _axes(official, part, dtype, len(shape))
        strides = _strides(shape)
        ranges.append((name, begin + first, end - first, None))
        tensors.append(
            (official, dtype, name, 0, [shape[i] for i in axes], [strides[i] for i in axes])
        )
    if not tensors:
        raise Error(f"{path} has no tensors whose names begin with {part}")
    return TensorFile.open_strided(str(path), ranges, tensors, [], quantized=True)


def _read_header(path: Path) -> tuple[dict[str, Any], int]:
    """What a safetensors file says of its tensors, and where their bytes begin."""
    try:
        with open(path, "rb") as file:
            (size,) = struct.unpack("<Q", file.read(8).ljust(8, b"\xff"))
            if size > MOST_HEADER_BYTES:
                raise Error(f"{path} is not a safetensors file: its header would have {size} bytes")
            header = json.loads(file.read(size))
    except OSError as error:
        raise Error(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise Error(f"{path} is not a safetensors file: {error}") from error
    if not isinstance(header, dict):
        raise Error(f"{path} is not a safetensors file: its header is not an object")
    header.pop("__metadata__", None)
    return header, 8 + size


def _patterns(names: Iterable[str], part: str) -> Patterns:
    """mlx-audio has two ports of S3Gen: that of Turbo has no flow among its names."""
    if part == T3:
        return _OFFICIAL_T3
    flow = any(name.startswith(S3GEN + "flow.") for name in names)
    return _OFFICIAL_S3GEN if flow else _OFFICIAL_TURBO_S3GEN


def _official_name(name: str, part: str, patterns: Patterns) -> str | None:
    """None for what speaking does not read: the encoder of recordings' x-vectors."""
    if part == S3GEN and name.startswith("speaker_encoder."):
        return None
    for pattern, official in patterns:
        name = re.sub(pattern, official, name)
    return _PITCH_LAYER.sub(lambda found: f".condnet.{2 * int(found[1])}.", name)


def _axes(name: str, part: str, dtype: str, count: int) -> tuple[int, ...]:
    if part == T3 and _GPT2_MATRIX.fullmatch(name) and "float" in dtype and count == 2:
        return 1, 0  # packed ones are [outputs, inputs] officially too
    if part != S3GEN or count not in _CONV_AXES or not name.endswith(".weight"):
        return tuple(range(count))
    return _TRANSPOSED_CONV_AXES if ".ups." in name else _CONV_AXES[count]


def _strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides = [1]
    for size in reversed(shape[1:]):
        strides.insert(0, strides[0] * size)
    return tuple(strides[: len(shape)])
