"""Which attention heads follow the text, and where in the text each speech token is spoken."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from . import _core
from .options import SpeechOptions

if TYPE_CHECKING:
    from .engine import Engine
    from .voice import Voice

# Said once by a model whose files do not name the heads that follow the text.
CALIBRATION_TEXTS = (
    "The quick brown fox jumps over the lazy dog near the river bank.",
    "She sells sea shells by the sea shore every summer morning.",
)
HEADS = 3  # that are followed together
HEAD_SIZE = 64
MOST_CALIBRATION_TOKENS = 150
START_SPEECH = 6561


def monotonic_path(weights: np.ndarray, to_end: bool = True) -> np.ndarray:
    """The text position of each query, never going back, that has most of the attention.

    weights: [queries, text]. Begins at the start of the text; to_end: ends at its end, else
    anywhere.
    """
    rows = np.ascontiguousarray(weights, np.float32)
    return np.array(_core.monotonic_path(rows, to_end), np.int64)


def followed_share(weights: np.ndarray) -> float:
    """How well a head follows the text, 0 to 1: the mean attention along its path, times the share
    of the text that the path goes through."""
    path = monotonic_path(weights)
    attention = weights[np.arange(len(path)), path].mean()
    return float(attention * len(np.unique(path)) / min(weights.shape))


def best_heads(spoken: Iterable[np.ndarray], count: int = HEADS) -> list[int]:
    """The numbers of the heads that follow the text best, in their order.

    spoken: [heads, queries, text] of each of some texts.
    """
    shares = np.mean([[followed_share(head) for head in weights] for weights in spoken], axis=0)
    return sorted(int(head) for head in np.argsort(-shares, kind="stable")[:count])


def find_heads(engine: Engine, texts: Iterable[np.ndarray], voice: Voice) -> list[tuple[int, int]]:
    """Layers and numbers of the heads that follow the text while T3 says these ones, each in text
    tokens."""
    options = SpeechOptions(max_tokens=MOST_CALIBRATION_TOKENS)
    options = options.resolved(engine.speech_defaults | {"exaggeration": voice.emotion_adv})
    heads = [
        (layer, head)
        for layer in range(engine.settings["layers"])
        for head in range(engine.settings["hidden"] // HEAD_SIZE)
    ]
    spoken = []
    for text in texts:
        said = engine.tokens(engine.speak(text, voice, options))
        tokens = [token for token in said if token < START_SPEECH]
        if len(tokens) > 1:
            spoken.append(text_weights(engine, text, tokens, voice, options, heads))
    return [heads[i] for i in best_heads(spoken)] if spoken else []


def text_weights(
    engine: Engine,
    text_tokens: np.ndarray,
    spoken: Sequence[int] | np.ndarray,
    voice: Voice,
    options: SpeechOptions,
    heads: list[tuple[int, int]],
) -> np.ndarray:
    """What heads give to the text when each token is spoken: [heads, tokens, text]."""
    # Each token is spoken by the query of the one before it.
    queries = np.array([START_SPEECH, *spoken[:-1]], np.int32)
    weights = engine.text_weights(text_tokens, queries, voice, options.exaggeration, heads)
    count = len(text_tokens)
    before = (weights.shape[2] - count) // 2  # the start of the text, where it has one
    return weights[:, -len(spoken) :, before : before + count]
