"""FLOPs, weights, bytes and launches of the models, op by op, counted from their sizes.

The sizes are those of the official tensors as tools.synthetic lists them; tests/test_bench.py
holds the counts against the tensors and against what the library says of a loaded model.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tools.synthetic import T3Size
from tools.synthetic.s3gen import (
    HARMONICS,
    HEAD,
    MELS,
    RESIDUAL_KERNELS,
    SOURCE_KERNELS,
    SOURCE_RESIDUAL_KERNELS,
    SPECTRUM,
    UPSAMPLING,
    S3GenSize,
)

HALF, FULL = 2, 4  # bytes of a value
# Launches are read off the code: a T3 step's are all of our own kernels, which tests/test_bench.py
# holds against the library's count where there is a GPU; those of S3Gen are MLX's and ours.
T3_LAUNCHES_OUTSIDE = 2  # of the layers and the head: embed_token, sample
PREFILL_LAUNCHES = 3  # of MLX's for an op
LOOKAHEAD_TAPS, BEHIND_TAPS, UPSAMPLE_TAPS = 4, 3, 5  # of the token encoder's convolutions
BLOCK_TAPS = 3  # of the estimator's
CONV_TAPS = 7  # of the vocoder's first and last
PITCH_LAYERS, PITCH_TAPS = 5, 3
RESIDUAL_CONVS = 6  # of a residual block: three pairs


@dataclass(frozen=True)
class Work:
    """One op, or `times` alike."""

    flops: float
    weights: int = 0  # elements
    values: float = 0.0  # bytes of activations and cache, read and written
    launches: int = 1
    attention: bool = False
    times: int = 1


def product(
    rows: int,
    inputs: int,
    outputs: int,
    *,
    taps: int = 1,
    bias: bool = True,
    norm: int = 0,
    value: int = HALF,
    residual: bool = False,
    launches: int = 1,
    times: int = 1,
) -> Work:
    """A linear layer or, with taps, a convolution; `norm` vectors of its inputs belong to it."""
    weights = taps * inputs * outputs + outputs * bias + norm * inputs
    values = rows * (inputs + outputs) * value + rows * outputs * FULL * residual
    if taps > 1:  # its windows are written side by side, and read by a product
        values += 2 * rows * taps * inputs * value
    return Work(2.0 * rows * taps * inputs * outputs, weights, values, launches, times=times)


def total(works: Iterable[Work], of: str) -> float:
    """The sum of flops, weights, values or launches."""
    return sum(getattr(work, of) * work.times for work in works)


def t3_forward(size: T3Size, past: int, new: int, rows: int, vocabulary: int) -> list[Work]:
    """The stack on `new` positions after `past`, and the last one's logits."""
    hidden, ffn, layers = size.hidden, size.ffn, size.layers
    batch = rows * new
    seen = past + (new + 1) / 2  # positions that one attends to, on average
    cache = rows * 2 * (past + new) * hidden * HALF
    launches = 1 if new == 1 else PREFILL_LAUNCHES
    attention = Work(4.0 * batch * seen * hidden, 0, cache, launches, True, layers)
    linear = {"bias": False, "launches": launches, "times": layers}
    return [
        product(batch, hidden, 3 * hidden, norm=1, **linear),
        attention,
        product(batch, hidden, hidden, residual=True, **linear),
        product(batch, hidden, 2 * ffn, norm=1, **linear),
        product(batch, ffn, hidden, residual=True, **linear),
        product(rows, hidden, vocabulary, bias=False, norm=1, launches=launches),
    ]


def t3_step(size: T3Size, context: int, rows: int, vocabulary: int) -> list[Work]:
    """One token: each op of t3_forward is a kernel of ours; a few more are outside the layers."""
    works = t3_forward(size, context - 1, 1, rows, vocabulary)
    return [*works, Work(0.0, launches=T3_LAUNCHES_OUTSIDE)]


def encoder(size: S3GenSize, tokens: int) -> list[Work]:
    """Speech tokens to the mean of their mel."""
    width, ffn = size.encoder, size.encoder_ffn
    works = []
    for rows, layers in ((tokens, size.encoder_layers), (2 * tokens, size.up_encoder_layers)):
        distances = 2 * rows - 1
        # Content and position scores, then the values.
        attention = Work(6.0 * rows * rows * width, 2 * width, 8 * rows * width * HALF, 6, True)
        works += [
            product(rows, width, width, launches=2),  # entry
            Work(0.0, 2 * width),  # its norm
            replace(attention, times=layers),
            product(rows, width, 3 * width, norm=2, launches=3, times=layers),
            product(distances, width, width, bias=False, times=layers),
            product(rows, width, width, residual=True, launches=2, times=layers),
            product(rows, width, ffn, norm=2, launches=3, times=layers),
            product(rows, ffn, width, residual=True, launches=2, times=layers),
        ]
    return [
        *works,
        product(tokens, width, width, taps=LOOKAHEAD_TAPS, launches=3),
        product(tokens, width, width, taps=BEHIND_TAPS, launches=2),
        product(2 * tokens, width, width, taps=UPSAMPLE_TAPS, launches=3),
        product(2 * tokens, width, MELS, norm=2, launches=2),
    ]


