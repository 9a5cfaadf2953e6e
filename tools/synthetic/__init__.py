"""Checkpoints with synthetic weights, for tests and benchmarks."""

from .checkpoint import default_voice, write_checkpoint
from .s3gen import S3GEN_SIZES, s3gen_weights
from .t3 import (
    GPT2_SIZES,
    SPEECH_VOCABULARY,
    T3_SIZES,
    Gpt2Size,
    T3Size,
    gpt2_t3_weights,
    t3_weights,
)
from .voice import (
    VOICE_SIZES,
    speaker_encoder_weights,
    speech_tokenizer_weights,
    voice_encoder_weights,
)
from .weights import Tensors, Weights, uniform

__all__ = [
    "GPT2_SIZES",
    "S3GEN_SIZES",
    "SPEECH_VOCABULARY",
    "T3_SIZES",
    "VOICE_SIZES",
    "Gpt2Size",
    "T3Size",
    "Tensors",
    "Weights",
    "default_voice",
    "gpt2_t3_weights",
    "s3gen_weights",
    "speaker_encoder_weights",
    "speech_tokenizer_weights",
    "t3_weights",
    "uniform",
    "voice_encoder_weights",
    "write_checkpoint",
]
