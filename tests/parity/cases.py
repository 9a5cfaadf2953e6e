"""Seeded inputs of the parity tests; numpy only, and the same on every platform and version.

Each *_case(index) is a pure function: golden tests use the first few, live tests as many as they
like. Drawing goes through the raw Philox stream and arithmetic that IEEE defines to the last bit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

TEXT_VOCABULARY = 2454
START_TEXT, STOP_TEXT = 255, 0
SPEECH_VOCABULARY = 8194
START_SPEECH, STOP_SPEECH = 6561, 6562


class Draws:
    """A stream of random numbers named by its key."""

    def __init__(self, *key: Any) -> None:
        digest = hashlib.sha256(repr(key).encode()).digest()
        self._bits = np.random.Philox(key=int.from_bytes(digest[:16], "little"))

    def uniform(self, low: float = 0.0, high: float = 1.0, shape: tuple[int, ...] = ()) -> Any:
        raw = self._bits.random_raw(int(np.prod(shape, dtype=np.int64))).reshape(shape)
        values = low + (high - low) * ((raw >> np.uint64(11)) * 2.0**-53)
        return values if shape else float(values)

    def integer(self, low: int, high: int, shape: tuple[int, ...] = ()) -> Any:
        """Integers of [low, high)."""
        raw = self._bits.random_raw(int(np.prod(shape, dtype=np.int64))).reshape(shape)
        values = low + ((raw >> np.uint64(32)) * np.uint64(high - low) >> np.uint64(32)).astype(int)
        return values if shape else int(values)

    def choice(self, options: Sequence[Any]) -> Any:
        return options[self.integer(0, len(options))]

    def normal(self, std: float, shape: tuple[int, ...]) -> np.ndarray:
        """Near-normal: the sum of six uniforms."""
        return std * 2**0.5 * sum(self.uniform(-0.5, 0.5, shape) for _ in range(6))


def text_tokens(count: int, *key: Any, vocabulary: int = TEXT_VOCABULARY) -> np.ndarray:
    """int32 [count], as a tokenizer gives them: neither start nor stop among them."""
    ids = Draws("text", count, *key).integer(1, vocabulary - 1, (count,))
    return np.where(ids >= START_TEXT, ids + 1, ids).astype(np.int32)


def speech_tokens(count: int, *key: Any) -> np.ndarray:
    """int32 [count], of which the first is 6561 and the others are sound."""
    ids = Draws("speech", count, *key).integer(0, START_SPEECH, (count,))
    ids[0] = START_SPEECH
    return ids.astype(np.int32)


# (text tokens, speech tokens, voice prompt, emotion): the corners first, then anything.
LOGITS_CORNERS = (
    (40, 60, True, 0.5),
    (40, 60, False, 0.5),
    (1, 1, True, 0.5),
    (1, 60, True, 1.0),
    (300, 1, True, 0.5),
    (300, 60, True, 0.0),
)


def logits_case(index: int, vocabulary: int = TEXT_VOCABULARY) -> dict[str, Any]:
    """Arguments of a teacher-forced run of T3; vocabulary: of its text."""
    if index < len(LOGITS_CORNERS):
        text, speech, prompt, emotion = LOGITS_CORNERS[index]
    else:
        draws = Draws("logits", index)
        text, speech = draws.integer(1, 301), draws.integer(1, 61)
        prompt, emotion = draws.uniform() < 0.8, draws.uniform(0.25, 2.0)
    return {
        "text_tokens": text_tokens(text, index, vocabulary=vocabulary),
        "speech_tokens": speech_tokens(speech, index),
        "prompt": prompt,
        "emotion": emotion,
    }


def logits_digest(logits: np.ndarray) -> dict[str, np.ndarray]:
    """[2, n, 8194] as 64 of its columns and 8 random projections, which depend on every column."""
    draws = Draws("digest")
    columns = draws.integer(0, SPEECH_VOCABULARY, (64,))
    columns[:4] = 0, START_SPEECH, STOP_SPEECH, SPEECH_VOCABULARY - 1
    signs = 2.0 * draws.integer(0, 2, (SPEECH_VOCABULARY, 8)) - 1
    projections = logits.astype(np.float64) @ signs / SPEECH_VOCABULARY**0.5
    return {"columns": logits[..., columns], "projections": projections.astype(np.float32)}


def decode_case(index: int) -> dict[str, Any]:
    """Arguments of a greedy decode of 80 steps."""
    lengths = (30, 90)
    count = lengths[index] if index < len(lengths) else Draws("decode", index).integer(5, 120)
    return {"text_tokens": text_tokens(count, "decode", index), "steps": 80}


# Members of the family by the names of their synthetic checkpoints, and their text vocabularies. v3
# and the language packs have the shape and the synthetic weights of v2.
MEMBERS = {"english": 704, "multilingual-v1": 2352}


def member_cases(vocabulary: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """A teacher-forced run and a greedy decode of another member than v2."""
    text = text_tokens(30, "member", vocabulary=vocabulary)
    speech = speech_tokens(16, "member")
    forced = {"text_tokens": text, "speech_tokens": speech, "prompt": True, "emotion": 0.5}
    return forced, {"text_tokens": text, "steps": 60}


def analysed_decode_case() -> dict[str, Any]:
    """A greedy decode that the analyser ends: on the small checkpoint it forces a stop at 125."""
    return {
        "text_tokens": text_tokens(30, "analysed", 3),
        "steps": 200,
        "analyser": True,
        "mask_stop": False,
    }


SAMPLER_KINDS = (
    "multilingual defaults",
    "english defaults",
    "anything",
    "one finite",
    "top_p 0",
    "top_p 0.95",
    "min_p 1",
    "no filter",
    "ties",
    "flat",
    "penalty below 1",
    "penalty 5",
    "forced stop",
    "cold",
    "heavy tail",
    "half masked",
)


def sampler_case(index: int) -> dict[str, Any]:
    """Logits float32 [8194], the tokens seen so far and the sampling settings."""
    kind = SAMPLER_KINDS[index % len(SAMPLER_KINDS)]
    draws = Draws("sampler", index)
    logits = draws.normal(2.5, (SPEECH_VOCABULARY,))
    seen = np.r_[START_SPEECH, draws.integer(0, START_SPEECH, (draws.integer(0, 200),))]
    # Seen tokens should matter: a few of them are likely ones.
    seen[1:6] = np.argsort(-logits, kind="stable")[: len(seen[1:6])]
    settings = {"temperature": 0.8, "repetition_penalty": 2.0, "min_p": 0.05, "top_p": 1.0}
    if kind == "english defaults":
        settings |= {"repetition_penalty": 1.2}
    elif kind == "anything":
        settings = {
            "temperature": draws.uniform(0.3, 2.0),
            "repetition_penalty": draws.uniform(0.7, 3.0),
            "min_p": draws.uniform(0.0, 0.3),
            "top_p": draws.uniform(0.3, 1.0),
        }
    elif kind == "one finite":
        logits[:] = -np.inf
        logits[draws.integer(0, START_SPEECH)] = draws.uniform(-5, 5)
    elif kind == "top_p 0":
        settings |= {"top_p": 0.0}
    elif kind == "top_p 0.95":
        settings |= {"min_p": 0.0, "top_p": 0.95}
    elif kind == "min_p 1":
        settings |= {"min_p": 1.0}
    elif kind == "no filter":
        settings |= {"temperature": 1.0, "repetition_penalty": 1.0, "min_p": 0.0}
    elif kind == "ties":
        logits = np.round(logits)
        settings |= {
            "min_p": draws.choice((0.0, 0.02, 0.2, 1.0)),
            "top_p": draws.choice((0.8, 1.0)),
        }
    elif kind == "flat":
        logits[:] = draws.choice((-1.0, 0.0, 1.0))
    elif kind == "penalty below 1":
        settings |= {"repetition_penalty": 0.5}
    elif kind == "penalty 5":
        settings |= {"repetition_penalty": 5.0}
    elif kind == "forced stop":
        logits[:] = -(2.0**15)
        logits[STOP_SPEECH] = 2.0**15
    elif kind == "cold":
        settings |= {"temperature": 0.05}
    elif kind == "heavy tail":
        logits = np.minimum(logits * logits * logits / 20, 30)
        settings |= {"min_p": 0.0, "top_p": 0.99}
    elif kind == "half masked":
        logits[draws.integer(0, 2, logits.shape) == 1] = -np.inf
    return {"logits": logits.astype(np.float32), "seen": seen.astype(np.int32), **settings}


def uncertain_tokens(case: dict[str, Any]) -> np.ndarray:
    """bool [8194]: tokens of a sampler case that float32 rounding or a tie may keep or drop."""
    scores = case["logits"].astype(np.float64)
    seen = np.unique(case["seen"])
    penalty = case["repetition_penalty"]
    scores[seen] = np.where(scores[seen] < 0, scores[seen] * penalty, scores[seen] / penalty)
    relative = np.exp((scores - scores.max()) / case["temperature"])
    uncertain = (relative < 1) & (np.abs(relative - case["min_p"]) < 1e-4 * case["min_p"])
    relative[relative < case["min_p"]] = 0
    if case["top_p"] < 1:
        order = np.argsort(relative, kind="stable")
        cumulative = np.cumsum(relative[order]) / relative.sum()
        cut = 1 - case["top_p"]
        if cut < 1:
            uncertain[order[np.abs(cumulative - cut) < 1e-5]] = True
        first_kept = order[min(np.searchsorted(cumulative, cut, "right"), len(order) - 1)]
        tied = relative == relative[first_kept]
        if tied.sum() > 1:
            uncertain |= tied
    # Probabilities near the smallest float32 may be flushed to zero.
    return uncertain | ((relative > 0) & (relative < 1e-37))


PROMPT_TOKENS, PROMPT_FRAMES = 250, 500  # of the synthetic voice
LOOKAHEAD_FRAMES = 6  # of an unfinished utterance, held back
FRAME_SAMPLES = 480


@dataclass(frozen=True)
class MelRun:
    tokens: int
    finalize: bool = True
    steps: int = 10
    prompt: tuple[int, int] | None = None  # tokens and frames; None is the checkpoint's voice

    @property
    def prompt_frames(self) -> int:
        return self.prompt[1] if self.prompt else PROMPT_FRAMES

    @property
    def frames(self) -> int:
        """Of the new mel: two a token of prompt and speech, less the prompt's own; or none."""
        prompt_tokens = self.prompt[0] if self.prompt else PROMPT_TOKENS
        held_back = 0 if self.finalize else LOOKAHEAD_FRAMES
        return max(0, 2 * (prompt_tokens + self.tokens) - self.prompt_frames - held_back)


