"""T3 speaking freely, many texts at once, with the core's rules for drawing tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .alignment import follow
from .networks.t3 import START_SPEECH, STOP_SPEECH, T3, Cache, lay_out, log_weights, rows_at
from .t3_examples import T3Batch

MOST = 1.8  # times the true length, and some, is as long as anything may get
SLACK = 20


@dataclass(frozen=True)
class Sampling:
    """As the core has it, in its order."""

    cfg_weight: float = 0.5
    repetition_penalty: float = 1.2
    temperature: float = 0.8
    min_p: float = 0.05


@dataclass(frozen=True)
class Spoken:
    tokens: np.ndarray  # [n], without stop
    stopped: bool  # or cut off
    place: int  # in the text with start and stop, where the speech was at the end


@torch.no_grad()
def speak(
    model: T3, batch: T3Batch, most: int, sampling: Sampling, generator: torch.Generator
) -> list[Spoken]:
    """Says the texts of a batch in its voices; at most `most` tokens each."""
    rows = len(batch.text)
    counts = _text_counts(batch)
    texts = [batch.text[row, 1 : count - 1].cpu().numpy() for row, count in enumerate(counts)]
    layout = lay_out(model.size, texts * 2, [np.empty(0, np.int64)] * 2 * rows)
    device = batch.text.device
    tokens, positions, ask = (
        torch.from_numpy(array).to(device)
        for array in (layout.tokens, layout.positions, layout.ask)
    )
    kept = torch.arange(2 * rows, device=device) < rows
    voice = model.voice(batch.speaker, batch.emotion, batch.prompt, batch.prompt_counts)
    x = torch.cat((voice.repeat(2, 1, 1), model.embed(tokens, positions, kept)), 1)
    ask = ask + voice.shape[1]
    at = torch.arange(x.shape[1], device=device)
    cache: Cache = [None] * model.size.layers
    trace = model.tfmr(x, at[None], at[:, None] >= at[None], cache)
    hidden = rows_at(trace.hidden, ask)
    heard = at <= ask  # [2 rows, slots]: what later tokens may attend to
    queries = trace.queries.gather(2, ask[:, None, :, None].expand_as(trace.queries[:, :, :1]))
    text = slice(voice.shape[1], voice.shape[1] + max(counts))
    weights: list[Tensor] = []  # to the text, [rows, text] each

    seen = torch.zeros(rows, model.size.speech_vocabulary, dtype=torch.bool, device=device)
    seen[:, START_SPEECH] = True
    drawn: list[Tensor] = []
    ended = torch.zeros(rows, dtype=torch.bool, device=device)
    while True:
        weights.append(_mean_weights(queries, trace.keys, heard)[:rows, text])
        logits = model.speech_head(hidden[:, 0]).float()
        token = choose(logits[:rows], logits[rows:], seen, sampling, generator)
        seen.scatter_(1, token[:, None], True)
        drawn.append(token)
        ended |= token == STOP_SPEECH
        if len(drawn) == most or bool(ended.all()):
            break
        fed = (token + model.size.text_vocabulary).repeat(2)[:, None]
        place = torch.full_like(fed, model.size.text_positions + len(drawn))
        heard = torch.cat((heard, heard.new_ones(2 * rows, 1)), 1)
        trace = model.tfmr(
            model.embed(fed, place, kept), ask + len(drawn), heard[:, None, None], cache
        )
        hidden, queries = trace.hidden, trace.queries
    return _gather(torch.stack(drawn, 1), torch.stack(weights, 1), counts)


def choose(
    logits: Tensor,
    unguided: Tensor,
    seen: Tensor,
    sampling: Sampling,
    generator: torch.Generator,
) -> Tensor:
    """logits, unguided: [B, V] with and without text; seen: [B, V] bool → [B] tokens"""
    x = penalised(logits + sampling.cfg_weight * (logits - unguided), seen, sampling)
    chances = (x / sampling.temperature).softmax(-1)
    least = sampling.min_p * chances.amax(-1, keepdim=True)
    return torch.multinomial(chances * (chances >= least), 1, generator=generator)[:, 0]


def penalised(guided: Tensor, seen: Tensor, sampling: Sampling) -> Tensor:
    """Logits with those of tokens that were heard made less likely: [B, V]"""
    penalty = sampling.repetition_penalty
    return torch.where(seen, torch.where(guided < 0, guided * penalty, guided / penalty), guided)


def _mean_weights(queries: Tensor, keys: Tensor, heard: Tensor) -> Tensor:
    """Of the alignment heads, for one query a row; heard: [B, S] → [B, S]"""
    return log_weights(queries, keys, heard[:, None]).exp().mean(1)[:, 0]


def _text_counts(batch: T3Batch) -> list[int]:
    """Text tokens of each row, start and stop included: ask[:, 0] stands two after the last."""
    return (batch.ask[:, 0] - 1).tolist()


def _gather(drawn: Tensor, weights: Tensor, counts: Sequence[int]) -> list[Spoken]:
    """drawn: [B, n]; weights: [B, n, text]"""
    spoken = []
    for row, tokens in enumerate(drawn.cpu().numpy()):
        stops = np.flatnonzero(tokens == STOP_SPEECH)
        count = int(stops[0]) if len(stops) else len(tokens)
        places = follow(weights[row, : count + 1, : counts[row]].cpu().numpy())
        spoken.append(Spoken(tokens[:count], bool(len(stops)), int(places[-1])))
    return spoken


def report(model: T3, batch: T3Batch, sampling: Sampling, seed: int) -> dict[str, float]:
    """Speaks a batch and compares with its true lengths."""
    truth = (batch.targets >= 0).sum(1).cpu().numpy() - 1
    generator = torch.Generator(batch.text.device).manual_seed(seed)
    most = int(MOST * truth.max()) + SLACK
    spoken = speak(model, batch, most, sampling, generator)
    ratios = np.array([len(said.tokens) for said in spoken]) / np.maximum(truth, 1)
    counts = np.array(_text_counts(batch))
    ends = np.array([said.place for said in spoken]) >= counts - 3
    low, middle, high = np.quantile(ratios, (0.05, 0.5, 0.95))
    return {
        "spoken": len(spoken),
        "stopped": float(np.mean([said.stopped for said in spoken])),
        "at_end": float(ends.mean()),
        "good_length": float(((ratios > 0.6) & (ratios < 1.6)).mean()),
        "length_05": float(low),
        "length_50": float(middle),
        "length_95": float(high),
        "repeated": _repeated([said.tokens for said in spoken]),
    }


def _repeated(rows: Sequence[np.ndarray]) -> float:
    """The share of tokens that equal the one before: a fault to the core's analyser."""
    pairs = sum(len(row) - 1 for row in rows if len(row))
    return sum(int((row[1:] == row[:-1]).sum()) for row in rows) / max(pairs, 1)
