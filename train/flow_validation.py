"""Validation of the flow: on held-out speech, always with the same noise."""

from __future__ import annotations

from collections import defaultdict

import torch
from torch import Tensor

from .flow_examples import (
    FlowBatch,
    Speech,
    conditioning_of,
    gather,
    grouped,
    truncate,
    validation_examples,
)
from .networks.flow import Flow
from .networks.phoneme_classifier import PhonemeClassifier

EXAMPLES = 64
PROMPT_SECONDS = 3.5  # as in the embedded voices
TIMES = (0.1, 0.3, 0.5, 0.7, 0.9)
BATCH_TOKENS = 2500


class Validation:
    """Rows after a prompt, as in synthesis. Figures are means over the frames behind the prompt."""

    def __init__(self, speech: Speech, device: str) -> None:
        examples = validation_examples(speech, EXAMPLES, PROMPT_SECONDS, seed=0)
        generator = torch.Generator().manual_seed(0)
        self.batches: list[FlowBatch] = []
        self.parts: list[FlowBatch] = []
        self.noise: list[Tensor] = []
        for group in grouped(examples, BATCH_TOKENS):
            batch = gather(speech, group)
            self.batches.append(batch)
            place = torch.rand(len(group), generator=generator).to(device)
            self.parts.append(truncate(batch, place))
            self.noise.append(torch.randn(batch.mel.shape, generator=generator).to(device))
        self.teacher: list[Tensor] | None = None
        self.classifier: PhonemeClassifier | None = None

    @torch.no_grad()
    def set_teacher(self, teacher: Flow) -> None:
        """Computes the teacher's mels, to which a meanflow is compared."""
        self.teacher = []
        for batch, noise in zip(self.batches, self.noise, strict=True):
            conditioning = conditioning_of(teacher, batch)
            self.teacher.append(teacher.solve(noise, conditioning, batch.frame_mask, 10))

    @torch.no_grad()
    def evaluate(self, flow: Flow, solutions: tuple[int, ...]) -> dict[str, float]:
        """The loss of a plain flow, and for each solution in N steps:

        l1-N: the distance to the true mel in nepers
        detail-N: its change between frames and bands, relative to the true mel; below 1 if blurred
        teacher-N: the distance to the teacher's solution
        phonemes-N: the share of frames whose phoneme is classified as in the true mel
        part-N: for the middle N, the distance to the solution of a truncated row
        """
        sums: dict[str, float] = defaultdict(float)
        values: dict[str, float] = defaultdict(float)

        def add(name: str, x: Tensor, behind: Tensor) -> None:
            sums[name] += (x * behind[..., None]).sum().item()
            values[name] += behind.sum().item() * x.shape[-1]

        for index, (batch, noise) in enumerate(zip(self.batches, self.noise, strict=True)):
            behind = batch.frame_mask & ~batch.prompt_mask
            conditioning = conditioning_of(flow, batch)
            true = self._phonemes(batch.mel, batch)
            if not flow.meanflow:
                for time in TIMES:
                    x = torch.lerp(noise, batch.mel, time)
                    t = torch.full((len(x),), time, device=x.device)
                    velocity = flow.velocity(x, conditioning, batch.frame_mask, t)
                    square = (velocity - (batch.mel - noise)).square()
                    add("loss", square / len(TIMES), behind)
            add("detail", detail(batch.mel), behind)
            for steps in solutions:
                mel = flow.solve(noise, conditioning, batch.frame_mask, steps)
                add(f"l1-{steps}", (mel - batch.mel).abs(), behind)
                add(f"detail-{steps}", detail(mel), behind)
                if true is not None:
                    same = self._phonemes(mel, batch) == true
                    add(f"phonemes-{steps}", same[..., None].float(), behind)
                if self.teacher:
                    add(f"teacher-{steps}", (mel - self.teacher[index]).abs(), behind)
                if steps == solutions[len(solutions) // 2]:
                    part = self.parts[index]
                    early = flow.solve(noise, conditioning_of(flow, part), part.frame_mask, steps)
                    add(f"part-{steps}", (early - mel).abs(), part.frame_mask & ~part.prompt_mask)
        truth = sums.pop("detail")
        return {
            name: total / (truth if name.startswith("detail") else values[name])
            for name, total in sums.items()
        }

    def _phonemes(self, mel: Tensor, batch: FlowBatch) -> Tensor | None:
        if self.classifier is None:
            return None
        return self.classifier(mel, batch.frame_mask).phonemes.argmax(-1)


def detail(mel: Tensor) -> Tensor:
    """The distance of each value to the previous frame and to the band below. [B, T, 80]"""
    change = torch.zeros_like(mel)
    change[:, 1:] += (mel[:, 1:] - mel[:, :-1]).abs()
    change[..., 1:] += (mel[..., 1:] - mel[..., :-1]).abs()
    return change
