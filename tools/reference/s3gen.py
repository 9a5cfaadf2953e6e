"""The reference's S3Gen as jobs: token encoder, flow and vocoder."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from chatterbox.models.s3gen import s3gen
from chatterbox.models.s3gen.flow import CausalMaskedDiffWithXvec
from chatterbox.models.s3gen.transformer import upsample_encoder
from torch.distributions.uniform import Uniform

from .tensors import HEAD_SIZE, Arrays, State, count, load_tensors

S3GEN_FILES = ("s3gen_meanflow.safetensors", "s3gen.safetensors", "s3gen.pt")
PARTS = ("flow.", "mel2wav.")
CODES = 6561
ENCODER = "flow.encoder."
ESTIMATOR = "flow.decoder.estimator."


def load_s3gen(checkpoint: str | Path) -> s3gen.S3Token2Wav:
    """The reference's flow and vocoder in eval mode, their sizes read from the file's tensors."""
    state = load_tensors(checkpoint, S3GEN_FILES)
    state = {name: tensor for name, tensor in state.items() if name.startswith(PARTS)}
    with built_at_the_sizes_of(state):
        model = s3gen.S3Token2Wav(meanflow=ESTIMATOR + "time_embed_mixer.weight" in state)
    encoder = model.flow.encoder
    encoder.up_encoders = encoder.up_encoders[: count(state, ENCODER + "up_encoders.")]
    model.load_state_dict(state)
    return model.eval()


@contextmanager
def built_at_the_sizes_of(state: State) -> Iterator[None]:
    """S3Gen's constructor inside gives its modules these sizes and leaves out the tokenizers."""
    width = state["flow.input_embedding.weight"].shape[1]
    channels = state[ESTIMATOR + "final_proj.weight"].shape[1]
    queries = state[ESTIMATOR + "down_blocks.0.1.0.attn1.to_q.weight"].shape[0]
    sizes: dict[tuple[Any, str], dict[str, Any]] = {
        (s3gen, "CausalMaskedDiffWithXvec"): {"input_size": width},
        (s3gen, "UpsampleConformerEncoder"): {
            "input_size": width,
            "output_size": width,
            "attention_heads": width // HEAD_SIZE,
            "linear_units": state[ENCODER + "encoders.0.feed_forward.w_1.weight"].shape[0],
            "num_blocks": count(state, ENCODER + "encoders."),
        },
        (upsample_encoder, "PreLookaheadLayer"): {"channels": width},
        (upsample_encoder, "Upsample1D"): {"channels": width, "out_channels": width},
        (s3gen, "ConditionalDecoder"): {
            "channels": [channels],
            "num_heads": queries // HEAD_SIZE,
            "n_blocks": count(state, ESTIMATOR + "down_blocks.0.1."),
            "num_mid_blocks": count(state, ESTIMATOR + "mid_blocks."),
        },
        (s3gen, "HiFTGenerator"): {"base_channels": len(state["mel2wav.conv_pre.bias"])},
        (s3gen, "ConvRNNF0Predictor"): {
            "cond_channels": len(state["mel2wav.f0_predictor.condnet.0.bias"])
        },
    }
    left_out = mock.Mock(side_effect=lambda *args, **kwargs: torch.nn.Identity())
    with (
        mock.patch.multiple(s3gen, S3Tokenizer=left_out, CAMPPlus=left_out),
        mock.patch.multiple(upsample_encoder, **sized(upsample_encoder, sizes)),
        mock.patch.multiple(s3gen, **sized(s3gen, sizes)),
    ):
        yield


def sized(module: Any, sizes: dict[tuple[Any, str], dict[str, Any]]) -> dict[str, Callable]:
    """The module's classes by name, with these arguments whatever they are called with."""

    def fix(build: type, fixed: dict[str, Any]) -> Callable:
        return lambda **kwargs: build(**(kwargs | fixed))

    return {
        name: fix(getattr(module, name), fixed)
        for (owner, name), fixed in sizes.items()
        if owner is module
    }


@lru_cache(maxsize=1)
def shared_s3gen(folder: str | Path) -> s3gen.S3Token2Wav:
    return load_s3gen(folder)


def load_prompt(
    folder: str | Path,
    prompt_token: np.ndarray | None = None,
    prompt_feat: np.ndarray | None = None,
    embedding: np.ndarray | None = None,
) -> dict[str, torch.Tensor | None]:
    """What flow.inference takes of a voice: that of conds.pt, or the given parts of it.

    prompt_token: [P], prompt_feat: [frames, 80], embedding: [192].
    """
    if prompt_token is None or prompt_feat is None or embedding is None:
        prompt = torch.load(Path(folder) / "conds.pt", weights_only=True)["gen"]
    else:
        prompt = {"prompt_feat_len": None}
    if prompt_token is not None:
        prompt["prompt_token"] = torch.from_numpy(np.asarray(prompt_token, np.int64))[None]
        prompt["prompt_token_len"] = torch.tensor([len(prompt_token)])
    if prompt_feat is not None:
        prompt["prompt_feat"] = torch.from_numpy(prompt_feat)[None]
    if embedding is not None:
        prompt["embedding"] = torch.from_numpy(embedding)[None]
    return prompt


