"""The reference's voice conversion as a job."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import torch
from chatterbox.models.s3gen import s3gen
from chatterbox.vc import ChatterboxVC

from .s3gen import load_prompt, load_s3gen
from .tensors import Arrays
from .voice import load_speech_tokenizer, quantised


@lru_cache(maxsize=1)
def shared_model(folder: str | Path) -> s3gen.S3Token2Wav:
    """S3Gen with its speech tokenizer."""
    model = load_s3gen(folder)
    model.tokenizer = load_speech_tokenizer(folder)
    return model


@torch.inference_mode()
def convert(folder: str | Path, recording: str, noise: np.ndarray | None = None) -> Arrays:
    """`tokens` [n] of a recording; `code` [m, 8] that they round, of all windows; `mel` [80, 2 n]
    in the voice of conds.pt, from the first columns of the noise [80, prompt frames + 2 n or more].

    Without noise there is no mel.
    """
    model = shared_model(folder)
    seen: dict[str, torch.Tensor] = {}
    start = None if noise is None else torch.from_numpy(noise)[None]

    def given_noise(mu: torch.Tensor) -> torch.Tensor:
        assert start is not None
        return start[..., : mu.size(2)].clone()

    def flow(tokens: torch.Tensor, **rest: object) -> torch.Tensor:
        seen["tokens"] = tokens[0]
        if start is not None:
            seen["mel"] = inference(tokens, **rest)[0]
        return torch.zeros(1, 80, 2)

    inference, draw = model.flow_inference, torch.randn_like
    nothing = torch.zeros(1, s3gen.S3GEN_SR), torch.zeros(1, 1, s3gen.S3GEN_SR)
    converter = SimpleNamespace(
        s3gen=model,
        ref_dict=load_prompt(folder),
        device="cpu",
        sr=s3gen.S3GEN_SR,
        watermarker=SimpleNamespace(apply_watermark=lambda wav, sample_rate: wav),
    )
    with (
        quantised(model.tokenizer) as codes,
        mock.patch.object(model, "flow_inference", flow),
        mock.patch.object(model, "hift_inference", return_value=nothing),
        mock.patch.object(torch, "randn_like", draw if start is None else given_noise),
    ):
        ChatterboxVC.generate(converter, recording)
    code = torch.cat([each.reshape(-1, each.size(-1)) for each in codes])
    return {"code": code.numpy(), **{name: value.numpy() for name, value in seen.items()}}


JOBS = {"convert": convert}
