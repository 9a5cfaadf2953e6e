"""How long the models would take on an Apple GPU: a roofline for every op, one after the other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from nightingale import SpeechOptions
from nightingale.model_settings import LOOKAHEAD_TOKENS
from nightingale.networks import FRAMES_PER_TOKEN
from tools.synthetic import S3GEN_SIZES, SPEECH_VOCABULARY, T3_SIZES

from .apple_chips import Chip
from .op_counts import Work, encoder, estimator, flow_times, t3_forward, t3_step, vocoder
from .t3 import TEXT_TOKENS

T3, S3GEN = T3_SIZES["full"], S3GEN_SIZES["full"]
VOICE_POSITIONS = 34  # speaker, 32 of the perceiver, emotion
PROMPT_POSITIONS = TEXT_TOKENS + 4  # with start, stop and the two starts of speech
FIRST_CHUNK, OVERLAP = SpeechOptions.first_chunk, SpeechOptions.overlap  # tokens
PROMPT_TOKENS = 250  # of the voice in S3Gen: 10 s
STEPS = 10
CONTEXT = 375  # the middle of 250 to 500
SENTENCE = 102  # tokens
# Bytes of a weight; integers have a scale and an offset in float16 for every 64.
PRECISIONS = {"float16": 2.0, "int8": 1 + 4 / 64, "int4": 0.5 + 4 / 64}


@dataclass(frozen=True)
class Side:
    """Shares of the peaks that are reached, and what a launch costs."""

    bandwidth: float = 1.0
    products: float = 1.0
    attention: float = 1.0
    launch: float = 0.0  # seconds


BOUND = Side()
LIKELY = Side(bandwidth=0.79, products=0.67, attention=0.25, launch=5.2e-6)


def seconds(
    works: Iterable[Work], chip: Chip, side: Side, weight: float, rate: float | None = None
) -> float:
    """A roofline for every op, one after the other. weight: bytes; rate: TFLOP/s, or float16's."""
    peak = 1e12 * (rate or chip.float16)
    time = 0.0
    for work in works:
        moved = (work.weights * weight + work.values) / (1e9 * chip.bandwidth * side.bandwidth)
        share = side.attention if work.attention else side.products
        time += work.times * (max(moved, work.flops / (peak * share)) + work.launches * side.launch)
    return time


def tokens_s(chip: Chip, side: Side, weight: float, first: int, count: int) -> float:
    """Seconds of `count` tokens from a context of `first` positions on."""
    middle = first + count // 2
    return count * seconds(t3_step(T3, middle, 2, SPEECH_VOCABULARY), chip, side, weight)


def prefill_s(chip: Chip, side: Side, weight: float) -> float:
    works = t3_forward(T3, VOICE_POSITIONS, PROMPT_POSITIONS, 2, SPEECH_VOCABULARY)
    return seconds(works, chip, side, weight)


def flow_s(
    chip: Chip,
    side: Side,
    tokens: int,
    frames: int,
    *,
    steps: int = STEPS,
    prompt: int = PROMPT_TOKENS,
    rows: int = 2,
) -> float:
    """The flow in float16 for so many tokens, look-ahead included, and new frames."""
    step = estimator(S3GEN, FRAMES_PER_TOKEN * prompt + frames, rows)
    works = [*encoder(S3GEN, prompt + tokens), *flow_times(S3GEN, steps)]
    works += [replace(work, times=steps * work.times) for work in step]
    return seconds(works, chip, side, PRECISIONS["float16"])


def vocoder_s(chip: Chip, side: Side, frames: int) -> float:
    return seconds(vocoder(S3GEN, frames), chip, side, 4.0, chip.float32)


def rtf(chip: Chip, side: Side) -> float:
    return (flow_s(chip, side, 100, 200) + vocoder_s(chip, side, 200)) / 4


def first_audio_s(chip: Chip, side: Side, weight: float, **flow: int) -> float:
    """Of a stream: prefill, tokens, flow and vocoder of the first chunk."""
    tokens, frames = FIRST_CHUNK + LOOKAHEAD_TOKENS, FRAMES_PER_TOKEN * FIRST_CHUNK
    return (
        prefill_s(chip, side, weight)
        + tokens_s(chip, side, weight, VOICE_POSITIONS + PROMPT_POSITIONS, tokens - 1)
        + flow_s(chip, side, tokens, frames, **flow)
        + vocoder_s(chip, side, frames - FRAMES_PER_TOKEN * OVERLAP)
        + vocoder_s(chip, side, FRAMES_PER_TOKEN * OVERLAP)
    )


def sentence_s(chip: Chip, side: Side, weight: float) -> float:
    """A sentence whole, from text to the last sample."""
    return (
        prefill_s(chip, side, weight)
        + tokens_s(chip, side, weight, VOICE_POSITIONS + PROMPT_POSITIONS, SENTENCE - 1)
        + flow_s(chip, side, SENTENCE, FRAMES_PER_TOKEN * SENTENCE)
        + vocoder_s(chip, side, FRAMES_PER_TOKEN * SENTENCE)
    )