MEL_CORNERS = (
    MelRun(40),
    MelRun(40, finalize=False),
    MelRun(10),
    MelRun(10, steps=4),
    MelRun(10, steps=1),
    MelRun(10, finalize=False),
    MelRun(1),
    MelRun(4, finalize=False),
    MelRun(10, prompt=(60, 121)),
    MelRun(10, finalize=False, prompt=(60, 121)),
    MelRun(10, prompt=(20, 40)),
    MelRun(1, prompt=(1, 2)),
)
MEANFLOW_RUNS = (MelRun(10, steps=2), MelRun(10, finalize=False, steps=2), MelRun(1, steps=5))


def mel_run(index: int) -> MelRun:
    """The corners first, then anything: prompts to 15 s, frames that do not match their tokens."""
    if index < len(MEL_CORNERS):
        return MEL_CORNERS[index]
    draws = Draws("mel run", index)
    prompt_tokens = draws.integer(1, 376)
    prompt = (prompt_tokens, 2 * prompt_tokens + draws.integer(0, 4))
    finalize = draws.uniform() < 0.5
    return MelRun(draws.integer(6, 80), finalize, draws.integer(1, 11), prompt)


def mel_case(run: MelRun, *key: Any) -> dict[str, Any]:
    """Arguments of a run of the flow; noise is float32 [80, prompt frames + new ones]."""
    draws = Draws("mel", run.tokens, *key)
    case: dict[str, Any] = {
        "tokens": draws.integer(0, START_SPEECH, (run.tokens,)).astype(np.int32),
        "steps": run.steps,
        "finalize": run.finalize,
        "noise": draws.normal(1.0, (80, run.prompt_frames + run.frames)).astype(np.float32),
    }
    if run.prompt:
        case |= {
            "prompt_token": draws.integer(0, START_SPEECH, (run.prompt[0],)).astype(np.int32),
            "prompt_feat": draws.uniform(-7.0, 0.0, (run.prompt[1], 80)).astype(np.float32),
            "embedding": draws.normal(1.0, (192,)).astype(np.float32),
        }
    return case


