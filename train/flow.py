"""Stage 3: the flow, from speech tokens, an x-vector and a prompt to mel frames.

python -m train.flow CORPUS OUT [--minutes 11]
python -m train.flow CORPUS OUT --meanflow OUT/flow.safetensors [--minutes 8]
python -m train.flow CORPUS OUT --distil 0.4 [--minutes 19]

The first command trains by conditional flow matching, for some guided steps, and writes OUT/flow.
The second distils what it wrote to two steps without guidance (train/meanflow.py), OUT/meanflow.
The third does both, the second in the given share of the time, and prepares the speech once.
With --ear OUT/ear.safetensors (train/ear.py) what is distilled is also led by what it hears.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import sys
import time
from pathlib import Path

import torch
from torch import Tensor, nn

from .average import Average
from .clock import Clock
from .data import Corpus
from .descent import Descent
from .ear import load_ear
from .flow_examples import FlowBatch, Speech, batches, cut_short, load_speech
from .flow_validation import Validation
from .masked import masked_mean
from .meanflow import Distillation
from .networks.flow import FLOW_SIZES, Flow, FlowSize, cosine_times
from .options import add_training, training_clock
from .state import load_stage, save_stage

STEADY = 0.5  # of the loss by which the encoder says the same while more of a row is to come
DROPPED = 0.2  # of the examples are learned without knowing anything, which guidance needs
PEAK_RATE = 1e-3
DISTILLATION_RATE = 4e-4
AVERAGING = 0.999  # of a step
EAR_WEIGHT = 0.5  # at which both losses pull about as hard
GUIDED_STEPS = (4, 6, 10)  # of the solutions that are judged
MEANFLOW_STEPS = (1, 2, 4)


class FlowMatching:
    """The loss of a plain flow: the velocity on the straight way from noise to mel."""

    def __init__(self, flow: Flow, seed: int, device: str) -> None:
        self.flow = flow
        self.generator = torch.Generator(device).manual_seed(seed)

    def parameters(self) -> list[nn.Parameter]:
        return list(self.flow.parameters())

    def losses(self, batch: FlowBatch, progress: float) -> dict[str, Tensor]:
        """By name; what is learned is their sum."""
        mean = self.flow.encode(batch.tokens, batch.counts)
        known = self.flow.known(mean, batch.x_vector, batch.prompt_mel)
        kept = self._uniform(len(mean)) >= DROPPED
        noise = torch.randn(batch.mel.shape, device=mean.device, generator=self.generator)
        t = cosine_times(self._even_times(len(mean)))
        x = torch.lerp(noise, batch.mel, t[:, None, None])
        velocity = self.flow.velocity(x, known * kept[:, None, None], batch.heard, t)
        # The encoder is led towards the mel at first, and left to what the estimator wants at last.
        lead = (1 - progress) * masked_mean((mean.float() - batch.mel).abs(), batch.heard)
        square = (velocity - (batch.mel - noise)).square()
        return {
            "flow": masked_mean(square, batch.heard),
            "lead": lead,
            "steady": STEADY * self._change(batch, mean.detach()),
        }

    def _change(self, batch: FlowBatch, mean: Tensor) -> Tensor:
        """How far `mean`, what the encoder says of whole rows, is from what it says of parts."""
        part = cut_short(batch, self._uniform(len(mean)))
        early = self.flow.encode(part.tokens, part.counts)
        return masked_mean((early.float() - mean.float()).abs(), part.heard)

    def _uniform(self, count: int) -> Tensor:
        return torch.rand(count, device=self.generator.device, generator=self.generator)

    def _even_times(self, count: int) -> Tensor:
        """[count] in 0..1, one in each of as many parts: steadier than independent draws."""
        device = self.generator.device
        part = torch.randperm(count, device=device, generator=self.generator)
        return (part + self._uniform(count)) / count


class Stage:
    """The flow, what it is trained and judged on, and how far it is. `unseen`: voices held out."""

    def __init__(self, options: argparse.Namespace, speech: dict[str, Speech]) -> None:
        """speech: by part of the corpus"""
        torch.manual_seed(options.seed)
        self.options = options
        self.name = "meanflow" if options.meanflow else "flow"
        self.speech = speech["train"]
        self.valid = Validation(speech["valid"], options.device)
        self.unseen = Validation(speech["unseen"], options.device)
        if options.ear:
            ear = load_ear(options.ear).to(options.device)
            self.valid.ear = self.unseen.ear = ear
        self.history: list[dict] = []
        self.flow = self._flow().to(options.device)
        self.average = Average(self.flow, AVERAGING)

    def _flow(self) -> Flow:
        """Untrained, or as a file has it."""
        options = self.options
        if file := options.resume or options.meanflow:
            return load_flow(file, meanflow=bool(options.meanflow))
        flow = Flow(FLOW_SIZES[options.size])
        flow.start_at(self.speech.mean_mel())
        return flow

    def _objective(self) -> FlowMatching | Distillation:
        options = self.options
        if not options.meanflow:
            return FlowMatching(self.flow, options.seed, options.device)
        teacher = load_flow(options.meanflow).to(options.device)
        self.valid.compare_with(teacher)
        given = (self.flow, teacher, options.seed, options.device)
        return Distillation(*given, self.valid.ear, options.ear_weight)

    def autocast(self) -> torch.autocast:
        device = torch.device(self.options.device).type
        # Not cached: weights cast where no gradient is wanted would be without one where it is.
        return torch.autocast(device, torch.bfloat16, enabled=device == "cuda", cache_enabled=False)

    def train(self) -> bool:
        """→ whether it was left to come to its end"""
        options = self.options
        print(
            f"{self.name}: {self.flow.parameter_count} parameters, {self.speech.hours:.1f} hours "
            f"of {len(self.speech.rows_of)} voices, varied ones counted",
            flush=True,
        )
        objective = self._objective()
        peak = DISTILLATION_RATE if options.meanflow else PEAK_RATE
        parameters = objective.parameters()
        optimiser = torch.optim.AdamW(
            parameters,
            betas=(0.9, 0.98),
            weight_decay=0.01,
            fused=torch.device(options.device).type == "cuda",
        )
        descent = Descent(optimiser, options.device)
        given = batches(self.speech, options.seconds, options.seed)
        clock = training_clock(options)
        while clock.tick():
            with self.autocast():
                found = objective.losses(next(given), clock.progress)
            descent.step(sum(found.values()), clock.learning_rate(peak), parameters)
            self.average.update()
            if clock.step == 1 or clock.due("report", 30):
                self.report(clock, found)
            if clock.due("save", 120):
                self.save(clock)
        self.save(clock)  # before judging, for which there may be no time
        self.report(clock, found)
        self.save(clock)
        return not clock.terminated

    def report(self, clock: Clock, found: dict[str, Tensor]) -> None:
        few, usual, many = MEANFLOW_STEPS if self.flow.meanflow else GUIDED_STEPS
        trained = {name: loss.item() for name, loss in found.items()}
        if not all(map(math.isfinite, trained.values())):
            raise FloatingPointError(f"the loss is no number after {clock.step} steps: {trained}")
        with self.autocast():
            judged = {
                "valid": self.valid.judge(self.average.network, (few, usual, many)),
                "unseen": self.unseen.judge(self.average.network, (usual,)),
            }
        at = {"step": clock.step, "seconds": clock.seconds}
        self.history.append({**at, "train": trained, **judged})
        parts = [
            " ".join([part, *(f"{name} {value:.3f}" for name, value in values.items())])
            for part, values in {"train": trained, **judged}.items()
        ]
        print(f"step {clock.step} {clock.seconds:.0f} s", *parts, sep=" | ", flush=True)

    def save(self, clock: Clock) -> None:
        """The average, as float16, as it is shipped."""
        facts = {
            "size": dataclasses.asdict(self.flow.size),
            "meanflow": self.flow.meanflow,
            "parameters": self.flow.parameter_count,
            "steps": clock.step,
            "hours": self.speech.hours,
            "history": self.history,
        }
        tensors = self.average.network.official_tensors()
        save_stage(self.options.out, self.name, tensors, facts, torch.float16)


def speech_of(options: argparse.Namespace) -> dict[str, Speech]:
    """What a stage is trained and judged on, by part of the corpus."""
    corpus, models = Corpus(options.corpus, options.device), options.models or options.out
    return {
        part: load_speech(corpus.part(part), models, part == "train", options.seed)
        for part in ("train", "valid", "unseen")
    }


def run(options: argparse.Namespace) -> None:
    """One stage or, with `distil`, both."""
    speech = speech_of(options)
    if options.distil is None:
        Stage(options, speech).train()
        return
    now, end = time.time(), options.until
    if end is None:
        end = now + 60 * options.minutes
    first = {"until": end - options.distil * (end - now)}
    second = {"until": end, "meanflow": str(options.out / "flow.safetensors"), "resume": None}
    for changes in (first, second):
        if not Stage(argparse.Namespace(**(vars(options) | changes)), speech).train():
            return


def load_flow(path: str | Path, meanflow: bool = False) -> Flow:
    """What the stage wrote; `meanflow` makes one of a plain flow."""
    tensors, facts = load_stage(path)
    flow = Flow(FlowSize(**facts["size"]), meanflow or facts["meanflow"])
    flow.load_official(tensors)
    return flow.eval()


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m train.flow")
    add_training(parser, 11.0, FLOW_SIZES)
    parser.add_argument("--models", help="where the tokenizer and the speakers are; default: OUT")
    parser.add_argument("--meanflow", help="a flow.safetensors to distil to two steps")
    parser.add_argument("--distil", type=float, help="the share of the time that is for it")
    parser.add_argument("--ear", help="an ear.safetensors to be heard by")
    parser.add_argument(
        "--ear-weight", type=float, default=EAR_WEIGHT, help="of what it hears, in distilling"
    )
    parser.add_argument("--seconds", type=float, default=600.0, help="of sound a batch")
    run(parser.parse_args(arguments))


if __name__ == "__main__":
    main(sys.argv[1:])
