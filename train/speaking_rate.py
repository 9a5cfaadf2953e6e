"""Measures how a T3 that was taught speaking rates follows them, and writes it to the settings.

    python -m train.speaking_rate MODEL --text FILE

MODEL is a checkpoint folder; FILE has a sentence in each line. Its sentences are spoken with
several values of T3's emotion input; their lengths beside those of the usual value are the rates
that nightingale.json then names ("speaking_rate").
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

import nightingale
from nightingale.model_settings import SETTINGS_FILE

from .options import command_parser
from .state import write_json
from .t3_examples import EMOTION, emotion_of_rate

RATES = (0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.4, 1.55, 1.7)
VALUES = tuple(round(float(value), 4) for value in emotion_of_rate(np.array(RATES)))


def spoken_tokens(tts: nightingale.TTS, texts: Sequence[str], value: float) -> int:
    """The speech tokens of all texts, each in one of the voices in turn."""
    return sum(
        len(
            tts.speech_tokens(
                text, voice=tts.voices[number % len(tts.voices)], exaggeration=value, seed=number
            )
        )
        for number, text in enumerate(texts)
    )


def measured_rates(tts: nightingale.TTS, texts: Sequence[str]) -> list[list[float]]:
    """Rates and the values that T3 speaks at them."""
    tokens = {value: spoken_tokens(tts, texts, value) for value in VALUES}
    rates = [[round(tokens[EMOTION] / tokens[value], 3), value] for value in VALUES]
    if not all(slower[0] < faster[0] for slower, faster in pairwise(rates)):
        raise SystemExit(f"T3 does not follow the speaking rate: {rates}")
    return rates


def main(arguments: list[str]) -> None:
    parser = command_parser("speaking_rate", __doc__, "model")
    parser.add_argument("--text", type=Path, required=True, help="a sentence in each line")
    options = parser.parse_args(arguments)
    texts = [line.strip() for line in options.text.read_text("utf-8").splitlines() if line.strip()]
    if not texts:
        parser.error(f"{options.text} has no sentence")
    file = options.model / SETTINGS_FILE
    settings = json.loads(file.read_text("utf-8"))
    settings.pop("speaking_rate", None)
    write_json(file, settings)  # while it is measured, exaggeration is what T3 is told
    settings["speaking_rate"] = measured_rates(nightingale.load(options.model), texts)
    write_json(file, settings)
    print(settings["speaking_rate"])


if __name__ == "__main__":
    main(sys.argv[1:])
