"""Stage 4: the vocoder, from mel frames to 24 kHz audio.

    python -m train.vocoder CORPUS OUT [--minutes 18]
    python -m train.vocoder CORPUS OUT --resume OUT/vocoder.safetensors [--mels OUT/mels.npz]

It is trained with spectral losses at first and adversarially later. The discriminators are saved in
OUT/vocoder_discriminators, so that a resumed run continues with them; if they are not beside the
resumed weights, new ones are trained from the start. --mels replaces the mels of the recordings,
for example by those of the flow (train/vocoder_examples.py has the format).
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from .cuda_graph import CudaGraphStep
from .data import Corpus
from .ema import MovingAverage
from .features import MEL_HOP
from .nan_guard import inf_check
from .networks.discriminators import DISCRIMINATOR_SIZES, Discriminators, DiscriminatorSize
from .networks.vocoder import VOCODER_SIZES, Vocoder, VocoderSize
from .options import add_training, command_parser
from .schedule import Schedule
from .state import load_stage, save_stage
from .training import Losses, TrainingStage, check_finite, log, parameter_count
from .vocoder_examples import CONTEXT, PrecomputedMels, WindowBatch, windows
from .vocoder_losses import (
    HighBandLoss,
    SpectralLoss,
    adversarial_loss,
    discriminator_loss,
    feature_loss,
)
from .vocoder_validation import Validation

STAGE = "vocoder"
DISCRIMINATORS = "vocoder_discriminators"

PEAK_RATE = 5e-4
RESUMED_RATE = 3e-4
BETAS = (0.8, 0.99)
# Shares of the run after which the discriminators are trained, and after which the vocoder is
# trained against them.
DISCRIMINATOR_START, ADVERSARIAL_START = 0.10, 0.15
RESUMED_STARTS = (0.0, 0.05)  # the same with new discriminators for a trained vocoder
PHASES = ((False, False), (True, False), (True, True))  # discriminators, adversarial losses
WEIGHTS = {"spectrum": 15.0, "bands": 5.0, "features": 8.0, "adversarial": 4.0, "f0": 1.0}
MAX_GRADIENT_NORM = {"vocoder": 30.0, "f0": 5.0, "discriminators": 5.0}


class Stage(TrainingStage):
    # A CUDA graph must not read weights that were cast before it was captured.
    autocast_cache = False

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        self.corpus = Corpus(options.corpus, options.device)
        self.validation = Validation(self.corpus.part("valid"))
        if options.mels:
            mels = PrecomputedMels(options.mels, self.corpus)
            self.batches = mels.windows(options.batch_windows, options.seed)
        else:
            self.batches = windows(self.corpus, options.batch_windows, options.seed)
        self.generator = torch.Generator(options.device).manual_seed(options.seed)
        self.vocoder, self.discriminators, self.resumed = self._networks()
        self.ema = MovingAverage(self.vocoder)
        self.spectral_loss = SpectralLoss().to(options.device)
        self.high_band_loss = HighBandLoss().to(options.device)
        self.steps = {
            phase: CudaGraphStep(functools.partial(self.train_step, *phase)) for phase in PHASES
        }

    def _networks(self) -> tuple[Vocoder, Discriminators, bool]:
        """New networks or those of files, and whether the discriminators are from a file."""
        options = self.options
        discriminators = Discriminators(DISCRIMINATOR_SIZES[options.size])
        if not options.resume:
            vocoder = Vocoder(VOCODER_SIZES[options.size]).to(options.device)
            vocoder.init_from_mean(next(self.batches).mel.mean((0, 1)))
            return vocoder, discriminators.to(options.device), False
        vocoder = load_vocoder(options.resume).train().to(options.device)
        beside = Path(options.resume).with_name(f"{DISCRIMINATORS}.safetensors")
        if beside.exists():
            tensors, facts = load_stage(beside)
            discriminators = Discriminators(discriminator_size(facts))
            discriminators.load_state_dict({name: x.float() for name, x in tensors.items()})
        return vocoder, discriminators.to(options.device), beside.exists()

    def train(self) -> bool:
        log(
            f"{STAGE}: {parameter_count(self.vocoder)} parameters, "
            f"{parameter_count(self.discriminators)} in its discriminators, "
            f"{self.corpus.hours:.1f} hours"
        )
        self.scaler = inf_check(self.device)
        self.optimizers = [_optimizer(network) for network in (self.vocoder, self.discriminators)]
        completed = super().train()
        self.validation.write(self.ema.network, self.options.out)
        return completed

    def step(self, schedule: Schedule) -> Losses:
        peak = RESUMED_RATE if self.options.resume else PEAK_RATE
        for optimizer in self.optimizers:
            _set_rate(optimizer, schedule.learning_rate(peak))
        batch = next(self.batches)
        phase = self.phase(schedule.progress)
        random = self.vocoder.draw_inputs(*batch.f0.shape, self.generator)
        losses = self.steps[phase](batch.mel, batch.wave, batch.f0, *random)
        self.ema.update()
        return losses

    def phase(self, progress: float) -> tuple[bool, bool]:
        """Whether the discriminators are trained, and whether the vocoder is against them."""
        starts = RESUMED_STARTS if self.options.resume else (DISCRIMINATOR_START, ADVERSARIAL_START)
        return self.resumed or progress >= starts[0], self.resumed or progress >= starts[1]

    def train_step(self, train_discriminators: bool, adversarial: bool, *inputs: Tensor) -> Losses:
        """inputs: the fields of WindowBatch, then phase and noise of `Vocoder.synthesize`"""
        batch, random = WindowBatch(*inputs[:3]), inputs[3:]
        optimizer, discriminator_optimizer = self.optimizers
        f0 = self.vocoder.f0(batch.mel)
        losses = {"f0": (f0 - batch.f0).abs().mean() / 100}
        true, made = self.waves(batch, f0.detach() if adversarial else batch.f0, random)
        losses["spectrum"] = self.spectral_loss(made, true)
        losses["bands"] = self.high_band_loss(made, true)
        if train_discriminators:
            loss = self.discriminator_loss(true, made.detach())
            self.optimize(loss, discriminator_optimizer, self.discriminators)
            losses["discriminators"] = loss
        if adversarial:
            losses |= self.adversarial_losses(true, made)
        loss = sum(weight * losses[name] for name, weight in WEIGHTS.items() if name in losses)
        self.optimize(loss, optimizer, self.vocoder)
        self.scaler.update()
        return {name: loss.detach() for name, loss in losses.items()}

    def waves(
        self, batch: WindowBatch, f0: Tensor, random: tuple[Tensor, ...]
    ) -> tuple[Tensor, Tensor]:
        """The recorded and the synthesized audio without its context: [B, N] each."""
        made = self.vocoder.synthesize(batch.mel, f0, *random)
        inner = slice(CONTEXT * MEL_HOP, -CONTEXT * MEL_HOP)
        return batch.wave[:, inner], made[:, inner]

    def discriminator_loss(self, true: Tensor, made: Tensor) -> Tensor:
        self.discriminators.requires_grad_(True)
        # Only the discriminators use bfloat16: the vocoder is trained in float32.
        with self.autocast():
            outputs = self.discriminators(torch.cat([true, made]))
        pairs = [output.split(len(true)) for output in outputs]
        return discriminator_loss([pair[0] for pair in pairs], [pair[1] for pair in pairs])

    def adversarial_losses(self, true: Tensor, made: Tensor) -> Losses:
        self.discriminators.requires_grad_(False)
        # Computes the weight norms once for both passes.
        with self.autocast(), parametrize.cached():
            with torch.no_grad():
                of_true = self.discriminators(true)
            of_made = self.discriminators(made)
        return {
            "features": feature_loss(of_true, of_made),
            "adversarial": adversarial_loss(of_made),
        }

    def optimize(self, loss: Tensor, optimizer: torch.optim.Optimizer, network: nn.Module) -> None:
        optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(optimizer)
        for name, parameters in gradient_groups(network).items():
            nn.utils.clip_grad_norm_(parameters, MAX_GRADIENT_NORM[name])
        self.scaler.step(optimizer)

    def validate(self) -> dict[str, float]:
        return self.validation.evaluate(self.ema.network)

    def check(self, step: int, trained: dict[str, float], validated: dict[str, Any]) -> None:
        check_finite(step, validated)

    def save(self, schedule: Schedule) -> None:
        """The moving average in float16, as it is shipped."""
        facts = {
            "size": dataclasses.asdict(self.vocoder.size),
            "parameters": parameter_count(self.vocoder),
            "steps": schedule.step,
            "hours": self.corpus.hours,
            "history": self.history,
        }
        out, half = self.options.out, torch.float16
        save_stage(out, STAGE, self.ema.network.official_tensors(), facts, half)
        if self.phase(schedule.progress)[1]:
            size = dataclasses.asdict(self.discriminators.size)
            tensors = self.discriminators.state_dict()
            save_stage(out, DISCRIMINATORS, tensors, {"size": size}, half)


def _optimizer(network: nn.Module) -> torch.optim.Optimizer:
    """On a GPU the learning rate is a tensor, so that a CUDA graph reads its current value."""
    device = next(network.parameters()).device
    on_gpu = device.type == "cuda"
    rate = torch.zeros((), device=device) if on_gpu else 0.0
    return torch.optim.AdamW(
        network.parameters(), rate, betas=BETAS, fused=on_gpu, capturable=on_gpu
    )


def _set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    for group in optimizer.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def gradient_groups(network: nn.Module) -> dict[str, list[nn.Parameter]]:
    """Parameters whose gradients are clipped together, by their name in MAX_GRADIENT_NORM."""
    if isinstance(network, Discriminators):
        return {"discriminators": list(network.parameters())}
    f0 = list(network.f0_predictor.parameters())
    others = [p for name, p in network.named_parameters() if not name.startswith("f0_predictor.")]
    return {"vocoder": others, "f0": f0}


def discriminator_size(facts: dict) -> DiscriminatorSize:
    size = facts["size"]
    return DiscriminatorSize(tuple(size["by_period"]), size["by_band"])


def load_vocoder(path: str | Path) -> Vocoder:
    """Loads the weights that the stage saved, in float32."""
    tensors, facts = load_stage(path)
    vocoder = Vocoder(VocoderSize(**facts["size"]))
    vocoder.load_official(tensors)
    return vocoder.eval()


def main(arguments: list[str]) -> None:
    parser = command_parser(STAGE, __doc__)
    add_training(parser, 18.0, VOCODER_SIZES)
    parser.add_argument("--mels", type=Path, help="an .npz of mels to train on")
    parser.add_argument("--batch-windows", type=int, default=16, help="windows of 0.5 s in a batch")
    options = parser.parse_args(arguments)
    torch.backends.cudnn.benchmark = True  # every batch has the same shape
    Stage(options).train()


if __name__ == "__main__":
    main(sys.argv[1:])
