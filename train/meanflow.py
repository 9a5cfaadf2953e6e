"""Distils a guided flow to one that takes its way in a few even steps without guidance.

The student learns the mean velocity of whole steps: where its teacher, guided, gets from a state in
several steps of its own. States are noise, noise on its straight way to a mel, or where the student
itself got from noise, as its second step will find it. It is shown half of the rows in part, as a
stream knows them, and learns the way that its teacher takes knowing the whole, at the cut, where a
stream's seam will be, above all.

With an ear (train/ear.py) what it says from noise, in two steps, is also to be heard as what is
true: a squared error minds a loud vowel's pitch more than a faint consonant that makes the word.
"""

from __future__ import annotations

import dataclasses
import itertools
import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from .flow_examples import FlowBatch, cut_short, known_of
from .masked import masked_mean
from .networks.ear import Ear
from .networks.flow import Flow, cosine_times

TEACHER_STEPS = 6  # in place of one of the student's
GRIDS = ((2, 0.6), (1, 0.1), (4, 0.15))  # steps of a solution and how often; else any two times
SHORTEST = 0.05  # step, of any two times
IN_PART = 0.5  # of the rows
OWN_STATE = 0.5  # of the steps that do not begin at noise begin where the student got
LEAST_NOISE = 0.4  # of its usual strength: a voice may ask for less of it
EDGE, EDGE_WEIGHT = 12, 3.0  # frames before a cut, and how much they count
SOLVED_IN = 2  # steps, what the ear hears
UNHEARD = 0.25  # of the run, before the ear is asked
FEATURES = 0.5  # of the ear's loss, by what it hears on its way to the phonemes


class Distillation:
    """The loss of a meanflow; only the estimator learns."""

    def __init__(
        self,
        student: Flow,
        teacher: Flow,
        seed: int,
        device: str,
        ear: Ear | None = None,
        ear_weight: float = 0.0,
    ) -> None:
        self.student = student
        self.teacher = teacher.requires_grad_(False)
        self.ear = ear and ear.requires_grad_(False)
        self.ear_weight = ear_weight
        self.generator = torch.Generator(device).manual_seed(seed)

    def parameters(self) -> list[nn.Parameter]:
        return list(self.student.estimator.parameters())

    def losses(self, batch: FlowBatch, progress: float) -> dict[str, Tensor]:
        with torch.no_grad():
            known = known_of(self.teacher, batch)
            t, r = self.draw_steps(len(known))
            x = self.draw_states(batch, known, t)
            reached = teacher_way(self.teacher, x, known, batch.heard, t, r)
            target = (reached - x) / (r - t)[:, None, None]
            shown = self.show(batch)
            known = known_of(self.teacher, shown)
        velocity = self.student.velocity(x, known, shown.heard, t, r)
        weight = shown.heard * (1 + (EDGE_WEIGHT - 1) * before_cut(batch, shown))
        found = {"meanflow": masked_mean((velocity - target).square(), weight)}
        if self.ear and self.ear_weight and progress >= UNHEARD:
            mel = self.student.solve(self.draw_noise(shown), known, shown.heard, SOLVED_IN)
            found["ear"] = self.ear_weight * heard_otherwise(self.ear, mel, shown)
        return found

    def show(self, batch: FlowBatch) -> FlowBatch:
        """Some rows whole, some in part."""
        which, place = self._uniform(2, len(batch.counts))
        part = cut_short(batch, place)
        counts = torch.where(which < IN_PART, part.counts, batch.counts)
        frames = torch.where(which < IN_PART, part.frames, batch.frames)
        return dataclasses.replace(batch, counts=counts, frames=frames)

    def draw_steps(self, count: int) -> tuple[Tensor, Tensor]:
        """Begins and ends, [count] each."""
        first, second = self._uniform(2, count)
        t = torch.minimum(first, second).clamp_max(1 - SHORTEST)
        r = torch.maximum(torch.maximum(first, second), t + SHORTEST)
        kind, place = self._uniform(2, count)
        below = 0.0
        for steps, share in GRIDS:
            chosen = (kind >= below) & (kind < below + share)
            begin = (place * steps).floor().clamp_max(steps - 1) / steps
            t, r = torch.where(chosen, begin, t), torch.where(chosen, begin + 1 / steps, r)
            below += share
        return t, r

    def draw_states(self, batch: FlowBatch, known: Tensor, t: Tensor) -> Tensor:
        """[B, T, 80] at the times t"""
        noise = self.draw_noise(batch)
        by_mel = torch.lerp(noise, batch.mel, t[:, None, None])
        velocity = self.student.velocity(noise, known, batch.heard, torch.zeros_like(t), t)
        by_student = noise + t[:, None, None] * velocity
        own = self._uniform(1, len(t))[0] < OWN_STATE
        return torch.where(own[:, None, None], by_student, by_mel)

    def draw_noise(self, batch: FlowBatch) -> Tensor:
        """[B, T, 80], each row's of some strength"""
        strength = LEAST_NOISE + (1 - LEAST_NOISE) * self._uniform(len(batch.mel), 1, 1)
        device = self.generator.device
        return strength * torch.randn(batch.mel.shape, device=device, generator=self.generator)

    def _uniform(self, *shape: int) -> Tensor:
        return torch.rand(shape, device=self.generator.device, generator=self.generator)


def before_cut(batch: FlowBatch, shown: FlowBatch) -> Tensor:
    """[B, T] 0 or 1: the last frames of the rows that are shown in part"""
    at = torch.arange(batch.mel.shape[1], device=batch.mel.device)
    near = at >= (shown.frames - EDGE)[:, None]
    return (near & (shown.frames < batch.frames)[:, None]).float()


def heard_otherwise(ear: Ear, mel: Tensor, batch: FlowBatch) -> Tensor:
    """How far what the ear hears in a mel is from what it hears in the batch's, which is true:
    the phonemes' surprise above the true mel's own, and how features differ."""
    with torch.no_grad():
        true = ear(batch.mel, batch.heard)
    found = ear(mel, batch.heard)
    said = batch.heard & ~batch.given
    apart = functional.kl_div(
        found.phonemes.log_softmax(-1),
        true.phonemes.log_softmax(-1),
        reduction="none",
        log_target=True,
    ).sum(-1)
    pairs = zip(found.features, true.features, strict=True)
    features = [masked_mean((own - other).abs(), said) for own, other in pairs]
    return masked_mean(apart, said) + FEATURES * sum(features) / len(features)


def teacher_way(
    teacher: Flow, x: Tensor, known: Tensor, heard: Tensor, t: Tensor, r: Tensor
) -> Tensor:
    """Where the guided flow gets from x between the times t and r, [B] each."""
    # Even along the cosine that a guided solution's times follow.
    begin, end = (torch.acos(1 - time) * (2 / math.pi) for time in (t, r))
    even = torch.linspace(0, 1, TEACHER_STEPS + 1, device=x.device)[:, None]
    times = cosine_times(torch.lerp(begin, end, even))
    for now, then in itertools.pairwise(times):
        velocity = teacher.guided_velocity(x, known, heard, now)
        x = x + (then - now)[:, None, None] * velocity
    return x
