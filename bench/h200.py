"""Figures of other programs on an NVIDIA H200, quoted where they cannot be run.

Measured once, before Nightingale had a line of code: full-size multilingual models with random
weights, 60 text tokens, a voice prompt of 150 tokens, an S3Gen prompt of 10 s. The machine was of
the kind that `--device gpu` is run on, not the same one, and not in the same run.
"""

from __future__ import annotations

MACHINE = "H200"
REFERENCE = "chatterbox-tts 0.1.7 float32"
NOTE = "quoted from an earlier measurement on an H200, not run here"

# Milliseconds a token.
T3 = {
    REFERENCE: 17.7,
    "mlx-audio 0.6.2 float32": 8.8,
    "mlx-audio 0.6.2 float16": 9.9,
    "mlx-audio 0.6.2 int8": 9.3,
    "plain MLX ops float16": 7.4,
    "plain MLX ops int8": 5.2,
    "plain MLX ops int4": 5.3,
}

# Milliseconds of the flow for 100 and for 10 tokens, and of the vocoder for 100.
FLOW = {REFERENCE: 487.0, "mlx-audio 0.6.2": 540.0}  # mlx-audio: 510 to 570
FLOW_OF_10 = {REFERENCE: 535.0, "mlx-audio 0.6.2": 495.0}  # mlx-audio: 470 to 520
VOCODER = {REFERENCE: 26.0, "mlx-audio 0.6.2": 28.0}


def utterance_ms(tokens: int) -> float:
    """T3 without its prefill, flow and vocoder of the reference; its flow hardly knows lengths."""
    flow = FLOW_OF_10 if tokens <= 10 else FLOW
    return tokens * T3[REFERENCE] + flow[REFERENCE] + VOCODER[REFERENCE]


def times(theirs_ms: float, ours_s: float, machine: str) -> str:
    """How many times as fast we are, on the machine that the quoted figure is of."""
    return f"{theirs_ms / (1000 * ours_s):.1f}x" if MACHINE in machine else ""