VOCODER_FRAMES = (60, 7, 2, 1)


def vocoder_case(frames: int, *key: Any) -> dict[str, Any]:
    """A mel [80, frames] spread as the flow's own are, and the source's phases and noise."""
    draws = Draws("vocoder", frames, *key)
    mel = draws.normal(1.75, (80, frames)) + draws.normal(1.3, (80, 1)) - 5.0
    phase = draws.uniform(-np.pi, np.pi, (9,))
    phase[0] = 0.0
    return {
        "mel": mel.astype(np.float32),
        "phase": phase.astype(np.float32),
        "noise": draws.normal(1.0, (9, FRAME_SAMPLES * frames)).astype(np.float32),
    }


# One text of each language whose front end is plain text; the other four need models of their own.
TOKENIZER_TEXTS = (
    ("en", "Hello there, how are you today?"),
    ("en", "it's  5:30 — “quoted” text… and [UNKNOWN] $9 <tags>; ok"),
    ("en", ""),
    ("fr", "Où est l'hôtel ? Ça alors, déjà noël…"),
    ("de", "Übermäßig große Straßen – schön!"),  # noqa: RUF001
    ("es", "¿Qué mañana será? ¡Adiós!"),
    ("it", "Perché no? È così: una città"),
    ("pt", "Não há razão, coração."),
    ("pl", "Zażółć gęślą jaźń"),
    ("tr", "İstanbul'da ılık bir gün"),  # noqa: RUF001
    ("sv", "Sju sköna sjömän"),
    ("da", "Rødgrød med fløde"),
    ("no", "Blåbærsyltetøy på brød"),
    ("fi", "Hyvää yötä, äiti"),
    ("nl", "Gefeliciteerd met je verjaardag!"),
    ("ms", "Selamat pagi semua"),
    ("sw", "Habari za asubuhi"),
    ("el", "Καλημέρα, τι κάνεις;"),
    ("ar", "مرحبا، كيف حالك؟"),
    ("hi", "नमस्ते, आप कैसे हैं?"),
    ("ko", "안녕하세요, 반갑습니다."),
    ("en", "An unknown sign: ☂, and a tab\there"),
)


