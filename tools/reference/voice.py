"""The reference's voice encoder, speech tokenizer and x-vector, as jobs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pyloudnorm
import torch
from chatterbox.models.s3gen.s3gen import S3Token2Mel
from chatterbox.models.s3gen.utils.mel import mel_spectrogram
from chatterbox.models.s3gen.xvector import CAMPPlus
from chatterbox.models.s3tokenizer import S3Tokenizer
from chatterbox.models.t3.modules.t3_config import T3Config
from chatterbox.models.voice_encoder import VoiceEncConfig, VoiceEncoder
from chatterbox.mtl_tts import ChatterboxMultilingualTTS
from chatterbox.tts_turbo import ChatterboxTurboTTS
from s3tokenizer.model_v2 import ModelConfig, S3TokenizerV2

from .s3gen import S3GEN_FILES
from .tensors import HEAD_SIZE, Arrays, State, count, load_tensors

VOICE_ENCODER_FILES = ("ve.safetensors", "ve.pt")
DIGIT_SCALE = 0.9990000128746033  # of the reference's quantiser
TURBO_PROMPT_TOKENS = 375


def load_part(folder: str | Path, prefix: str) -> State:
    """The tensors of one part of an S3Gen file, by their names within it."""
    state = load_tensors(folder, S3GEN_FILES)
    return {n.removeprefix(prefix): tensor for n, tensor in state.items() if n.startswith(prefix)}


def load_voice_encoder(folder: str | Path) -> VoiceEncoder:
    state = load_tensors(folder, VOICE_ENCODER_FILES)
    config = VoiceEncConfig()
    config.speaker_embed_size, config.ve_hidden_size = state["proj.weight"].shape
    encoder = VoiceEncoder(config)
    encoder.load_state_dict(state)
    return encoder.eval()


def load_speech_tokenizer(folder: str | Path) -> S3Tokenizer:
    state = load_part(folder, "tokenizer.")
    width = len(state["encoder.conv1.bias"])
    config = ModelConfig(
        n_audio_state=width,
        n_audio_head=width // HEAD_SIZE,
        n_audio_layer=count(state, "encoder.blocks."),
    )
    # Its constructor passes no configuration on to this one.
    with mock.patch.object(S3TokenizerV2.__init__, "__defaults__", (config,)):
        tokenizer = S3Tokenizer()
    tables = {name: getattr(tokenizer, name) for name in tokenizer.ignore_state_dict_missing}
    tokenizer.load_state_dict(tables | state)
    return tokenizer.eval()


def load_speaker_encoder(folder: str | Path) -> CAMPPlus:
    state = load_part(folder, "speaker_encoder.")
    encoder = CAMPPlus(
        growth_rate=len(state["xvector.block1.tdnnd1.cam_layer.linear_local.weight"]),
        init_channels=len(state["xvector.tdnn.linear.weight"]),
        memory_efficient=False,
    )
    encoder.load_state_dict(state)
    return encoder.eval()


@lru_cache(maxsize=1)
def shared_models(folder: str | Path) -> Any:
    """What prepare_conditionals asks of a whole model: no T3, no flow and no vocoder."""
    s3gen = SimpleNamespace(
        tokenizer=load_speech_tokenizer(folder),
        speaker_encoder=load_speaker_encoder(folder),
        mel_extractor=mel_spectrogram,
        device=torch.device("cpu"),
        dtype=torch.float32,
    )
    s3gen.embed_ref = partial(S3Token2Mel.embed_ref, s3gen)
    return SimpleNamespace(
        s3gen=s3gen,
        ve=load_voice_encoder(folder),
        t3=SimpleNamespace(hp=T3Config.multilingual()),
        device="cpu",
        ENC_COND_LEN=ChatterboxMultilingualTTS.ENC_COND_LEN,
        DEC_COND_LEN=ChatterboxMultilingualTTS.DEC_COND_LEN,
    )


def as_turbo(models: Any) -> Any:
    """The same models, of which ChatterboxTurboTTS asks other things."""
    return SimpleNamespace(
        s3gen=models.s3gen,
        ve=models.ve,
        t3=SimpleNamespace(hp=SimpleNamespace(speech_cond_prompt_len=TURBO_PROMPT_TOKENS)),
        device="cpu",
        ENC_COND_LEN=ChatterboxTurboTTS.ENC_COND_LEN,
        DEC_COND_LEN=ChatterboxTurboTTS.DEC_COND_LEN,
        norm_loudness=_norm_loudness,
    )


def _norm_loudness(samples: np.ndarray, rate: int) -> np.ndarray:
    """Turbo's, in float32 as with NumPy 1: NumPy 2 gives float64, which the tokenizer refuses."""
    return ChatterboxTurboTTS.norm_loudness(None, samples, rate).astype(np.float32)


@contextmanager
def quantised(tokenizer: S3Tokenizer) -> Iterator[list[torch.Tensor]]:
    """Fills a list with [tokens, 8] a call: what is rounded to -1, 0 or 1 for the digits."""
    codes: list[torch.Tensor] = []
    hook = tokenizer.quantizer._codebook.project_down.register_forward_hook(
        lambda layer, inputs, output: codes.append(output.tanh() * DIGIT_SCALE)
    )
    try:
        yield codes
    finally:
        hook.remove()


@torch.inference_mode()
def bake(folder: str | Path, recording: str, turbo: bool = False) -> Arrays:
    """The voice of an audio file, and the codes [tokens, 8] that its two token lists round."""
    models = as_turbo(shared_models(folder)) if turbo else shared_models(folder)
    kind = ChatterboxTurboTTS if turbo else ChatterboxMultilingualTTS
    with quantised(models.s3gen.tokenizer) as codes:
        kind.prepare_conditionals(models, recording)
    prompt_code, cond_prompt_code = codes
    t3, gen = models.conds.t3, models.conds.gen
    tokens = gen["prompt_token"][0]
    return {
        "speaker_emb": t3.speaker_emb[0].numpy(),
        "cond_prompt_speech_tokens": t3.cond_prompt_speech_tokens[0].numpy(),
        "cond_prompt_code": cond_prompt_code.numpy(),
        "prompt_token": tokens.numpy(),
        "prompt_code": prompt_code[: len(tokens)].numpy(),
        "prompt_feat": gen["prompt_feat"][0].numpy(),
        "embedding": gen["embedding"][0].numpy(),
    }


@torch.inference_mode()
def time_bake(
    folder: str | Path, recording: str, rounds: int = 2, threads: int | None = None
) -> Arrays:
    """`bake_s` [rounds]: seconds from an audio file to a voice."""
    if threads:
        torch.set_num_threads(threads)
    models = shared_models(folder)

    def run() -> float:
        start = time.perf_counter()
        ChatterboxMultilingualTTS.prepare_conditionals(models, recording)
        return time.perf_counter() - start

    run()  # pages in, threads up
    return {"bake_s": np.array([run() for _ in range(rounds)])}


def loudness(samples: np.ndarray, rate: int) -> Arrays:
    """`lufs` of the samples, by the meter that Turbo's voices are normalised with."""
    return {"lufs": np.array(pyloudnorm.Meter(rate).integrated_loudness(samples))}


JOBS = {job.__name__: job for job in (bake, time_bake, loudness)}
