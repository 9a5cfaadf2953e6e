"""S3Gen's flow in PyTorch: from speech tokens, a speaker and a prompt mel to mel frames."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..masking import length_mask
from .conformer import FRAMES_PER_TOKEN, TokenEncoder
from .estimator import MELS, Estimator
from .official import OfficialModule
from .speech_tokenizer import CODES, digit_embeddings

X_VECTOR = 192
GUIDANCE = 0.7
PREFIX = "flow."  # of the tensors' official names


@dataclass(frozen=True)
class FlowSize:
    encoder: int  # width, a multiple of the head size, 64
    encoder_ffn: int
    encoder_layers: int
    upper_layers: int  # after the upsampling
    channels: int  # of the estimator
    heads: int
    ffn: int
    blocks: int  # transformers in each level
    mid_levels: int
    time_channels: int


FLOW_SIZES = {
    "small": FlowSize(
        encoder=192,
        encoder_ffn=576,
        encoder_layers=2,
        upper_layers=2,
        channels=192,
        heads=3,
        ffn=768,
        blocks=2,
        mid_levels=2,
        time_channels=256,
    ),
    "tiny": FlowSize(
        encoder=64,
        encoder_ffn=96,
        encoder_layers=1,
        upper_layers=1,
        channels=48,
        heads=1,
        ffn=96,
        blocks=1,
        mid_levels=1,
        time_channels=32,
    ),
}


class Flow(OfficialModule):
    """`meanflow`: trained to be solved in few even steps without guidance."""

    prefix = PREFIX

    def __init__(self, size: FlowSize, meanflow: bool = False) -> None:
        super().__init__()
        self.size = size
        self.meanflow = meanflow
        self.input_embedding = nn.Embedding(CODES, size.encoder)
        self.input_embedding.weight.data = digit_embeddings(size.encoder)
        self.spk_embed_affine_layer = nn.Linear(X_VECTOR, MELS)
        # An x-vector has length 1, so its entries are small.
        nn.init.normal_(self.spk_embed_affine_layer.weight)
        self.encoder = TokenEncoder(
            size.encoder, size.encoder_ffn, size.encoder_layers, size.upper_layers
        )
        self.encoder_proj = nn.Linear(size.encoder, MELS)
        estimator = Estimator(
            size.channels,
            size.heads,
            size.ffn,
            size.blocks,
            size.mid_levels,
            size.time_channels,
            meanflow,
        )
        self.decoder = nn.ModuleDict({"estimator": estimator})

    @property
    def estimator(self) -> Estimator:
        return self.decoder["estimator"]

    def convert(self, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        """A meanflow accepts the weights of a plain flow."""
        mixer = "decoder.estimator.time_embed_mixer.weight"
        if self.meanflow and mixer not in tensors:
            return tensors | {mixer: self.state_dict()[mixer]}
        return tensors

    @torch.no_grad()
    def init_from_mean(self, mean_mel: Tensor) -> None:
        """Initializes the velocity to about the corpus's mean mel, [80], minus the noise."""
        self.encoder_proj.bias.copy_(mean_mel)
        self.estimator.final_proj.bias.copy_(mean_mel)
        self.estimator.init_negative_state()

    def encode(self, tokens: Tensor, counts: Tensor) -> Tensor:
        """The mean of the frames, independent of the speaker.

        tokens: [B, T] int64; counts: [B] → [B, 2 T, 80]
        """
        return self.encoder_proj(self.encoder(self.input_embedding(tokens), counts))

    def conditioning(self, mean: Tensor, x_vector: Tensor, prompt_mel: Tensor) -> Tensor:
        """The estimator's inputs beside the flow's state: [B, T, 240].

        mean: of `encode`; x_vector: [B, 192]; prompt_mel: [B, T, 80], zero behind the prompt
        """
        speaker = self.spk_embed_affine_layer(functional.normalize(x_vector.float(), dim=-1))
        speaker = speaker[:, None].expand(-1, mean.shape[1], -1)
        return torch.cat([mean, speaker.to(mean.dtype), prompt_mel.to(mean.dtype)], -1)

    def velocity(
        self,
        x: Tensor,
        conditioning: Tensor,
        frame_mask: Tensor,
        t: Tensor,
        r: Tensor | None = None,
    ) -> Tensor:
        """x: [B, T, 80]; frame_mask: [B, T] bool; t, r: [B] times; r: a meanflow's → [B, T, 80]"""
        return self.estimator(
            torch.cat([x, conditioning.to(x.dtype)], -1), frame_mask, t, r
        ).float()

    def guided_velocity(
        self, x: Tensor, conditioning: Tensor, frame_mask: Tensor, t: Tensor
    ) -> Tensor:
        """Classifier-free guidance with the rate GUIDANCE."""
        each = torch.cat([conditioning, torch.zeros_like(conditioning)])
        both = self.velocity(x.repeat(2, 1, 1), each, frame_mask.repeat(2, 1), t.repeat(2))
        conditional, unconditional = both.chunk(2)
        return (1 + GUIDANCE) * conditional - GUIDANCE * unconditional

    def solve(self, noise: Tensor, conditioning: Tensor, frame_mask: Tensor, steps: int) -> Tensor:
        """From noise to mel, [B, T, 80], in the Euler steps of the core."""
        x = noise
        times = solution_times(steps, self.meanflow, noise.device)
        for t, r in itertools.pairwise(times):
            each_t, each_r = t.expand(len(x)), r.expand(len(x))
            if self.meanflow:
                velocity = self.velocity(x, conditioning, frame_mask, each_t, each_r)
            else:
                velocity = self.guided_velocity(x, conditioning, frame_mask, each_t)
            x = x + (r - t) * velocity
        return x

    def mel(
        self,
        tokens: Tensor,
        counts: Tensor,
        x_vector: Tensor,
        prompt_mel: Tensor,
        noise: Tensor,
        steps: int,
    ) -> Tensor:
        """All frames, including the prompt's: [B, T, 80].

        prompt_mel, noise: [B, T, 80], with at most two frames per token; a stream asks for fewer,
        because its last tokens are lookahead.
        """
        frames = noise.shape[1]
        mean = self.encode(tokens, counts)[:, :frames]
        frame_mask = length_mask(FRAMES_PER_TOKEN * counts, frames)
        return self.solve(noise, self.conditioning(mean, x_vector, prompt_mel), frame_mask, steps)


def solution_times(steps: int, meanflow: bool, device: torch.device | str) -> Tensor:
    """[steps + 1] from 0 to 1: even for a meanflow, along a cosine for a plain flow"""
    even = torch.linspace(0, 1, steps + 1, device=device)
    return even if meanflow else cosine_times(even)


def cosine_times(even: Tensor) -> Tensor:
    """Smaller steps near the noise, where the path is most curved."""
    return 1 - torch.cos(even * (math.pi / 2))
