"""A checkpoint in the layout of mlx-audio's conversions, made of one in the official layout."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from nightingale._core import TensorFile
from nightingale.checkpoint import Checkpoint, find_checkpoint
from nightingale.family import FULL_CASE, GPT2
from nightingale.safetensors_writer import stream_safetensors
from nightingale.torch_file import open_tensors

from . import mlx_turbo
from .s3gen import LEGACY_WEIGHT_NORM, WEIGHT_NORM

GROUP = 64
_GAIN, _DIRECTION = WEIGHT_NORM
_LEVELS = {"0": "resnet.", "2": "{}sample.conv."}
_ATTENTION = {
    "to_q": "query_proj",
    "to_k": "key_proj",
    "to_v": "value_proj",
    "to_out.0": "out_proj",
}
_FEED_FORWARD = {"net.0.proj": "layers.0", "net.2": "layers.1"}
Layout = dict[str, tuple[str, tuple[int, ...]]]


def write_conversion(source: Path, folder: Path, bits: int | None = None) -> None:
    """Writes what mlx-audio's converter would of the checkpoint in `source`, of Turbo
    mlx-audio-plus's; bits: of T3's layers, 8 or 4. The voice comes with it, which conversions on
    the hub have beside them."""
    files = find_checkpoint(source)
    if files.s3gen is None or files.voice_encoder is None:
        raise ValueError(f"{source} is not a whole checkpoint")
    turbo = files.family.backbone == GPT2
    flow_name = mlx_turbo.flow_name if turbo else _flow_name
    encoder = mlx_turbo.voice_encoder if turbo else _voice_encoder
    arrays: dict[str, np.ndarray] = dict(_t3(open_tensors(files.t3), bits))
    arrays |= _s3gen(open_tensors(files.s3gen), flow_name)
    arrays |= {"ve." + name: array for name, array in encoder(open_tensors(files.voice_encoder))}
    folder.mkdir(parents=True, exist_ok=True)
    layout: Layout = {name: (str(array.dtype), array.shape) for name, array in arrays.items()}
    metadata = {"format": "mlx"}
    stream_safetensors(folder / "model.safetensors", layout, arrays.__getitem__, metadata)
    (folder / "config.json").write_text(json.dumps(_config(files, bits), indent=2))
    if turbo:
        mlx_turbo.write_tokenizer(source, folder / "tokenizer.json")
        mlx_turbo.write_voice(source / "conds.pt", folder / "conds.safetensors")
        return
    shutil.copyfile(files.tokenizer, folder / "tokenizer.json")
    for path in (files.cangjie, files.voice, source / "nightingale.json"):
        if path is not None and path.exists():
            shutil.copyfile(path, folder / path.name)


def _config(files: Checkpoint, bits: int | None) -> dict[str, object]:
    family = files.family
    config: dict[str, object] = {"model_type": "chatterbox_turbo", "version": "1.0"}
    if family.backbone != GPT2:
        config = {
            "model_type": "chatterbox",
            "version": "1.0",
            "t3_model": family.variant,
            "multilingual": family.multilingual,
            "vocab_size": family.text_vocabulary,
            "text_preprocessing": FULL_CASE if family.variant == "v3" else "legacy",
        }
    if bits is not None:
        config["quantization"] = {"bits": bits, "group_size": GROUP}
    return config


def _read(file: TensorFile, name: str) -> np.ndarray:
    """In the type that it is stored in; NumPy has no bfloat16."""
    dtype = file.dtype(name)
    array = file.read(name)
    return array if dtype == "bfloat16" else array.astype(dtype)


def _t3(file: TensorFile, bits: int | None) -> Iterator[tuple[str, np.ndarray]]:
    gpt2 = "tfmr.wpe.weight" in file
    for name in file.names():
        transposed = mlx_turbo.GPT2_MATRIX.fullmatch(name) is not None
        converted = "t3." + (name if gpt2 else re.sub(r"^tfmr\.", "tfmr.model.", name))
        if bits is None or not (transposed or re.match(r"tfmr\.layers\..*_proj\.weight", name)):
            array = _read(file, name)
            yield converted, np.ascontiguousarray(array.T) if transposed else array
            continue
        rows, columns = file.shape(name)[:: -1 if transposed else 1]
        words, scales, biases = file.quantize(name, bits, transposed)
        prefix = converted.removesuffix("weight")
        yield converted, words.view(np.uint32).reshape(rows, columns * bits // 32)
        groups = (rows, columns // GROUP)
        yield prefix + "scales", scales.view(np.float16).reshape(groups)
        yield prefix + "biases", biases.view(np.float16).reshape(groups)


def _s3gen(file: TensorFile, flow_name: Callable[[str], str]) -> Iterator[tuple[str, np.ndarray]]:
    for name in file.names():
        if name.startswith("tokenizer.") or name.endswith((_GAIN, LEGACY_WEIGHT_NORM[0])):
            continue
        array = _read(file, name)
        if name.endswith(_DIRECTION):
            gains = _read(file, name.replace(_DIRECTION, _GAIN))
            norms = np.sqrt(np.sum(array * array, axis=(1, 2), keepdims=True))
            name, array = name.replace(_DIRECTION, "weight"), gains * array / norms
        if name.endswith("weight") and array.ndim == 3:
            array = array.transpose((1, 2, 0) if ".ups." in name else (0, 2, 1))
        elif name.endswith("weight") and array.ndim == 4:
            array = array.transpose(0, 2, 3, 1)
        yield "s3gen." + flow_name(name), np.ascontiguousarray(array)


def _flow_name(name: str) -> str:
    def level(found: re.Match[str]) -> str:
        side, block, place = found[1], found[2], found[3]
        return f"{side}_blocks_{block}." + _LEVELS[place].format(side)

    name = re.sub(r"\b(down|mid|up)_blocks\.(\d+)\.([02])\.", level, name)
    name = re.sub(
        r"\b(down|mid|up)_blocks\.(\d+)\.1\.(\d+)\.", r"\1_blocks_\2.transformer_\3.", name
    )
    name = re.sub(r"\b(block1|block2|final_block)\.block\.0\.", r"\1.conv.conv.", name)
    name = re.sub(r"\b(block1|block2|final_block)\.block\.2\.", r"\1.norm.", name)
    name = name.replace(".mlp.1.", ".mlp_linear.")
    for official, converted in _ATTENTION.items():
        name = name.replace(f".attn1.{official}.", f".attn.{converted}.")
    for official, converted in _FEED_FORWARD.items():
        name = name.replace(f".ff.{official}.", f".ff.{converted}.")
    name = re.sub(r"\b(embed|up_embed)\.out\.0\.", r"\1.linear.", name)
    name = re.sub(r"\b(embed|up_embed)\.out\.1\.", r"\1.norm.", name)
    name = re.sub(r"\b(encoders|up_encoders)\.(\d+)\.", r"\1_\2.", name)
    return re.sub(r"\.condnet\.(\d+)\.", lambda m: f".condnet.{int(m[1]) // 2}.", name)


def _voice_encoder(file: TensorFile) -> Iterator[tuple[str, np.ndarray]]:
    for name in file.names():
        found = re.fullmatch(r"lstm\.(weight_ih|weight_hh|bias_ih|bias_hh)_l(\d+)", name)
        if found is None:
            yield name, _read(file, name)
        elif found[1] == "bias_ih":
            other = name.replace("bias_ih", "bias_hh")
            yield f"lstm.layers.{found[2]}.bias", _read(file, name) + _read(file, other)
        elif found[1] != "bias_hh":
            kind = "Wx" if found[1] == "weight_ih" else "Wh"
            yield f"lstm.layers.{found[2]}.{kind}", _read(file, name)