@dataclass(frozen=True)
class AnalyserCase:
    """A scripted run of the alignment analyser.

    heads: float32 [3, steps + 1, S], attention of the aligned heads over the framed text. Step 0
    takes two rows (the prompt's 6561 and the loop's own), each later step one. The three heads
    differ but average exactly, and sums of the average are exact in float32 in any order, so that
    decisions at a threshold do not depend on rounding.
    tokens: int32 [steps], the token before each step; the first is 6561.
    """

    kind: str
    heads: np.ndarray
    tokens: np.ndarray


ANALYSER_KINDS = (
    "walk",
    "stuck tail",
    "jump back",
    "false start",
    "repeated tokens",
    "skips",
    "diffuse",
    "threshold",
)
UNIT = 2**14  # attention is in multiples of 1 / UNIT


def analyser_case(index: int) -> AnalyserCase:
    """S is at least 6: below that the reference raises IndexError once the text is complete."""
    kind = ANALYSER_KINDS[index % len(ANALYSER_KINDS)]
    draws = Draws("analyser", index)
    rows = _threshold_rows(draws) if kind == "threshold" else _attention_rows(kind, draws)
    lean = rows * draws.integer(0, 2**15, rows.shape) >> 16
    heads = np.stack([rows + lean, rows - lean, rows]).astype(np.float32) / UNIT
    return AnalyserCase(kind, heads, _last_tokens(kind, draws, len(rows) - 1))


