"""What mlx-audio-plus's converter makes of Turbo: names, voice encoder, tokenizer, voice."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from nightingale._core import TensorFile
from nightingale.safetensors_writer import write_safetensors
from nightingale.text.byte_level import ADDED_TOKENS, MERGES, VOCABULARY
from nightingale.torch_file import open_tensors

GPT2_MATRIX = re.compile(r"tfmr\.h\.\d+\.(attn|mlp)\.c_\w+\.weight")
_LEVELS = (
    (r"_blocks\.(\d+)\.0\.", r"_blocks.\1.resnet."),
    (r"_blocks\.(\d+)\.1\.(\d+)\.", r"_blocks.\1.transformer_blocks.\2."),
    (r"(down|up)_blocks\.(\d+)\.2\.", r"\1_blocks.\2.\1sample.conv.conv."),
)
_BLOCKS = (
    (r"\b(block1|block2|final_block)\.block\.0\.", r"\1.block.0.conv.conv."),
    (r"\b(block1|block2|final_block)\.block\.2\.", r"\1.block.1."),
    (r"\.mlp\.1\.", ".mlp.0."),
    (r"\.ff\.net\.2\.", ".ff.net.1."),
    (r"\.(res_conv|final_proj)\.", r".\1.conv."),
    (r"\b(embed|up_embed)\.out\.0\.", r"\1.linear."),
    (r"\b(embed|up_embed)\.out\.1\.", r"\1.norm."),
)
_VOCODER_CONV = re.compile(
    r"^(mel2wav\.(?:conv_\w+|ups\.\d+|source_downs\.\d+|f0_predictor\.condnet\.\d+"
    r"|(?:source_)?resblocks\.\d+\.convs[12]\.\d+))\.(weight|bias)$"
)


def flow_name(name: str) -> str:
    name = name.removeprefix("flow.")
    for pattern, converted in (*_LEVELS, *_BLOCKS):
        name = re.sub(pattern, converted, name)
    name = re.sub(r"\.condnet\.(\d+)\.", lambda m: f".condnet.{int(m[1]) // 2}.", name)
    return _VOCODER_CONV.sub(r"\1.conv.\2", name)


def voice_encoder(file: TensorFile) -> Iterator[tuple[str, np.ndarray]]:
    """Each layer of the LSTM by itself, its biases summed and its gates in another order."""
    for name in file.names():
        found = re.fullmatch(r"lstm\.(weight_ih|weight_hh|bias_ih|bias_hh)_l(\d+)", name)
        if found is None:
            yield name, file.read(name)
        elif found[1] != "bias_hh":
            array = file.read(name)
            if found[1] == "bias_ih":
                array = array + file.read(name.replace("bias_ih", "bias_hh"))
            part = {"weight_ih": "Wx", "weight_hh": "Wh", "bias_ih": "bias"}[found[1]]
            first, second, third, fourth = np.split(array, 4)
            yield f"lstm{int(found[2]) + 1}.{part}", np.concatenate([first, second, fourth, third])


def write_tokenizer(source: Path, path: Path) -> None:
    """The three files of GPT-2's tokenizer as one."""
    vocabulary = json.loads((source / VOCABULARY).read_text("utf-8"))
    added = json.loads((source / ADDED_TOKENS).read_text("utf-8"))
    lines = (source / MERGES).read_text("utf-8").strip().split("\n")
    content = {
        "version": "1.0",
        "added_tokens": [
            {"id": id, "content": token, "normalized": False, "special": True}
            for token, id in added.items()
        ],
        "model": {"type": "BPE", "vocab": vocabulary, "merges": lines[1:]},
    }
    path.write_text(json.dumps(content), encoding="utf-8")


def write_voice(source: Path, path: Path) -> None:
    file = open_tensors(source)
    write_safetensors(path, {name: file.read(name) for name in file.names()}, {})
