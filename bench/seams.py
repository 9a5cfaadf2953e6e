"""How like a stream is to the same speech made whole, over 20 sentences.

    python -m bench.seams [--folder CHECKPOINT] [--tokens 150] [--overlap 4] [--context N]

Tokens and lengths must be the same; then, as quantiles over sentences and seams: the correlation of
the flow's mels and of the log-mels of the sound, the difference of these near seams (80 ms either
way), elsewhere, and at the same places where another way of cutting has no seam; and the step
across each seam beside the 99.9th percentile of all steps. Elsewhere there are pauses, and a last
chunk that knows all; at the same places the same is said.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np

import nightingale
from nightingale import SpeechOptions
from nightingale.validate.log_mel import HOP, correlation, log_mel

from . import harness

SENTENCES = (
    "The lamp in the window was lit before the rain began.",
    "Nobody had told the baker about the second delivery.",
    "She counted the steps twice and came to the same number.",
    "A thin layer of ice covered the pond behind the school.",
    "They moved the piano by hand, one careful inch at a time.",
    "The letter arrived a week late and without a stamp.",
    "Most of the garden had been planted by his grandmother.",
    "Turn left at the mill and follow the narrow road uphill.",
    "The orchestra tuned while the last guests found their seats.",
    "He kept his maps in a drawer that no longer closed.",
    "Two foxes crossed the field in the grey morning light.",
    "The recipe asks for more patience than sugar.",
    "Her brother repairs clocks in a shop by the harbour.",
    "The train stood still between stations for an hour.",
    "Every chair in the hall was a different shade of green.",
    "We could hear the river long before we saw it.",
    "The old dog slept through the whole of the storm.",
    "A small boat with a red sail came round the point.",
    "The children painted the fence on both sides.",
    "In the end the simplest answer turned out to be right.",
)
QUANTILES = (0, 0.1, 0.5, 0.9, 1)
NEAR = 4  # frames of the log-mel on either side of a seam
ELSEWHERE = {"first_chunk": 18, "chunk": 36}  # a way of cutting that has its seams at other places


def main() -> None:
    args = _arguments()
    with harness.checkpoint(args) as folder:
        tts = nightingale.load(folder, device=args.device)
    measured = [compare(tts, text, i, args) for i, text in enumerate(SENTENCES)]
    print(f"{len(SENTENCES)} sentences, overlap {args.overlap}, context {args.context}")
    print(f"{'':34}" + "".join(f"{f'{100 * q:g} %':>9}" for q in QUANTILES))
    for name in measured[0]:
        values = np.concatenate([np.atleast_1d(run[name]) for run in measured])
        figures = "".join(f"{value:9.4f}" for value in np.quantile(values, QUANTILES))
        print(f"{name:34}{figures}  of {len(values)}")


def _arguments() -> argparse.Namespace:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--folder", help="a checkpoint; a small one is made if there is none")
    arguments.add_argument("--tokens", type=int, default=150)
    arguments.add_argument("--overlap", type=int, default=SpeechOptions.overlap)
    arguments.add_argument("--context", type=int)
    arguments.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    arguments.set_defaults(size="small")
    return arguments.parse_args()


def compare(
    tts: nightingale.TTS, text: str, seed: int, args: argparse.Namespace
) -> dict[str, np.ndarray | float]:
    """Figures of one sentence; an AssertionError where tokens or lengths differ."""
    options = SpeechOptions(
        seed=seed, max_tokens=args.tokens, overlap=args.overlap, context=args.context
    )
    chunks = list(tts.stream(text, options))
    tokens = np.concatenate([chunk.tokens for chunk in chunks])
    whole, whole_mel = sound(tts, tokens, replace(options, first_chunk=None))
    parts, mel = sound(tts, tokens, options)
    generated = tts.generate(text, options)
    assert np.array_equal(generated.tokens, tokens)
    assert np.array_equal(generated.samples, np.concatenate(whole))
    assert [len(part) for part in parts] == [len(chunk.samples) for chunk in chunks]

    streamed, seams = np.concatenate(parts), np.cumsum([len(part) for part in parts])[:-1]
    assert len(streamed) == len(generated.samples)
    logs = log_mel(streamed), log_mel(generated.samples)
    decibels, near = difference(*logs), about(seams, logs[0].shape[1])
    others, _ = sound(tts, tokens, replace(options, **ELSEWHERE))
    same = near & ~about(np.cumsum([len(part) for part in others])[:-1], len(near))
    control = difference(log_mel(np.concatenate(others)), logs[1])
    steps = np.abs(np.diff(streamed))
    return {
        "flow's mel, correlation": correlation(mel, whole_mel),
        "log-mel of the sound, correlation": correlation(*logs),
        "difference near seams, dB": decibels[near],
        "difference elsewhere, dB": decibels[~near],
        "at places that two ways share, dB": decibels[same],
        "there without a seam, dB": control[same],
        "step at seams / 99.9th percentile": steps[seams - 1] / np.quantile(steps, 0.999),
    }


def difference(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """[frames] in dB, of two log-mels"""
    return 20 / np.log(10) * np.sqrt(np.mean((one - other) ** 2, axis=0))


def about(seams: np.ndarray, frames: int) -> np.ndarray:
    """[frames] bool: those near a seam. seams: in samples"""
    distance = np.abs(np.arange(frames)[:, None] - seams / HOP)
    return distance.min(axis=1, initial=np.inf) < NEAR


def sound(
    tts: nightingale.TTS, tokens: np.ndarray, options: SpeechOptions
) -> tuple[list[np.ndarray], np.ndarray]:
    """The chunks of a sentence's tokens and its mel."""
    voice = tts._voice(None)
    made = tts._engine.sentence_sound(voice, tts._resolved(options, voice))
    parts: list[np.ndarray] = []

    def advance(end: int, last: bool) -> None:
        tts._engine.begin_chunk(made, tokens[:end].tolist(), last)
        while (samples := tts._engine.step(made)) is None:
            pass
        parts.append(samples)

    for end in range(1, len(tokens) + 1):
        if made.ready(end):
            advance(end, last=False)
    advance(len(tokens), last=True)
    return parts, made.mel


if __name__ == "__main__":
    main()
