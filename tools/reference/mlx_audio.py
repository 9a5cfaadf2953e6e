"""mlx-audio's converter and its T3, in a Python that has mlx-audio:

    python -m tools.reference.mlx_audio convert CHECKPOINT FOLDER VARIANT [BITS]
    python -m tools.reference.mlx_audio logits FOLDER INPUTS.npz OUTPUT.npz

Both work at the official sizes alone, which mlx-audio has built in. Nothing is downloaded.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import mlx.core as mx
import numpy as np
from mlx_audio.tts.models.chatterbox.config import ModelConfig
from mlx_audio.tts.models.chatterbox.scripts import convert as converter
from mlx_audio.tts.models.chatterbox.t3 import T3
from mlx_audio.tts.models.chatterbox.t3.cond_enc import T3Cond
from safetensors.numpy import load_file

START_TEXT, STOP_TEXT, START_SPEECH = 255, 0, 6561


def convert(checkpoint: str, folder: str, variant: str, bits: str | None = None) -> None:
    """Runs the converter on a local checkpoint whose files are all .safetensors."""
    with (
        mock.patch.object(converter, "download_chatterbox_weights", return_value=Path(checkpoint)),
        mock.patch.object(converter, "load_pytorch_safetensors", load_file),
    ):
        converter.convert_all(
            "local", Path(folder), variant, quantize=bits is not None, bits=int(bits or 4)
        )


def load_t3(folder: Path) -> T3:
    config = json.loads((folder / "config.json").read_text())
    t3 = T3(ModelConfig.from_dict(config).t3_config)
    if quantization := config.get("quantization"):
        converter.quantize_t3_backbone(t3, quantization["bits"], quantization["group_size"])
    weights = mx.load(str(folder / "model.safetensors"))
    parts = [(name[3:], array) for name, array in weights.items() if name.startswith("t3.")]
    t3.load_weights(parts, strict=False)
    return t3


def logits(folder: str, inputs: str, output: str) -> None:
    """Teacher-forced logits as nightingale.TTS.t3_logits has them, without prompt tokens."""
    t3, given = load_t3(Path(folder)), np.load(inputs)
    text = mx.array([[START_TEXT, *given["text_tokens"].tolist(), STOP_TEXT]] * 2)
    voice = T3Cond(
        speaker_emb=mx.array(given["speaker_emb"])[None],
        emotion_adv=mx.array(given["emotion_adv"]).reshape(1, 1, 1),
    )
    start = mx.array([[START_SPEECH]])
    prefill, _ = t3.prepare_input_embeds(voice, text, start, cfg_weight=0.5)
    tokens = mx.array(given["speech_tokens"])[None]
    speech = t3.speech_emb(tokens) + t3.speech_pos_emb(tokens)
    speech = mx.broadcast_to(speech, (2, *speech.shape[1:]))
    embeds = mx.concatenate([prefill, speech], axis=1)
    hidden = t3.tfmr.model(inputs=None, cache=None, input_embeddings=embeds)
    found = t3.speech_head(hidden[:, -speech.shape[1] :])
    np.savez(output, logits=np.array(found.astype(mx.float32)))


JOBS: dict[str, Any] = {"convert": convert, "logits": logits}

if __name__ == "__main__":
    JOBS[sys.argv[1]](*sys.argv[2:])
