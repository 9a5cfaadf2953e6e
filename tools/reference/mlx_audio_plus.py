"""mlx-audio-plus's converter of Turbo, and T3 with a GPT-2 backbone of mlx-audio, in the Python of
tools/reference/mlx_audio_environment.sh:

    python -m tools.reference.mlx_audio_plus convert CHECKPOINT FOLDER [BITS]
    python -m tools.reference.mlx_audio_plus logits FOLDER INPUTS.npz OUTPUT.npz

The sizes of T3, which they have built in, are those of the checkpoint. Nothing is downloaded.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

START_SPEECH = 6561
HEAD_SIZE = 64
FORK = Path(sys.prefix) / "plus"
# What the fork's models import and its converter has no use for.
UNUSED = (
    "librosa",
    "einops",
    "einops.array_api",
    "mlx_lm",
    "mlx_lm.models",
    "mlx_lm.models.cache",
)


@contextmanager
def built_at(layers: int, hidden: int) -> Iterator[None]:
    """T3 inside has these sizes."""
    from mlx_audio.tts.models.chatterbox_turbo.models.t3 import gpt2, t3, t3_config

    sizes = gpt2.GPT2Config(n_embd=hidden, n_layer=layers, n_head=hidden // HEAD_SIZE)
    with (
        mock.patch.object(t3, "create_gpt2_config", return_value=sizes),
        mock.patch.dict(t3_config.GPT2_MEDIUM_CONFIG, hidden_size=hidden),
    ):
        yield


def convert(checkpoint: str, folder: str, bits: str | None = None) -> None:
    """Runs the converter on a local checkpoint; the voice, a torch file, is left out."""
    sys.path.insert(0, str(FORK))
    sys.modules |= {name: mock.MagicMock() for name in UNUSED}
    from mlx_audio.tts.models.chatterbox_turbo.scripts import convert as converter
    from safetensors.numpy import load_file

    def contiguous(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {name: np.ascontiguousarray(array) for name, array in arrays.items()}

    source, remap_t3 = Path(checkpoint), converter.remap_t3_keys
    (source / "tokenizer_config.json").write_text("{}")
    with (
        built_at(*sizes_of(load_file(source / "t3_turbo_v1.safetensors"), "")),
        mock.patch.object(converter, "download_chatterbox_turbo_weights", return_value=source),
        mock.patch.object(converter, "load_pytorch_safetensors", load_file),
        mock.patch.object(converter, "load_pytorch_checkpoint", return_value={}),
        # This safetensors writes a transposed array as it lies in memory.
        mock.patch.object(converter, "remap_t3_keys", lambda t3: contiguous(remap_t3(t3))),
    ):
        converter.convert_from_source(
            output_dir=Path(folder), quantize=bits is not None, q_bits=int(bits or 4), dry_run=True
        )
    (Path(folder) / "conds.safetensors").unlink()


def sizes_of(weights: dict[str, Any], prefix: str) -> tuple[int, int]:
    """Layers and hidden size of a T3."""
    layers = {name.split(".")[-4] for name in weights if name.endswith(".attn.c_attn.weight")}
    return len(layers), weights[prefix + "tfmr.ln_f.weight"].shape[0]


def logits(folder: str, inputs: str, output: str) -> None:
    """Teacher-forced logits as nightingale.TTS.t3_logits has them, of T3 as mlx-audio runs it."""
    import mlx.core as mx
    import mlx.nn as nn
    from mlx_audio.tts.models.chatterbox_turbo.models.t3 import T3, T3Cond

    weights = mx.load(str(Path(folder) / "model.safetensors"))
    with built_at(*sizes_of(weights, "t3.")):
        t3, given = T3(), np.load(inputs)
    config = json.loads((Path(folder) / "config.json").read_text())
    if quantization := config.get("quantization"):
        nn.quantize(
            t3,
            quantization["group_size"],
            quantization["bits"],
            class_predicate=lambda path, module: (
                "tfmr.h." in path and isinstance(module, nn.Linear)
            ),
        )
    parts = [(name[3:], array) for name, array in weights.items() if name.startswith("t3.")]
    t3.load_weights(parts, strict=False)
    voice = T3Cond(
        speaker_emb=mx.array(given["speaker_emb"])[None],
        cond_prompt_speech_tokens=mx.array(given["prompt"])[None],
    )
    start = mx.array([[START_SPEECH]])
    prefill, _ = t3.prepare_input_embeds(voice, mx.array(given["text_tokens"])[None], start)
    speech = mx.array(given["speech_tokens"])[None]
    embeds = mx.concatenate([prefill, t3.speech_emb(speech[:, 1:])], axis=1)
    hidden, _ = t3.tfmr(inputs_embeds=embeds)
    found = t3.speech_head(hidden[:, -speech.shape[1] :])
    np.savez(output, logits=np.array(found.astype(mx.float32)))


JOBS: dict[str, Any] = {"convert": convert, "logits": logits}

if __name__ == "__main__":
    JOBS[sys.argv[1]](*sys.argv[2:])
