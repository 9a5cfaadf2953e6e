"""Distills a guided flow to one that is solved in a few even steps without guidance.

The student learns the mean velocity of a step: the displacement that the guided teacher reaches in
several smaller steps. Steps start from noise, from noise mixed with the mel, or from the state
that the student itself reaches, which is what its second step will see. The student sees half of
the rows only up to a cut, as in streaming, but its target is what the teacher computes from the
whole row; frames before the cut, where the streamed chunks join, have more weight.

With a phoneme classifier (train/phoneme_classifier.py) the mel that the student generates in two
steps should also be classified like the true mel: a squared error depends more on the pitch of a
loud vowel than on a quiet consonant that decides the word. An adversary (train/mel_adversary.py)
keeps that mel from being blurred.
"""

from __future__ import annotations

import dataclasses
import itertools
import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from .flow_examples import FlowBatch, conditioning_of, truncate
from .masking import masked_mean
from .mel_adversary import MelAdversary
from .networks.estimator import MELS
from .networks.flow import Flow, cosine_times
from .networks.phoneme_classifier import PhonemeClassifier

TEACHER_STEPS = 6  # in place of one of the student's
GRIDS = ((2, 0.6), (1, 0.1), (4, 0.15))  # steps of a solution and its share; else any two times
SHORTEST = 0.05  # shortest step between any two times
TRUNCATED = 0.5  # of the rows
OWN_STATE = 0.5  # of the steps that do not start from noise start from a state of the student
MIN_NOISE = 0.4  # of the usual noise scale: a voice may ask for less noise
EDGE, EDGE_WEIGHT = 12, 3.0  # frames before a cut, and their weight
SOLVER_STEPS = 2  # of the mel in the phoneme loss
PHONEME_LOSS_START = 0.25  # share of the run without the phoneme loss
FEATURE_WEIGHT = 0.5  # of the classifier's features in the phoneme loss


class Distillation:
    """The loss of a meanflow; only the estimator is trained."""

    def __init__(
        self,
        student: Flow,
        teacher: Flow,
        seed: int,
        device: str,
        classifier: PhonemeClassifier | None = None,
        phoneme_weight: float = 0.0,
        adversary: MelAdversary | None = None,
    ) -> None:
        """adversary: needs a classifier, as its weight depends on the phoneme loss"""
        self.student = student
        self.teacher = teacher.requires_grad_(False)
        self.classifier = classifier and classifier.requires_grad_(False)
        self.phoneme_weight = phoneme_weight
        self.adversary = adversary
        self.generator = torch.Generator(device).manual_seed(seed)

    def parameters(self) -> list[nn.Parameter]:
        return list(self.student.estimator.parameters())

    def losses(self, batch: FlowBatch, progress: float) -> dict[str, Tensor]:
        with torch.no_grad():
            conditioning = conditioning_of(self.teacher, batch)
            t, r = self.draw_steps(len(conditioning))
            x = self.draw_states(batch, conditioning, t)
            reached = integrate_teacher(self.teacher, x, conditioning, batch.frame_mask, t, r)
            target = (reached - x) / (r - t)[:, None, None]
            shown = self.truncate_some(batch)
            conditioning = conditioning_of(self.teacher, shown)
        velocity = self.student.velocity(x, conditioning, shown.frame_mask, t, r)
        weight = shown.frame_mask * (1 + (EDGE_WEIGHT - 1) * before_cut(batch, shown))
        losses = {"meanflow": masked_mean((velocity - target).square(), weight)}
        if self.classifier and self.phoneme_weight and progress >= PHONEME_LOSS_START:
            noise = self.draw_noise(shown)
            mel = self.student.solve(noise, conditioning, shown.frame_mask, SOLVER_STEPS)
            phonemes = self.phoneme_weight * phoneme_loss(self.classifier, mel, shown)
            losses["phonemes"] = phonemes
            if self.adversary:
                expected = conditioning[..., :MELS]
                losses |= self.adversary.losses(mel, expected, shown, phonemes)
        return losses

    def truncate_some(self, batch: FlowBatch) -> FlowBatch:
        """Truncates the share TRUNCATED of the rows."""
        which, place = self._uniform(2, len(batch.counts))
        part = truncate(batch, place)
        counts = torch.where(which < TRUNCATED, part.counts, batch.counts)
        frames = torch.where(which < TRUNCATED, part.frames, batch.frames)
        return dataclasses.replace(batch, counts=counts, frames=frames)

    def draw_steps(self, count: int) -> tuple[Tensor, Tensor]:
        """Start and end times, [count] each."""
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

    def draw_states(self, batch: FlowBatch, conditioning: Tensor, t: Tensor) -> Tensor:
        """[B, T, 80] at the times t"""
        noise = self.draw_noise(batch)
        by_mel = torch.lerp(noise, batch.mel, t[:, None, None])
        zero = torch.zeros_like(t)
        velocity = self.student.velocity(noise, conditioning, batch.frame_mask, zero, t)
        by_student = noise + t[:, None, None] * velocity
        own = self._uniform(1, len(t))[0] < OWN_STATE
        return torch.where(own[:, None, None], by_student, by_mel)

    def draw_noise(self, batch: FlowBatch) -> Tensor:
        """[B, T, 80], with a random scale for each row"""
        scale = MIN_NOISE + (1 - MIN_NOISE) * self._uniform(len(batch.mel), 1, 1)
        device = self.generator.device
        return scale * torch.randn(batch.mel.shape, device=device, generator=self.generator)

    def _uniform(self, *shape: int) -> Tensor:
        return torch.rand(shape, device=self.generator.device, generator=self.generator)


def before_cut(batch: FlowBatch, shown: FlowBatch) -> Tensor:
    """[B, T] 0 or 1: the last frames of truncated rows"""
    at = torch.arange(batch.mel.shape[1], device=batch.mel.device)
    near = at >= (shown.frames - EDGE)[:, None]
    return (near & (shown.frames < batch.frames)[:, None]).float()


def phoneme_loss(classifier: PhonemeClassifier, mel: Tensor, batch: FlowBatch) -> Tensor:
    """How differently a mel and the batch's true one are classified: the KL divergence of their
    phonemes and the distance of their features, behind the prompt."""
    with torch.no_grad():
        true = classifier(batch.mel, batch.frame_mask)
    found = classifier(mel, batch.frame_mask)
    mask = batch.frame_mask & ~batch.prompt_mask
    divergence = functional.kl_div(
        found.phonemes.log_softmax(-1),
        true.phonemes.log_softmax(-1),
        reduction="none",
        log_target=True,
    ).sum(-1)
    pairs = zip(found.features, true.features, strict=True)
    features = [masked_mean((own - other).abs(), mask) for own, other in pairs]
    return masked_mean(divergence, mask) + FEATURE_WEIGHT * sum(features) / len(features)


def integrate_teacher(
    teacher: Flow, x: Tensor, conditioning: Tensor, frame_mask: Tensor, t: Tensor, r: Tensor
) -> Tensor:
    """The state that the guided flow reaches from x between the times t and r, [B] each."""
    # Evenly spaced along the cosine that the times of a guided solution follow.
    begin, end = (torch.acos(1 - time) * (2 / math.pi) for time in (t, r))
    even = torch.linspace(0, 1, TEACHER_STEPS + 1, device=x.device)[:, None]
    times = cosine_times(torch.lerp(begin, end, even))
    for now, then in itertools.pairwise(times):
        velocity = teacher.guided_velocity(x, conditioning, frame_mask, now)
        x = x + (then - now)[:, None, None] * velocity
    return x
