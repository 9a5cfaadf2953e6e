"""S3Gen's flow in PyTorch: speech tokens, a speaker and a prompt's mel to mel frames."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from .conformer import FRAMES_PER_TOKEN, TokenEncoder, length_mask
from .estimator import MELS, Estimator
from .speech_tokenizer import CODES, alike_by_digits

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


class Flow(nn.Module):
    """`meanflow`: made to be solved in few even steps without guidance."""

    def __init__(self, size: FlowSize, meanflow: bool = False) -> None:
        super().__init__()
        self.size = size
        self.meanflow = meanflow
        self.input_embedding = nn.Embedding(CODES, size.encoder)
        self.input_embedding.weight.data = alike_by_digits(size.encoder)
        self.spk_embed_affine_layer = nn.Linear(X_VECTOR, MELS)
        # The x-vector's length is 1, its entries are small.
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

    @property
    def parameter_count(self) -> int:
        return sum(parameter.numel() for parameter in self.parameters())

    def official_tensors(self) -> dict[str, Tensor]:
        return {PREFIX + name: tensor for name, tensor in self.state_dict().items()}

    def load_official(self, tensors: dict[str, Tensor]) -> None:
        """Takes weights of this size; those of a plain flow fit a meanflow, too."""
        own = {
            name.removeprefix(PREFIX): tensor.float()
            for name, tensor in tensors.items()
            if name.startswith(PREFIX)
        }
        mixer = "decoder.estimator.time_embed_mixer.weight"
        if self.meanflow and mixer not in own:
            own[mixer] = self.state_dict()[mixer]
        self.load_state_dict(own)

    @torch.no_grad()
    def start_at(self, mean_mel: Tensor) -> None:
        """Makes an untrained flow answer about the corpus's mean, [80], less the noise."""
        self.encoder_proj.bias.copy_(mean_mel)
        self.estimator.final_proj.bias.copy_(mean_mel)
        self.estimator.take_away_state()

    def encode(self, tokens: Tensor, counts: Tensor) -> Tensor:
        """What the frames are like without a speaker.

        tokens: [B, T] int64, anything past a row's end; counts: [B] → [B, 2 T, 80]
        """
        return self.encoder_proj(self.encoder(self.input_embedding(tokens), counts))

    def known(self, mean: Tensor, x_vector: Tensor, prompt_mel: Tensor) -> Tensor:
        """What the estimator sees beside the flow's state: [B, T, 240].

        mean: of `encode`; x_vector: [B, 192]; prompt_mel: [B, T, 80], zero behind the prompt
        """
        speaker = self.spk_embed_affine_layer(functional.normalize(x_vector.float(), dim=-1))
        speaker = speaker[:, None].expand(-1, mean.shape[1], -1)
        return torch.cat([mean, speaker.to(mean.dtype), prompt_mel.to(mean.dtype)], -1)

    def velocity(
        self, x: Tensor, known: Tensor, heard: Tensor, t: Tensor, r: Tensor | None = None
    ) -> Tensor:
        """x: [B, T, 80]; heard: [B, T] bool; t, r: [B] times; r: a meanflow's → [B, T, 80]"""
        return self.estimator(torch.cat([x, known.to(x.dtype)], -1), heard, t, r).float()

    def guided_velocity(self, x: Tensor, known: Tensor, heard: Tensor, t: Tensor) -> Tensor:
        """Away from what would be said without knowing anything."""
        each = torch.cat([known, torch.zeros_like(known)])
        both = self.velocity(x.repeat(2, 1, 1), each, heard.repeat(2, 1), t.repeat(2))
        with_known, without = both.chunk(2)
        return (1 + GUIDANCE) * with_known - GUIDANCE * without

    def solve(self, noise: Tensor, known: Tensor, heard: Tensor, steps: int) -> Tensor:
        """From noise to mel, [B, T, 80], in Euler steps, as the core takes them."""
        x = noise
        times = solution_times(steps, self.meanflow, noise.device)
        for t, r in itertools.pairwise(times):
            each_t, each_r = t.expand(len(x)), r.expand(len(x))
            if self.meanflow:
                velocity = self.velocity(x, known, heard, each_t, each_r)
            else:
                velocity = self.guided_velocity(x, known, heard, each_t)
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
        """All frames, the prompt's too: [B, T, 80].

        prompt_mel, noise: [B, T, 80], where T is at most two frames for each token; less of them is
        what a stream asks for, whose last tokens are only looked at.
        """
        frames = noise.shape[1]
        mean = self.encode(tokens, counts)[:, :frames]
        heard = length_mask(FRAMES_PER_TOKEN * counts, frames)
        return self.solve(noise, self.known(mean, x_vector, prompt_mel), heard, steps)


def solution_times(steps: int, meanflow: bool, device: torch.device | str) -> Tensor:
    """[steps + 1] from 0 to 1: even for a meanflow, along a cosine for a flow."""
    even = torch.linspace(0, 1, steps + 1, device=device)
    return even if meanflow else cosine_times(even)


def cosine_times(even: Tensor) -> Tensor:
    """Times that linger at the noise, where the way is most bent."""
    return 1 - torch.cos(even * (math.pi / 2))
