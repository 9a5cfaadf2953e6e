"""The embedded voice beside Kokoro-82M in onnxruntime: the same sentence, alternately.

    pip install onnxruntime onnx sympy
    python -m bench.kokoro --onnx kokoro.onnx --voice af_heart.bin --vocab vocab.json

Kokoro is the published float32 export; for int8 its matrices are quantized by onnxruntime's
`quantize_dynamic`. Its text is given as phonemes, so that only the model is timed; Nightingale's
time begins with the text. Needs, from elsewhere: the export, a voice of the package kokoro-js and
the phonemes' numbers of the package hibari-tts.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import nightingale

RATE = 24000
TEXT = "The library closes at nine, so we still have time to find the map and go home."
PHONEMES = (
    "ðə lˈIbɹˌɛɹi klˈOzᵻz æt nˈIn, sO wi stˈɪl hæv tˈIm tə fˈInd ðə mˈæp "  # noqa: RUF001
    "ænd ɡˌO hˈOm."  # noqa: RUF001
)
STYLES, STYLE = 510, 256  # of a voice: one for each number of phonemes

Speak = Callable[[], float]  # gives seconds of sound


def kokoro(onnx: Path, voice: Path, vocab: Path, threads: int | None) -> Speak:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads or 0
    session = onnxruntime.InferenceSession(str(onnx), options, providers=["CPUExecutionProvider"])
    ids = phoneme_ids(PHONEMES, json.loads(vocab.read_text()))
    style = style_of(np.fromfile(voice, np.float32), len(ids))
    inputs = {
        "input_ids": np.array([[0, *ids, 0]]),
        "style": style,
        "speed": np.ones(1, np.float32),
    }
    return lambda: session.run(None, inputs)[0].size / RATE


def phoneme_ids(phonemes: str, vocab: dict[str, int]) -> list[int]:
    """Kokoro's numbers of phonemes; those that it does not know are left out."""
    return [vocab[each] for each in phonemes if each in vocab]


def style_of(voice: np.ndarray, phonemes: int) -> np.ndarray:
    """A voice has a style for each number of phonemes: [1, STYLE]"""
    return voice.reshape(STYLES, STYLE)[min(max(phonemes - 1, 0), STYLES - 1)][None]


def quantized(onnx: Path, folder: Path) -> Path:
    from onnxruntime.quantization import QuantType, quantize_dynamic

    file = folder / "int8.onnx"
    quantize_dynamic(onnx, file, weight_type=QuantType.QUInt8)
    return file


def embedded(threads: int | None) -> Speak:
    tts = nightingale.load(threads=threads)
    return lambda: tts.generate(TEXT, seed=1).duration


def real_time_factors(speakers: dict[str, Speak], rounds: int) -> dict[str, float]:
    """Seconds of work for one of sound: the median of rounds in which all take turns."""
    factors: dict[str, list[float]] = {name: [] for name in speakers}
    for round in range(rounds + 1):
        for name, speak in speakers.items():
            started = time.perf_counter()
            seconds = speak()
            if round > 0:  # the first warms up
                factors[name].append((time.perf_counter() - started) / seconds)
    return {name: median(found) for name, found in factors.items()}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("onnx", "voice", "vocab"):
        arguments.add_argument(f"--{name}", type=Path, required=True, metavar="FILE")
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--threads", type=int, help="of both; default: all cores")
    args = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        models = {"float32": args.onnx, "int8": quantized(args.onnx, Path(folder))}
        speakers: dict[str, Any] = {"nightingale, embedded voice": embedded(args.threads)}
        for name, file in models.items():
            speakers[f"Kokoro-82M {name}"] = kokoro(file, args.voice, args.vocab, args.threads)
        factors = real_time_factors(speakers, args.rounds)
    own = next(iter(factors.values()))
    for name, factor in factors.items():
        print(f"{name:28} real-time factor {factor:.3f}  {factor / own:5.1f}x")


if __name__ == "__main__":
    main()
