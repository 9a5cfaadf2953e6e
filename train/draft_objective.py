"""What a draft learns and how it is judged: by the tokens that decoding draws."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from .alignment import IGNORED
from .networks.t3 import START_SPEECH, STOP_SPEECH, T3
from .t3_examples import T3Batch
from .t3_speaking import Sampling, penalised


def spoken_places(batch: T3Batch) -> Tensor:
    """Where a batch has speech tokens, the stops included: [N], as if its rows were one"""
    return (batch.targets != IGNORED).flatten().nonzero()[:, 0]


def guided_logits(model: T3, batch: T3Batch, spoken: Tensor, cfg_weight: float) -> Tensor:
    """What decoding looks at before each of these tokens. spoken: [N], of spoken_places → [N, V]"""
    voice = model.voice(batch.speaker, batch.emotion, batch.prompt, batch.prompt_counts)
    rows = model.guidance_rows(voice, batch.tokens, batch.positions, batch.ask)
    told, untold = (model.speech_head(x.flatten(0, 1)[spoken]).float() for x in rows)
    return told + cfg_weight * (told - untold)


def seen_before(targets: Tensor, spoken: Tensor, vocabulary: int) -> Tensor:
    """Which tokens the repetition penalty knows of before each: [N, V] bool

    targets: [B, K], IGNORED past each row's stop; spoken: [N], of spoken_places
    """
    rows, longest = targets.shape
    at = torch.arange(longest, device=targets.device).expand_as(targets)
    first = targets.new_full((rows, vocabulary), longest)
    where = at.where(targets != IGNORED, longest)
    first.scatter_reduce_(1, targets.clamp_min(0), where, "amin")
    first[:, START_SPEECH] = -1
    return first[spoken // longest] < (spoken % longest)[:, None]


def log_chances(logits: Tensor, seen: Tensor, sampling: Sampling) -> Tensor:
    """Logarithms of what tokens are drawn by, before the unlikely ones are left out: [N, V]"""
    return (penalised(logits, seen, sampling) / sampling.temperature).log_softmax(-1)


def drawable(chances: Tensor, min_p: float) -> Tensor:
    """With the logarithms of tokens that are never drawn as -inf. chances: [N, V]"""
    least = chances.amax(-1, keepdim=True) + math.log(max(min_p, 1e-30))
    return chances.masked_fill(chances < least, -math.inf)


def distillation_loss(teacher: Tensor, draft: Tensor, min_p: float) -> Tensor:
    """Nats a token by which the draft is surprised at what the teacher draws, more than the teacher
    itself. teacher, draft: [N, V], of log_chances"""
    target = drawable(teacher, min_p).softmax(-1)
    known = target * target.clamp_min(1e-30).log()
    return (known - target * draft).sum(-1).mean()


def draws_agree(teacher: Tensor, draft: Tensor, min_p: float, generator: torch.Generator) -> Tensor:
    """Whether both draw the same token where they share the draw's noise, as in the core: [N] bool

    teacher, draft: [N, V], of log_chances
    """
    # One in some millions of these is 0, which has no logarithm.
    noise = torch.empty_like(teacher).exponential_(generator=generator).clamp_min_(1e-30).log_()
    chosen = [(drawable(chances, min_p) - noise).argmax(-1) for chances in (teacher, draft)]
    # The core's draft ends before a stop.
    return (chosen[0] == chosen[1]) & (chosen[0] != STOP_SPEECH)


def tokens_a_round(agree: Sequence[np.ndarray], proposed: int) -> float:
    """Tokens that a pass of the model gives where `proposed` are checked in it: those up to the
    first that is wrong, and what is right in its place. agree: [n] bool of each utterance"""
    rounds = spoken = 0
    for right in agree:
        at = 0
        while at < len(right):
            wrong = np.flatnonzero(~right[at : at + proposed])
            at += 1 + (int(wrong[0]) if len(wrong) else proposed)
            rounds += 1
        spoken += len(right)
    return spoken / max(rounds, 1)
