"""Extracts the weights of the stages from an exported checkpoint, to resume training from them.

    python -m train.unpack MODEL OUT [--temperature 0.32]

The inverse of train.export; quantized weights are dequantized. The temperature is the one that was
given to the export. A meanflow is also written as a plain flow, with the velocity of steps of
length 0. Parts that are only used in training, such as the tokenizer's heads, are not in a
checkpoint: a resumed stage trains new ones.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor

from nightingale.family import MULTILINGUAL_TOKENIZER
from nightingale.model_settings import SETTINGS_FILE
from nightingale.quantization import GROUP, NOTES

from .export import DEFAULT_TEMPERATURE, FLOWS, T3_FILE, VOICE_ENCODER_FILE, X_VECTOR_PREFIX
from .networks.flow import FLOW_SIZES
from .networks.flow import PREFIX as FLOW_PREFIX
from .networks.speech_tokenizer import TokenizerSize
from .networks.vocoder import VOCODER_SIZES
from .networks.voice_encoder import VOICE_ENCODER_SIZES
from .networks.x_vector import X_VECTOR_SIZES
from .options import command_parser
from .speech_tokenizer import PREFIX as TOKENIZER_PREFIX
from .state import save_stage

VOCODER_PREFIX = "mel2wav."
MIXER = (
    "flow.decoder.estimator.time_embed_mixer.weight"  # of the start and end times, in a meanflow
)
TIME = "flow.decoder.estimator.time_mlp.linear_2."  # its inputs


def read_floats(path: Path) -> dict[str, Tensor]:
    """All tensors of a file in float32, quantized ones dequantized to their own shape."""
    with safe_open(path, "pt") as file:
        notes = json.loads((file.metadata() or {}).get(NOTES, "{}"))
        stored = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    found = {}
    for name, tensor in stored.items():
        if tensor.dtype == torch.uint32:
            beside = name.removesuffix("weight") if name.endswith(".weight") else f"{name}."
            tensor = _dequantize(tensor, stored[f"{beside}scales"], stored[f"{beside}biases"])
            tensor = tensor.reshape(notes.get("shapes", {}).get(name, tensor.shape))
        elif name.endswith((".scales", ".biases")):
            continue
        found[name] = tensor.float()
    return found


def _dequantize(words: Tensor, scales: Tensor, biases: Tensor) -> Tensor:
    """Dequantizes MLX's affine format, lowest bits first. words: [rows, n] → [rows, columns]"""
    rows, groups = scales.shape
    bits = 32 * words.shape[1] // (groups * GROUP)
    shifts = torch.arange(0, 32, bits)
    values = (words.to(torch.int64)[..., None] >> shifts) & (2**bits - 1)
    values = values.reshape(rows, groups, GROUP)
    return (values * scales.float()[..., None] + biases.float()[..., None]).flatten(1)


def plain_flow(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of a plain flow: a meanflow's mixer with equal start and end times, folded in."""
    if MIXER not in tensors:
        return tensors
    mixer = sum(tensors[MIXER].chunk(2, 1))
    build_rows = {TIME + name: mixer @ tensors[TIME + name] for name in ("weight", "bias")}
    return {name: x for name, x in (tensors | build_rows).items() if name != MIXER}


def tokenizer_size(tensors: dict[str, Tensor]) -> TokenizerSize:
    """The size of the speech tokenizer, which may be larger than the other networks' size."""
    blocks = TOKENIZER_PREFIX + "encoder.blocks."
    numbers = {
        name.removeprefix(blocks).split(".")[0] for name in tensors if name.startswith(blocks)
    }
    width = tensors[TOKENIZER_PREFIX + "encoder.conv1.weight"].shape[0]
    return TokenizerSize(width=width, layers=len(numbers))


def unpack(model: Path, out: Path, temperature: float, size: str) -> list[str]:
    """Writes the files for `--resume OUT` of train.recipe. → the stages"""
    flow = next((name for name, file in FLOWS.items() if (model / file).exists()), None)
    if flow is None or not (model / T3_FILE).exists():
        raise SystemExit(f"{model} has no {T3_FILE} and {' or '.join(FLOWS.values())}")
    s3gen = read_floats(model / FLOWS[flow])

    def part(prefix: str) -> dict[str, Tensor]:
        return {name: x for name, x in s3gen.items() if name.startswith(prefix)}

    tokenizer = part(TOKENIZER_PREFIX)
    t3 = read_floats(model / T3_FILE)
    t3["speech_head.weight"] *= temperature / DEFAULT_TEMPERATURE
    settings = json.loads((model / SETTINGS_FILE).read_text("utf-8"))
    flow_facts = {"size": dataclasses.asdict(FLOW_SIZES[size])}
    speakers = {
        "voice_encoder": dataclasses.asdict(VOICE_ENCODER_SIZES[size]),
        "x_vector": dataclasses.asdict(X_VECTOR_SIZES[size]),
    }
    stages: dict[str, tuple[dict[str, Tensor], dict[str, Any]]] = {
        "t3": (t3, {"settings": settings["t3"]}),
        "speech_tokenizer": (tokenizer, dataclasses.asdict(tokenizer_size(tokenizer))),
        "vocoder": (part(VOCODER_PREFIX), {"size": dataclasses.asdict(VOCODER_SIZES[size])}),
        "flow": (plain_flow(part(FLOW_PREFIX)), flow_facts | {"meanflow": False}),
        "speakers": (read_floats(model / VOICE_ENCODER_FILE) | part(X_VECTOR_PREFIX), speakers),
    }
    if flow == "meanflow":
        stages[flow] = (part(FLOW_PREFIX), flow_facts | {"meanflow": True})
    for stage, (tensors, facts) in stages.items():
        save_stage(out, stage, tensors, facts, torch.float16)  # as the stages do
    shutil.copyfile(model / MULTILINGUAL_TOKENIZER, out / "text_tokenizer.json")
    return list(stages)


def main(arguments: list[str]) -> None:
    parser = command_parser("unpack", __doc__, "model", "out")
    parser.add_argument("--temperature", type=float, default=DEFAULT_TEMPERATURE)
    parser.add_argument("--size", choices=FLOW_SIZES, default="small", help="of its networks")
    options = parser.parse_args(arguments)
    print(*unpack(**vars(options)), "in", options.out)


if __name__ == "__main__":
    main(sys.argv[1:])
