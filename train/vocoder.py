"""Stage 4: the vocoder, from mel frames to 24 kHz sound.

python -m train.vocoder CORPUS OUT [--minutes 18]
python -m train.vocoder CORPUS OUT --resume OUT/vocoder.safetensors [--mels OUT/mels.npz]

First it learns to come near in spectra, then to fool discriminators besides. They are kept beside
it, in OUT/vocoder_discriminators, so that it can go on where it was; with --mels, on other mels
than the speech's own (train/vocoder_examples.py says what the file holds).
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import math
import sys
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from .average import Average
from .clock import Clock
from .data import Corpus
from .features import MEL_HOP
from .networks.discriminators import DISCRIMINATOR_SIZES, Discriminators, DiscriminatorSize
from .networks.vocoder import VOCODER_SIZES, Vocoder, VocoderSize
from .options import add_training, training_clock
from .recorded import Losses, Recorded
from .state import load_stage, save_stage
from .vocoder_examples import CONTEXT, GivenMels, Windows, windows
from .vocoder_losses import SpectralLoss, feature_loss, fooling_loss, telling_loss
from .vocoder_validation import Validation

STAGE = "vocoder"
DISCRIMINATORS = "vocoder_discriminators"

PEAK_RATE = 5e-4
RESUMED_RATE = 3e-4
BETAS = (0.8, 0.99)
# Shares of the run after which discriminators learn, and after which the vocoder learns by them.
TELL_FROM, FOOL_FROM = 0.10, 0.15
PHASES = ((False, False), (True, False), (True, True))  # whether they learn, whether it does
WEIGHTS = {"spectrum": 15.0, "features": 8.0, "fooling": 2.0, "f0": 1.0}
LARGEST_GRADIENT = {"vocoder": 30.0, "f0": 5.0, "discriminators": 5.0}


class Stage:
    """The networks, what they are trained on, and how far they are."""

    def __init__(self, options: argparse.Namespace) -> None:
        torch.manual_seed(options.seed)
        self.options = options
        self.corpus = Corpus(options.corpus, options.device)
        self.validation = Validation(self.corpus.part("valid"))
        if options.mels:
            given = GivenMels(options.mels, self.corpus)
            self.batches = given.windows(options.windows, options.seed)
        else:
            self.batches = windows(self.corpus, options.windows, options.seed)
        self.generator = torch.Generator(options.device).manual_seed(options.seed)
        self.vocoder, self.discriminators, self.begun = self._networks()
        self.average = Average(self.vocoder)
        self.spectral_loss = SpectralLoss().to(options.device)
        self.steps = {
            phase: Recorded(functools.partial(self.descend_once, *phase)) for phase in PHASES
        }
        self.history: list[dict[str, float]] = []

    def _networks(self) -> tuple[Vocoder, Discriminators, bool]:
        """Untrained, or as files have them, and whether the latter."""
        options = self.options
        discriminators = Discriminators(DISCRIMINATOR_SIZES[options.size])
        if not options.resume:
            vocoder = Vocoder(VOCODER_SIZES[options.size]).to(options.device)
            vocoder.start_at(next(self.batches).mel.mean((0, 1)))
            return vocoder, discriminators.to(options.device), False
        vocoder = load_vocoder(options.resume).train().to(options.device)
        beside = Path(options.resume).with_name(f"{DISCRIMINATORS}.safetensors")
        if beside.exists():
            tensors, facts = load_stage(beside)
            discriminators = Discriminators(discriminator_size(facts))
            discriminators.load_state_dict({name: x.float() for name, x in tensors.items()})
        return vocoder, discriminators.to(options.device), beside.exists()

    def autocast(self) -> torch.autocast:
        """For the discriminators: what is made is computed in float32."""
        device = torch.device(self.options.device).type
        # What is recorded may not read what was rounded before.
        return torch.autocast(device, torch.bfloat16, device == "cuda", cache_enabled=False)

    def train(self) -> None:
        options, device = self.options, torch.device(self.options.device).type
        print(
            f"{STAGE}: {self.vocoder.parameter_count} parameters, "
            f"{self.discriminators.parameter_count} to train it by, {self.corpus.hours:.1f} hours",
            flush=True,
        )
        # Not for its scale, which stays: it leaves out steps that are no numbers without asking
        # the device.
        self.scaler = torch.amp.GradScaler(device, init_scale=1.0, growth_interval=2**30)
        self.optimisers = [_optimiser(network) for network in (self.vocoder, self.discriminators)]
        peak = RESUMED_RATE if options.resume else PEAK_RATE
        clock = training_clock(options)
        while clock.tick():
            for optimiser in self.optimisers:
                _set_rate(optimiser, clock.learning_rate(peak))
            found = self.step(clock.progress)
            self.average.update()
            if clock.step == 1 or clock.due("report", 30):
                self.report(clock, found)
            if clock.due("save", 120):
                self.save(clock)
        self.save(clock)  # before judging, for which there may be no time
        self.report(clock, found)
        self.save(clock)
        self.validation.write(self.average.network, Path(options.out))

    def step(self, progress: float) -> Losses:
        """One step of the vocoder and, once it is time, of the discriminators. → losses by name"""
        given = next(self.batches)
        tells = self.begun or progress >= TELL_FROM
        fools = self.begun or progress >= FOOL_FROM
        draws = self.vocoder.draws(*given.f0.shape, self.generator)
        return self.steps[tells, fools](given.mel, given.wave, given.f0, *draws)

    def descend_once(self, tells: bool, fools: bool, *given: Tensor) -> Losses:
        """given: the fields of Windows, then phase and noise as `Vocoder.sound` takes them"""
        heard, draws = Windows(*given[:3]), given[3:]
        optimiser, telling = self.optimisers
        f0 = self.vocoder.f0(heard.mel)
        found = {"f0": (f0 - heard.f0).abs().mean() / 100}
        true, made = self.sounds(heard, f0.detach() if fools else heard.f0, draws)
        found["spectrum"] = self.spectral_loss(made, true)
        if tells:
            loss = self.telling_loss(true, made.detach())
            self.descend(loss, telling, self.discriminators)
            found["telling"] = loss
        if fools:
            found |= self.fooling_losses(true, made)
        loss = sum(weight * found[name] for name, weight in WEIGHTS.items() if name in found)
        self.descend(loss, optimiser, self.vocoder)
        self.scaler.update()
        return {name: loss.detach() for name, loss in found.items()}

    def sounds(
        self, given: Windows, f0: Tensor, draws: tuple[Tensor, ...]
    ) -> tuple[Tensor, Tensor]:
        """What was said and what is made of it, without the context: [B, N] each."""
        made = self.vocoder.sound(given.mel, f0, *draws)
        inner = slice(CONTEXT * MEL_HOP, -CONTEXT * MEL_HOP)
        return given.wave[:, inner], made[:, inner]

    def telling_loss(self, true: Tensor, made: Tensor) -> Tensor:
        self.discriminators.requires_grad_(True)
        with self.autocast():
            opinions = self.discriminators(torch.cat([true, made]))
        pairs = [opinion.split(len(true)) for opinion in opinions]
        return telling_loss([pair[0] for pair in pairs], [pair[1] for pair in pairs])

    def fooling_losses(self, true: Tensor, made: Tensor) -> dict[str, Tensor]:
        self.discriminators.requires_grad_(False)
        # Weights are normed once for both.
        with self.autocast(), parametrize.cached():
            with torch.no_grad():
                of_true = self.discriminators(true)
            of_made = self.discriminators(made)
        return {"features": feature_loss(of_true, of_made), "fooling": fooling_loss(of_made)}

    def descend(self, loss: Tensor, optimiser: torch.optim.Optimizer, network: nn.Module) -> None:
        optimiser.zero_grad(set_to_none=True)
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(optimiser)
        for name, parameters in gradient_groups(network).items():
            nn.utils.clip_grad_norm_(parameters, LARGEST_GRADIENT[name])
        self.scaler.step(optimiser)

    def report(self, clock: Clock, found: dict[str, Tensor]) -> None:
        judged = self.validation.judge(self.average.network)
        trained = {name: loss.item() for name, loss in found.items()}
        self.history.append({"step": clock.step, "seconds": clock.seconds, **trained, **judged})
        print(
            f"step {clock.step} {clock.seconds:.0f} s |",
            *(f"{name} {value:.3f}" for name, value in trained.items()),
            "| valid",
            *(f"{name} {value:.3f}" for name, value in judged.items()),
            flush=True,
        )
        if not all(map(math.isfinite, judged.values())):
            raise FloatingPointError(f"the vocoder is no number after {clock.step} steps: {judged}")

    def save(self, clock: Clock) -> None:
        """The average, as float16, as it is shipped."""
        facts = {
            "size": dataclasses.asdict(self.vocoder.size),
            "parameters": self.vocoder.parameter_count,
            "steps": clock.step,
            "hours": self.corpus.hours,
            "history": self.history,
        }
        out, half = self.options.out, torch.float16
        save_stage(out, STAGE, self.average.network.official_tensors(), facts, half)
        if self.begun or clock.progress >= FOOL_FROM:
            size = dataclasses.asdict(self.discriminators.size)
            tensors = self.discriminators.state_dict()
            save_stage(out, DISCRIMINATORS, tensors, {"size": size}, half)


def _optimiser(network: nn.Module) -> torch.optim.Optimizer:
    """With a rate that a recorded step reads where it is."""
    device = next(network.parameters()).device
    on_gpu = device.type == "cuda"
    rate = torch.zeros((), device=device) if on_gpu else 0.0
    return torch.optim.AdamW(
        network.parameters(), rate, betas=BETAS, fused=on_gpu, capturable=on_gpu
    )


def _set_rate(optimiser: torch.optim.Optimizer, rate: float) -> None:
    for group in optimiser.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def gradient_groups(network: nn.Module) -> dict[str, list[nn.Parameter]]:
    """Parameters whose gradients are of one kind, by its name in LARGEST_GRADIENT."""
    if isinstance(network, Discriminators):
        return {"discriminators": list(network.parameters())}
    f0 = list(network.f0_predictor.parameters())
    others = [p for name, p in network.named_parameters() if not name.startswith("f0_predictor.")]
    return {"vocoder": others, "f0": f0}


def discriminator_size(facts: dict) -> DiscriminatorSize:
    size = facts["size"]
    return DiscriminatorSize(tuple(size["by_period"]), size["by_band"])


def load_vocoder(path: str | Path) -> Vocoder:
    """What the stage wrote, in float32."""
    tensors, facts = load_stage(path)
    vocoder = Vocoder(VocoderSize(**facts["size"]))
    vocoder.load_official(tensors)
    return vocoder.eval()


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m train.vocoder")
    add_training(parser, 18.0, VOCODER_SIZES)
    parser.add_argument("--mels", help="an .npz of mels to speak instead of the speech's own")
    parser.add_argument("--windows", type=int, default=16, help="of 0.8 s, in a batch")
    options = parser.parse_args(arguments)
    torch.backends.cudnn.benchmark = True  # every batch has the same shape
    Stage(options).train()


if __name__ == "__main__":
    main(sys.argv[1:])