def _attention_rows(kind: str, draws: Draws) -> np.ndarray:
    """int64 [steps + 1, S]: bumps that walk along the text, with the events the kind names."""
    length = draws.integer(6, 13) if draws.uniform() < 0.3 else draws.integer(13, 50)
    rate = draws.uniform(0.35, 0.95)
    walk = int(length / rate)
    lead = draws.integer(4, length + 6) if kind == "false start" else 0
    tail = draws.integer(0, 30) if kind in ("stuck tail", "jump back") else draws.integer(0, 5)
    steps = lead + walk + tail + 1
    clock = np.arange(steps + 1) - 1.0 - lead
    centre = rate * clock + draws.uniform(-0.8, 0.8, clock.shape)
    width = draws.uniform(0.2, 0.6)
    if kind == "false start":
        centre[clock < 0] = length - 1.5
    if kind == "jump back":
        back = clock > walk + draws.integer(0, 4) - 3
        centre[back] = draws.uniform(0, max(1, length - 6)) + draws.choice((0, rate)) * clock[back]
        centre[back] -= draws.choice((0, rate)) * clock[back][:1]
    if kind == "skips":
        for _ in range(draws.integer(1, 5)):
            start = draws.integer(2, steps)
            centre[start : start + draws.integer(1, 4)] += draws.choice((-9, -5, 5, 8, 14))
    if kind == "diffuse":
        width = draws.uniform(2, 6)
    return _bumps(np.clip(centre, 0, length - 1), width, length, draws)


def _bumps(centre: np.ndarray, width: float, length: int, draws: Draws) -> np.ndarray:
    """Integer rows of a bump at each centre over a noise floor; whole-number sums, so exact."""
    distance = (np.arange(length) - centre[:, None]) / width
    weights = np.round(4096 / (1 + distance * distance)).astype(np.int64)
    weights += draws.integer(0, 64, weights.shape)
    mass = draws.integer(UNIT // 2, UNIT, (len(centre), 1))
    return weights * mass // weights.sum(axis=1, keepdims=True)


def _threshold_rows(draws: Draws) -> np.ndarray:
    """One-hot rows of 0.5 whose maxima and sums land on the analyser's limits: 0.5, 5 and 5."""
    length, half = draws.integer(8, 16), UNIT // 2
    first = half - draws.integer(0, 2)
    path = [0, *range(length - 2)]
    path += [draws.choice((length - 3, 0, length - 6))] * draws.integer(8, 14)
    rows = np.zeros((len(path), length), np.int64)
    rows[np.arange(len(path)), path] = half
    rows[rows[:, :4].any(axis=1), path[0] : 4] -= half - first
    return np.maximum(rows, 0)


def _last_tokens(kind: str, draws: Draws, steps: int) -> np.ndarray:
    tokens = draws.integer(0, START_SPEECH, (steps,))
    tokens[0] = START_SPEECH
    if kind == "repeated tokens" or draws.uniform() < 0.15:
        for _ in range(draws.integer(1, 4)):
            start = draws.integer(0, steps)
            tokens[start : start + draws.integer(2, 5)] = tokens[start]
    return tokens.astype(np.int32)