def flow_times(size: S3GenSize, steps: int) -> list[Work]:
    """The estimator's time embedding, for all steps at once."""
    channels, width, rows = size.estimator, 4 * size.estimator, steps + 1
    levels = size.mid_blocks + 2
    return [
        product(rows, 4 * MELS, width, value=FULL, launches=2),
        product(rows, width, width, value=FULL, launches=2),
        product(rows, width, levels * channels, value=FULL, launches=2),
    ]


def estimator(size: S3GenSize, frames: int, rows: int = 2) -> list[Work]:
    """The velocity of one step, and the step."""
    channels, batch = size.estimator, rows * frames
    inner = HEAD * size.estimator_heads
    works: list[Work] = []
    for inputs, levels in ((4 * MELS, 1), (channels, size.mid_blocks), (2 * channels, 1)):
        blocks = levels * size.transformer_blocks
        attention = Work(4.0 * batch * frames * inner, 0, 4 * batch * inner * HALF, 1, True)
        works += [
            *_block(batch, inputs, channels, levels),
            *_block(batch, channels, channels, levels, launches=1),  # the norm leaves windows
            product(
                batch, inputs, channels, residual=True, launches=0, times=levels
            ),  # with the first
            product(batch, channels, 3 * inner, bias=False, norm=2, launches=2, times=blocks),
            replace(attention, times=blocks),
            product(batch, inner, channels, residual=True, launches=2, times=blocks),
            product(batch, channels, 4 * channels, norm=2, launches=3, times=blocks),
            product(batch, 4 * channels, channels, residual=True, launches=2, times=blocks),
        ]
    state = frames * MELS * FULL
    return [
        *works,
        product(batch, channels, channels, taps=BLOCK_TAPS, launches=2, times=2),  # between levels
        *_block(batch, channels, channels, 1),
        product(batch, channels, MELS, value=FULL, launches=2),
        Work(0.0, 0, (3 + rows) * state),  # the Euler step and the next input
    ]


def _block(rows: int, inputs: int, outputs: int, times: int, launches: int = 2) -> list[Work]:
    """Causal convolution, norm, Mish."""
    conv = product(rows, inputs, outputs, taps=BLOCK_TAPS, launches=launches, times=times)
    return [conv, Work(0.0, 2 * outputs, 2 * rows * outputs * HALF, times=times)]


def vocoder(size: S3GenSize, frames: int) -> list[Work]:
    """Mel frames to samples, in float32."""
    channels, rows = size.vocoder, frames
    single = {"value": FULL, "launches": 3}  # windows, product, epilogue
    works = [
        product(rows, MELS, channels, taps=CONV_TAPS, **single),
        product(rows, MELS, size.f0, taps=PITCH_TAPS, **single),
        product(rows, size.f0, size.f0, taps=PITCH_TAPS, times=PITCH_LAYERS - 1, **single),
        product(rows, size.f0, 1, **single),
        product(480 * rows, HARMONICS, 1, value=FULL, launches=6),  # the source and its spectrum
    ]
    for stage, (rate, kernel) in enumerate(UPSAMPLING):
        halved = channels // 2
        # Each row going in meets all taps, and rate times as many rows come out.
        up = Work(2.0 * rows * kernel * channels * halved, kernel * channels * halved + halved)
        works.append(replace(up, values=FULL * rows * (channels + rate * halved), launches=2))
        rows, channels = rate * rows, halved
        source = product(rows, SPECTRUM, channels, taps=SOURCE_KERNELS[stage], **single)
        works.append(source)
        for taps in (SOURCE_RESIDUAL_KERNELS[stage], *RESIDUAL_KERNELS):
            conv = product(rows, channels, channels, taps=taps, times=RESIDUAL_CONVS, **single)
            snake = Work(0.0, channels, launches=0, times=RESIDUAL_CONVS)  # as windows are written
            works += [conv, snake]
        works.append(Work(0.0, 0, 6 * FULL * rows * channels, 2))  # the source in, the blocks' mean
    last = product(rows, channels, SPECTRUM, taps=CONV_TAPS, **single)
    return [*works, last, Work(0.0, 0, 2 * FULL * rows * SPECTRUM)]
