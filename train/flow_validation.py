"""How good a flow is: on speech it has not seen, always with the same noise."""

from __future__ import annotations

from collections import defaultdict

import torch
from torch import Tensor

from .flow_examples import (
    FlowBatch,
    Speech,
    cut_short,
    gather,
    grouped,
    known_of,
    speaking_examples,
)
from .networks.ear import Ear
from .networks.flow import Flow

EXAMPLES = 64
PROMPT_SECONDS = 3.5  # what the embedded voices carry
TIMES = (0.1, 0.3, 0.5, 0.7, 0.9)
BATCH_TOKENS = 2500


class Validation:
    """Rows after a prompt, as when speaking. What is measured is over the frames behind it."""

    def __init__(self, speech: Speech, device: str) -> None:
        examples = speaking_examples(speech, EXAMPLES, PROMPT_SECONDS, seed=0)
        generator = torch.Generator().manual_seed(0)
        self.batches: list[FlowBatch] = []
        self.parts: list[FlowBatch] = []
        self.noise: list[Tensor] = []
        for group in grouped(examples, BATCH_TOKENS):
            batch = gather(speech, group)
            self.batches.append(batch)
            place = torch.rand(len(group), generator=generator).to(device)
            self.parts.append(cut_short(batch, place))
            self.noise.append(torch.randn(batch.mel.shape, generator=generator).to(device))
        self.teacher: list[Tensor] | None = None
        self.ear: Ear | None = None

    @torch.no_grad()
    def compare_with(self, teacher: Flow) -> None:
        """Solves the teacher's mels, which a meanflow is to come near."""
        self.teacher = []
        for batch, noise in zip(self.batches, self.noise, strict=True):
            self.teacher.append(teacher.solve(noise, known_of(teacher, batch), batch.heard, 10))

    @torch.no_grad()
    def judge(self, flow: Flow, solutions: tuple[int, ...]) -> dict[str, float]:
        """Of a plain flow the loss; of each solution, in N steps: l1-N, the mel's distance to the
        truth in nepers; detail-N, its change between frames and bands by the truth's, less than 1
        if it is blurred; teacher-N, its distance to the teacher's solution; heard-N, the share of
        its frames in which the ear hears the phoneme that it hears in the truth. Of the middle one
        of the solutions part-N, its distance to that of a part of the row, where both are."""
        sums: dict[str, float] = defaultdict(float)
        values: dict[str, float] = defaultdict(float)

        def add(name: str, x: Tensor, behind: Tensor) -> None:
            sums[name] += (x * behind[..., None]).sum().item()
            values[name] += behind.sum().item() * x.shape[-1]

        for index, (batch, noise) in enumerate(zip(self.batches, self.noise, strict=True)):
            behind = batch.heard & ~batch.given
            seen = known_of(flow, batch)
            true = self.ear(batch.mel, batch.heard).phonemes.argmax(-1) if self.ear else None
            if not flow.meanflow:
                for time in TIMES:
                    x = torch.lerp(noise, batch.mel, time)
                    t = torch.full((len(x),), time, device=x.device)
                    velocity = flow.velocity(x, seen, batch.heard, t)
                    square = (velocity - (batch.mel - noise)).square()
                    add("loss", square / len(TIMES), behind)
            add("detail", detail(batch.mel), behind)
            for steps in solutions:
                mel = flow.solve(noise, seen, batch.heard, steps)
                add(f"l1-{steps}", (mel - batch.mel).abs(), behind)
                add(f"detail-{steps}", detail(mel), behind)
                if self.ear:
                    same = self.ear(mel, batch.heard).phonemes.argmax(-1) == true
                    add(f"heard-{steps}", same[..., None].float(), behind)
                if self.teacher:
                    add(f"teacher-{steps}", (mel - self.teacher[index]).abs(), behind)
                if steps == solutions[len(solutions) // 2]:
                    part = self.parts[index]
                    early = flow.solve(noise, known_of(flow, part), part.heard, steps)
                    add(f"part-{steps}", (early - mel).abs(), part.heard & ~part.given)
        truth = sums.pop("detail")
        return {
            name: total / (truth if name.startswith("detail") else values[name])
            for name, total in sums.items()
        }


def detail(mel: Tensor) -> Tensor:
    """How much each value differs from its neighbours before it and below it. [B, T, 80]"""
    change = torch.zeros_like(mel)
    change[:, 1:] += (mel[:, 1:] - mel[:, :-1]).abs()
    change[..., 1:] += (mel[..., 1:] - mel[..., :-1]).abs()
    return change
