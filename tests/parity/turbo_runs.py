"""Cases of T3 with a GPT-2 backbone, and Nightingale's runs of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np

from nightingale import _core
from nightingale.options import LoadOptions, SpeechOptions
from nightingale.safetensors_writer import stream_safetensors
from nightingale.torch_file import open_tensors
from tools.synthetic import GPT2_SIZES, default_voice, gpt2_t3_weights

from .cases import START_SPEECH, Draws, speech_tokens

MODELS = ("turbo", "nano")
TEXT_VOCABULARY, SPEECH_VOCABULARY = 50276, 6563
GREEDY_STEPS = 200


def write_t3(folder: Path, model: str, size: str = "small", seed: int = 0) -> Path:
    """The T3 file of a synthetic checkpoint."""
    tensors = gpt2_t3_weights(GPT2_SIZES[model][size])
    path = folder / f"t3_{model}_v1.safetensors"
    layout = {name: ("float32", weights.shape) for name, weights in tensors.items()}
    stream_safetensors(
        path, layout, lambda name: tensors[name].values(seed, name), {"format": "pt"}
    )
    return path


def load(path: Path, **options: Any) -> _core.T3:
    model, unknown = _core.T3.load(open_tensors(path), LoadOptions(device="cpu", **options))
    assert unknown == []
    return model


def text_of(count: int, *key: Any) -> np.ndarray:
    return Draws("turbo text", count, *key).integer(0, TEXT_VOCABULARY, (count,)).astype(np.int32)


def voice_of(prompt: int, *key: Any) -> dict[str, Any]:
    tokens = Draws("turbo prompt", prompt, *key).integer(0, START_SPEECH, (prompt,))
    return {
        "speaker": default_voice()["t3"]["speaker_emb"][0],
        "prompt": tokens.astype(np.int32) if prompt else None,
    }


# (text tokens, speech tokens, prompt tokens)
LOGITS_CORNERS = ((40, 60, 375), (40, 30, 0), (1, 1, 375), (300, 40, 20))


def logits_case(index: int) -> dict[str, Any]:
    if index < len(LOGITS_CORNERS):
        text, speech, prompt = LOGITS_CORNERS[index]
    else:
        draws = Draws("turbo logits", index)
        text, speech, prompt = (draws.integer(1, most) for most in (300, 60, 376))
    tokens = speech_tokens(speech, "turbo", index)
    return {
        "text_tokens": text_of(text, index),
        "speech_tokens": tokens,
        **voice_of(prompt, index),
    }


def decode_case(index: int) -> dict[str, Any]:
    text = text_of((30, 90)[index % 2], "decode", index)
    return {"text_tokens": text, "steps": GREEDY_STEPS, **voice_of(375, index)}


def condition(model: _core.T3, case: dict[str, Any]) -> _core.KvCache:
    return model.condition(case["speaker"], case["prompt"], 0.5)


def logits(model: _core.T3, case: dict[str, Any], chunk: int = 0) -> np.ndarray:
    return model.logits(case["text_tokens"], case["speech_tokens"], condition(model, case), chunk)


def greedy(model: _core.T3, case: dict[str, Any]) -> np.ndarray:
    options = SpeechOptions(temperature=0.0, max_tokens=case["steps"])
    stream = model.speak(
        case["text_tokens"],
        condition(model, case),
        options.resolved({}),
        analyser=False,
        min_tokens=case["steps"],
    )
    return np.fromiter(iter(stream.next, None), np.int32)


def digest(logits: np.ndarray) -> dict[str, np.ndarray]:
    """[1, n, 6563] as 32 of its columns and 8 projections, which depend on every column."""
    draws = Draws("turbo digest")
    columns = draws.integer(0, SPEECH_VOCABULARY, (32,))
    columns[:3] = 0, SPEECH_VOCABULARY - 2, SPEECH_VOCABULARY - 1
    signs = 2.0 * draws.integer(0, 2, (SPEECH_VOCABULARY, 8)) - 1
    projections = logits[0].astype(np.float64) @ signs / SPEECH_VOCABULARY**0.5
    return {"columns": logits[0][:, columns], "projections": projections.astype(np.float32)}


SAMPLER_KINDS = ("defaults", "anything", "ties", "few", "top_p 1", "top_k 0", "penalty 5", "cold")


def sampler_case(index: int) -> dict[str, Any]:
    """Logits float32 [6563], the tokens spoken so far and the sampling settings."""
    kind = SAMPLER_KINDS[index % len(SAMPLER_KINDS)]
    draws = Draws("turbo sampler", index)
    logits = draws.normal(2.5, (SPEECH_VOCABULARY,))
    seen = draws.integer(0, SPEECH_VOCABULARY, (draws.integer(1, 200),))
    # Seen tokens should matter: a few of them are likely ones.
    seen[:5] = np.argsort(-logits, kind="stable")[: len(seen[:5])]
    settings = {"temperature": 0.8, "top_k": 1000, "top_p": 0.95, "repetition_penalty": 1.2}
    if kind == "anything":
        settings = {
            "temperature": draws.uniform(0.3, 2.0),
            "top_k": draws.integer(1, 7000),
            "top_p": draws.uniform(0.3, 1.0),
            "repetition_penalty": draws.uniform(0.7, 3.0),
        }
    elif kind == "ties":
        logits = np.round(logits)
        settings |= {"top_k": draws.choice((1, 40, 1000)), "top_p": draws.choice((0.8, 1.0))}
    elif kind == "few":
        settings |= {"top_k": draws.integer(1, 10)}
    elif kind == "top_p 1":
        settings |= {"top_p": 1.0}
    elif kind == "top_k 0":
        settings |= {"top_k": 0}
    elif kind == "penalty 5":
        settings |= {"repetition_penalty": 5.0}
    elif kind == "cold":
        settings |= {"temperature": 0.05}
    return {"logits": logits.astype(np.float32), "seen": seen.astype(np.int32), **settings}


def probabilities(case: dict[str, Any], form: str, first: bool) -> np.ndarray:
    """What a token would be drawn from, with our ops. first: it is the first of an utterance."""
    seen = np.zeros(SPEECH_VOCABULARY, np.uint8)
    seen[START_SPEECH if first else case["seen"]] = 1
    names = ("temperature", "top_k", "top_p", "repetition_penalty")
    options = SpeechOptions(**{name: case[name] for name in names}, min_p=0.0).resolved({})
    kept = _core.ops.filter_logits(mx.array(case["logits"]), mx.array(seen), options, form, True)
    scores = np.array(kept, dtype=np.float64)
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


def uncertain_tokens(case: dict[str, Any]) -> np.ndarray:
    """bool [6563]: tokens of a sampler case that float32 sums or a tie may keep or drop."""
    scores = (case["logits"] / np.float32(case["temperature"])).astype(np.float64)
    if case["top_k"] and case["top_k"] < len(scores):
        scores[scores < np.sort(scores)[-case["top_k"]]] = -np.inf
    relative = np.exp(scores - scores.max())
    # Probabilities near the smallest float32 may be flushed to zero.
    uncertain = (relative > 0) & (relative < 1e-36)
    if case["top_p"] < 1:
        order = np.argsort(relative, kind="stable")
        cumulative = np.cumsum(relative[order]) / relative.sum()
        cut = 1 - case["top_p"]
        uncertain[order[np.abs(cumulative - cut) < 1e-5]] = True
        first_kept = order[min(np.searchsorted(cumulative, cut, "right"), len(order) - 1)]
        tied = relative == relative[first_kept]
        if tied.sum() > 1:
            uncertain |= tied
    return uncertain


def assert_same_probabilities(
    case: dict[str, Any], found: np.ndarray, expected: np.ndarray
) -> None:
    differing = (found > 0) != (expected > 0)
    uncertain = uncertain_tokens(case)
    assert not (differing & ~uncertain).any(), np.flatnonzero(differing & ~uncertain)
    if not differing.any():
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-7)