def run_flow(
    model: s3gen.S3Token2Wav,
    tokens: Sequence[int],
    prompt: dict[str, torch.Tensor | None],
    steps: int,
    finalize: bool = True,
) -> torch.Tensor:
    """[80, T]: the new frames alone."""
    mel, _ = model.flow.inference(
        token=torch.tensor([[int(token) for token in tokens]]),
        token_len=torch.tensor([len(tokens)]),
        finalize=finalize,
        n_timesteps=steps,
        meanflow=model.meanflow,
        **prompt,
    )
    return mel[0]


@torch.inference_mode()
def encode(
    folder: str | Path, tokens: Sequence[int], finalize: bool = True, **prompt: np.ndarray
) -> Arrays:
    """`mu` [frames, 80]: the flow's condition, of the prompt's tokens and the new ones."""
    model = shared_s3gen(folder)
    seen: list[torch.Tensor] = []

    def stop_here(mu: torch.Tensor, **_: Any) -> tuple[torch.Tensor, None]:
        seen.append(mu)
        return mu, None

    with mock.patch.object(model.flow.decoder, "forward", stop_here):
        run_flow(model, tokens, load_prompt(folder, **prompt), 1, finalize)
    return {"mu": seen[0][0].T.numpy()}


@torch.inference_mode()
def mel(
    folder: str | Path,
    tokens: Sequence[int],
    noise: np.ndarray,
    steps: int | None = None,
    finalize: bool = True,
    **prompt: np.ndarray,
) -> Arrays:
    """`mel` [80, T] from noise [80, prompt frames + T]; steps: 10, or 2 of a meanflow model."""
    model = shared_s3gen(folder)
    steps = steps or (2 if model.meanflow else 10)
    start = torch.from_numpy(noise)[None]

    def given_noise(mu: torch.Tensor) -> torch.Tensor:
        if start.shape != mu.shape:
            raise ValueError(f"noise is {list(start.shape)}, expected {list(mu.shape)}")
        return start.clone()

    with (
        mock.patch.object(torch, "randn_like", given_noise),
        masks_cropped(model.flow, not finalize),
    ):
        found = run_flow(model, tokens, load_prompt(folder, **prompt), steps, finalize)
    return {"mel": found.numpy()}


@contextmanager
def masks_cropped(flow: CausalMaskedDiffWithXvec, wanted: bool) -> Iterator[None]:
    """The decoder inside gets a mask as long as mu: unfinished, the reference forgets to cut it."""
    forward = flow.decoder.forward

    def cropped(mu: torch.Tensor, mask: torch.Tensor, **rest: Any) -> Any:
        return forward(mu=mu, mask=mask[..., : mu.size(2)], **rest)

    if not wanted:
        yield
        return
    with mock.patch.object(flow.decoder, "forward", cropped):
        yield


@torch.inference_mode()
def vocode(
    folder: str | Path,
    mel: np.ndarray,
    phase: np.ndarray,
    noise: np.ndarray,
    double_phase: bool = False,
) -> Arrays:
    """`audio` [n] and `source` [n] of mel [80, T], and `f0` [T]; n is 480 T.

    phase: [9] radians at the first sample, of which [0] is 0; noise: [9, n], unit normal.
    double_phase: phases are summed and wrapped in float64, and rounded once.
    """
    vocoder = shared_s3gen(folder).mel2wav
    features = torch.from_numpy(mel)[None]
    given = torch.from_numpy(noise)[None]
    phases = torch.tensor(phase)[None, :, None]
    cumsum = torch.cumsum

    def given_noise(like: torch.Tensor) -> torch.Tensor:
        # The other noise, of the voicing's shape, is drawn and never used.
        return given if like.shape == given.shape else torch.zeros_like(like)

    def wrapped_cumsum(cycles: torch.Tensor, dim: int) -> torch.Tensor:
        return (cumsum(cycles.double(), dim) % 1).float()

    with (
        mock.patch.object(Uniform, "sample", return_value=phases),
        mock.patch.object(torch, "randn_like", given_noise),
        mock.patch.object(torch, "cumsum", wrapped_cumsum if double_phase else cumsum),
    ):
        audio, source = vocoder.inference(features)
    return {
        "audio": audio[0].numpy(),
        "source": source[0, 0].numpy(),
        "f0": vocoder.f0_predictor(features)[0].numpy(),
    }


@torch.inference_mode()
def time_s3gen(
    folder: str | Path,
    tokens: int = 100,
    steps: int | None = None,
    rounds: int = 1,
    threads: int | None = None,
    seed: int = 0,
) -> Arrays:
    """`flow_s` and `vocoder_s` [rounds]: seconds from tokens to mel, and from that mel to audio.
    steps: 10, or 2 of a meanflow model"""
    if threads:
        torch.set_num_threads(threads)
    torch.manual_seed(seed)
    model = load_s3gen(folder)
    steps = steps or (2 if model.meanflow else 10)
    prompt = load_prompt(folder)
    codes = torch.randint(CODES, (tokens,)).tolist()

    def run(steps: int) -> tuple[float, float]:
        start = time.perf_counter()
        found = run_flow(model, codes, prompt, steps)
        between = time.perf_counter()
        model.mel2wav.inference(found[None])
        return between - start, time.perf_counter() - between

    run(1)  # pages in, threads up
    flow_s, vocoder_s = np.array([run(steps) for _ in range(rounds)]).T
    return {
        "flow_s": flow_s,
        "vocoder_s": vocoder_s,
        "threads": np.array(torch.get_num_threads()),
    }


JOBS = {job.__name__: job for job in (encode, mel, vocode, time_s3gen)}
