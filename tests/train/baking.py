"""Small trained stages, and the voice baker in C++ with the weights of networks in PyTorch."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from nightingale import _core
from nightingale.safetensors_writer import write_safetensors
from train.networks.speech_tokenizer import SpeechTokenizer
from train.speakers import Speakers
from train.synthetic_speech import utterances

PROMPT_TOKENS = 150  # of T3, for a model of the Llama family


def baker_of(folder: Path, tokenizer: SpeechTokenizer, speakers: Speakers) -> _core.VoiceBaker:
    """Of files with the official names, each tensor in the network's precision."""
    s3gen = {f"tokenizer.{name}": tensor for name, tensor in tokenizer.state_dict().items()}
    voice_encoder = {}
    for name, tensor in speakers.tensors().items():
        (s3gen if name.startswith("speaker_encoder.") else voice_encoder)[name] = tensor
    paths = [str(folder / name) for name in ("s3gen.safetensors", "ve.safetensors")]
    for path, tensors in zip(paths, (s3gen, voice_encoder), strict=True):
        write_safetensors(path, {name: tensor.numpy() for name, tensor in tensors.items()})
    baker, unknown = _core.VoiceBaker.load(*map(_core.TensorFile.open, paths))
    assert unknown == []
    return baker


@functools.cache
def _utterances() -> list[np.ndarray]:
    return [sound for _, sound in utterances()]


def speech(seconds: float, first: int = 0) -> np.ndarray:
    """[n] float32 at 24 kHz: synthetic utterances, concatenated from `first` on."""
    sound = np.concatenate(_utterances()[first:])
    return sound[: round(seconds * 24000)].astype(np.float32) / 32768


def row(samples: np.ndarray) -> tuple[Tensor, Tensor]:
    """A batch of one row: [1, n] and its length, [1]."""
    return torch.from_numpy(samples)[None], torch.tensor([len(samples)])


def lively(network: nn.Module, gain: float = 1.5) -> nn.Module:
    """Random weights and statistics that make every layer matter."""
    for name, tensor in network.state_dict().items():
        if name.endswith("running_mean"):
            tensor.normal_(0, 0.1)
        elif name.endswith("running_var"):
            tensor.uniform_(0.5, 1.5)
        elif tensor.ndim > 1:
            tensor.mul_(gain)
    return network.eval()
