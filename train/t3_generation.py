"""Batched generation with T3, by the sampling rules of the core."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .alignment import track_alignment
from .networks.t3 import (
    START_SPEECH,
    STOP_SPEECH,
    T3,
    Cache,
    gather_positions,
    log_attention,
    pack_rows,
)
from .t3_examples import T3Batch

MAX_LENGTH_RATIO, MAX_LENGTH_SLACK = 1.8, 20  # of the recording's length, and tokens more


@dataclass(frozen=True)
class Sampling:
    """In the order in which the core applies them."""

    cfg_weight: float = 0.5
    repetition_penalty: float = 1.2
    temperature: float = 0.8
    min_p: float = 0.05


@dataclass(frozen=True)
class Generated:
    tokens: np.ndarray  # [n], without stop
    stopped: bool  # false if the length limit ended it
    text_position: int  # of the last token, in the text with start and stop


@torch.no_grad()
def generate(
    model: T3, batch: T3Batch, max_tokens: int, sampling: Sampling, generator: torch.Generator
) -> list[Generated]:
    """Generates the texts of a batch in its voices; at most `max_tokens` each."""
    rows = len(batch.text)
    counts = _text_counts(batch)
    texts = [batch.text[row, 1 : count - 1].cpu().numpy() for row, count in enumerate(counts)]
    layout = pack_rows(model.size, texts * 2, [np.empty(0, np.int64)] * 2 * rows)
    device = batch.text.device
    tokens, positions, output_positions = (
        torch.from_numpy(array).to(device)
        for array in (layout.tokens, layout.positions, layout.output_positions)
    )
    has_text = torch.arange(2 * rows, device=device) < rows
    voice = model.voice(batch.speaker, batch.emotion, batch.prompt, batch.prompt_counts)
    x = torch.cat((voice.repeat(2, 1, 1), model.embed(tokens, positions, has_text)), 1)
    output_positions = output_positions + voice.shape[1]
    at = torch.arange(x.shape[1], device=device)
    cache: Cache = [None] * model.size.layers
    trace = model.tfmr(x, at[None], at[:, None] >= at[None], cache)
    hidden = gather_positions(trace.hidden, output_positions)
    attended = at <= output_positions  # [2 rows, positions]: what later tokens may attend to
    queries = trace.queries.gather(
        2, output_positions[:, None, :, None].expand_as(trace.queries[:, :, :1])
    )
    text = slice(voice.shape[1], voice.shape[1] + max(counts))
    weights: list[Tensor] = []  # to the text, [rows, text] each

    seen = torch.zeros(rows, model.size.speech_vocabulary, dtype=torch.bool, device=device)
    seen[:, START_SPEECH] = True
    drawn: list[Tensor] = []
    ended = torch.zeros(rows, dtype=torch.bool, device=device)
    while True:
        weights.append(_mean_attention(queries, trace.keys, attended)[:rows, text])
        logits = model.speech_head(hidden[:, 0]).float()
        token = sample(logits[:rows], logits[rows:], seen, sampling, generator)
        seen.scatter_(1, token[:, None], True)
        drawn.append(token)
        ended |= token == STOP_SPEECH
        if len(drawn) == max_tokens or bool(ended.all()):
            break
        fed = (token + model.size.text_vocabulary).repeat(2)[:, None]
        place = torch.full_like(fed, model.size.text_positions + len(drawn))
        attended = torch.cat((attended, attended.new_ones(2 * rows, 1)), 1)
        trace = model.tfmr(
            model.embed(fed, place, has_text),
            output_positions + len(drawn),
            attended[:, None, None],
            cache,
        )
        hidden, queries = trace.hidden, trace.queries
    return _gather(torch.stack(drawn, 1), torch.stack(weights, 1), counts)


def sample(
    logits: Tensor,
    unguided: Tensor,
    seen: Tensor,
    sampling: Sampling,
    generator: torch.Generator,
) -> Tensor:
    """logits, unguided: [B, V] with and without text; seen: [B, V] bool → [B] tokens"""
    x = apply_repetition_penalty(logits + sampling.cfg_weight * (logits - unguided), seen, sampling)
    probabilities = (x / sampling.temperature).softmax(-1)
    least = sampling.min_p * probabilities.amax(-1, keepdim=True)
    return torch.multinomial(probabilities * (probabilities >= least), 1, generator=generator)[:, 0]


def apply_repetition_penalty(guided: Tensor, seen: Tensor, sampling: Sampling) -> Tensor:
    """Logits with those of tokens that were attended made less likely: [B, V]"""
    penalty = sampling.repetition_penalty
    return torch.where(seen, torch.where(guided < 0, guided * penalty, guided / penalty), guided)


def _mean_attention(queries: Tensor, keys: Tensor, attended: Tensor) -> Tensor:
    """The mean over the alignment heads, for one query per row. attended: [B, S] → [B, S]"""
    return log_attention(queries, keys, attended[:, None]).exp().mean(1)[:, 0]


def _text_counts(batch: T3Batch) -> list[int]:
    """Text tokens of each row, start and stop included: ask[:, 0] stands two after the last."""
    return (batch.output_positions[:, 0] - 1).tolist()


def _gather(drawn: Tensor, weights: Tensor, counts: Sequence[int]) -> list[Generated]:
    """drawn: [B, n]; weights: [B, n, text]"""
    generated = []
    for row, tokens in enumerate(drawn.cpu().numpy()):
        stops = np.flatnonzero(tokens == STOP_SPEECH)
        count = int(stops[0]) if len(stops) else len(tokens)
        places = track_alignment(weights[row, : count + 1, : counts[row]].cpu().numpy())
        generated.append(Generated(tokens[:count], bool(len(stops)), int(places[-1])))
    return generated


def evaluate_generation(
    model: T3, batch: T3Batch, sampling: Sampling, seed: int
) -> dict[str, float]:
    """Generates a batch and compares it with the lengths of the recordings."""
    truth = (batch.targets >= 0).sum(1).cpu().numpy() - 1
    generator = torch.Generator(batch.text.device).manual_seed(seed)
    limit = int(MAX_LENGTH_RATIO * truth.max()) + MAX_LENGTH_SLACK
    generated = generate(model, batch, limit, sampling, generator)
    ratios = np.array([len(row.tokens) for row in generated]) / np.maximum(truth, 1)
    counts = np.array(_text_counts(batch))
    ends = np.array([row.text_position for row in generated]) >= counts - 3
    low, middle, high = np.quantile(ratios, (0.05, 0.5, 0.95))
    return {
        "spoken": len(generated),
        "stopped": float(np.mean([row.stopped for row in generated])),
        "at_end": float(ends.mean()),
        "good_length": float(((ratios > 0.6) & (ratios < 1.6)).mean()),
        "length_05": float(low),
        "length_50": float(middle),
        "length_95": float(high),
        "repeated": _repeated([row.tokens for row in generated]),
    }


def _repeated(rows: Sequence[np.ndarray]) -> float:
    """The share of tokens that equal their predecessor."""
    pairs = sum(len(row) - 1 for row in rows if len(row))
    return sum(int((row[1:] == row[:-1]).sum()) for row in rows) / max(pairs, 1)
