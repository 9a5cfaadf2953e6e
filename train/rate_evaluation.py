"""How clear and natural a model is when it speaks slower and faster.

    python -m train.rate_evaluation MODEL OUT --data DATA --judge JUDGE [--rates 0.7,1,1.4]
                                    [--sentences 48]

MODEL is a checkpoint folder; DATA and JUDGE are those of train.evaluate. Speaks the first Harvard
sentences at each value of the option `speed`, in the model's English voices in turn, and prints a
line for each rate: the length, relative to that of rate 1 divided by the rate, the errors of both
recognizers and DistillMOS. Files in OUT are not made again.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import soundfile

import nightingale

from .evaluation_sentences import evaluation_sentences
from .metrics import RECOGNIZERS, error_rate, judge
from .options import command_parser
from .state import write_json
from .voices import SHIPPED_VOICES

RATES = "0.5,0.7,1,1.4,1.5,2"
LANGUAGE, ACCENTS = "en", ("en-us", "en-gb")


@dataclass(frozen=True)
class Clip:
    rate: float
    text: str
    path: Path


def synthesize(
    tts: nightingale.TTS, texts: Sequence[str], rates: Iterable[float], out: Path
) -> list[Clip]:
    """Every text at every rate, in the same voice and with the same seed at all of them."""
    english = [name for accent in ACCENTS for name in SHIPPED_VOICES[accent]]
    voices = [name for name in english if name in tts.voices] or tts.voices
    clips = []
    for rate in rates:
        for number, text in enumerate(texts):
            path = out / f"{rate:g}-{number:03d}.wav"
            if not path.exists():
                voice = voices[number % len(voices)]
                audio = tts.generate(text, voice=voice, language=LANGUAGE, speed=rate, seed=number)
                audio.save(path)
            clips.append(Clip(rate, text, path))
    return clips


def summarize(clips: list[Clip], scores: dict[str, dict]) -> dict[str, dict[str, float]]:
    """The figures of each rate."""
    found = {}
    for rate in dict.fromkeys(clip.rate for clip in clips):
        said = [clip for clip in clips if clip.rate == rate]
        rows = [scores[clip.path.name] for clip in said]
        found[f"{rate:g}"] = {
            "seconds": sum(soundfile.info(clip.path).duration for clip in said),
            "mos": statistics.mean(row["mos"] for row in rows),
            **{f"wer_{name}": error_rate(rows, name) for name in RECOGNIZERS},
        }
    if usual := found.get("1"):
        for rate, figures in found.items():
            figures["length"] = figures["seconds"] * float(rate) / usual["seconds"]
    return found


def main(arguments: list[str]) -> None:
    parser = command_parser("rate_evaluation", __doc__, "model", "out")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--judge", type=Path, required=True)
    parser.add_argument("--rates", default=RATES, help="by comma")
    parser.add_argument("--sentences", type=int, default=48)
    options = parser.parse_args(arguments)
    rates = [float(rate) for rate in options.rates.split(",")]
    options.out.mkdir(parents=True, exist_ok=True)
    texts = evaluation_sentences(options.data)[LANGUAGE][: options.sentences]
    clips = synthesize(nightingale.load(options.model), texts, rates, options.out)
    to_judge = {clip.path.name: (clip.path, LANGUAGE, clip.text) for clip in clips}
    figures = summarize(clips, judge(to_judge, options.judge, options.out / "scores.jsonl"))
    write_json(options.out / "rates.json", figures)
    for rate, found in figures.items():
        print(rate, " ".join(f"{name} {value:.3f}" for name, value in found.items()), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
