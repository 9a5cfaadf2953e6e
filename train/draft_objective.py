"""The objective and the validation figures of a draft: agreement with the model's draws."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from .masking import IGNORED
from .networks.t3 import START_SPEECH, STOP_SPEECH, T3
from .t3_examples import T3Batch
from .t3_generation import Sampling, apply_repetition_penalty


def speech_positions(batch: T3Batch) -> Tensor:
    """The positions of speech tokens and stops in the flattened batch: [N]"""
    return (batch.targets != IGNORED).flatten().nonzero()[:, 0]


def guided_logits(model: T3, batch: T3Batch, positions: Tensor, cfg_weight: float) -> Tensor:
    """The logits before each of these tokens. positions: [N], of speech_positions → [N, V]"""
    voice = model.voice(batch.speaker, batch.emotion, batch.prompt, batch.prompt_counts)
    rows = model.guidance_rows(voice, batch.tokens, batch.positions, batch.output_positions)
    conditional, unconditional = (
        model.speech_head(x.flatten(0, 1)[positions]).float() for x in rows
    )
    return conditional + cfg_weight * (conditional - unconditional)


def seen_tokens(targets: Tensor, positions: Tensor, vocabulary: int) -> Tensor:
    """The tokens that the repetition penalty applies to at each position: [N, V] bool

    targets: [B, K], IGNORED past each row's stop; positions: [N], of speech_positions
    """
    rows, longest = targets.shape
    at = torch.arange(longest, device=targets.device).expand_as(targets)
    first = targets.new_full((rows, vocabulary), longest)
    where = at.where(targets != IGNORED, longest)
    first.scatter_reduce_(1, targets.clamp_min(0), where, "amin")
    first[:, START_SPEECH] = -1
    return first[positions // longest] < (positions % longest)[:, None]


def log_probabilities(logits: Tensor, seen: Tensor, sampling: Sampling) -> Tensor:
    """Log-probabilities of the tokens before min-p: [N, V]"""
    return (apply_repetition_penalty(logits, seen, sampling) / sampling.temperature).log_softmax(-1)


def apply_min_p(probabilities: Tensor, min_p: float) -> Tensor:
    """Sets tokens that min-p excludes to -inf. probabilities: [N, V], logarithms"""
    least = probabilities.amax(-1, keepdim=True) + math.log(max(min_p, 1e-30))
    return probabilities.masked_fill(probabilities < least, -math.inf)


def distillation_loss(teacher: Tensor, draft: Tensor, min_p: float) -> Tensor:
    """KL divergence in nats per token of the draft from the teacher after min-p.

    teacher, draft: [N, V], of log_probabilities
    """
    target = apply_min_p(teacher, min_p).softmax(-1)
    entropy = target * target.clamp_min(1e-30).log()
    return (entropy - target * draft).sum(-1).mean()


def same_draws(teacher: Tensor, draft: Tensor, min_p: float, generator: torch.Generator) -> Tensor:
    """Whether both draw the same token with the same Gumbel noise, as in the core: [N] bool

    teacher, draft: [N, V], of log_probabilities
    """
    # A draw may be exactly 0, whose logarithm is infinite.
    noise = torch.empty_like(teacher).exponential_(generator=generator).clamp_min_(1e-30).log_()
    ours, theirs = ((apply_min_p(x, min_p) - noise).argmax(-1) for x in (draft, teacher))
    # The core's draft never proposes a stop.
    return (ours == theirs) & (theirs != STOP_SPEECH)


def tokens_per_pass(agree: Sequence[np.ndarray], proposed: int) -> float:
    """Mean tokens per pass of the model if it checks `proposed` tokens: the accepted ones and one
    more. agree: [n] bool of each utterance"""
    passes = tokens = 0
    for right in agree:
        at = 0
        while at < len(right):
            wrong = np.flatnonzero(~right[at : at + proposed])
            at += 1 + (int(wrong[0]) if len(wrong) else proposed)
            passes += 1
        tokens += len(right)
    return tokens / max(passes, 1)
