"""What fewer bits and smaller caches change in what a model says and how it sounds.

    python -m bench.quality --model FOLDER --text FILE [--sentences 100] [--json FILE]
                            [--beside FOLDER ...] [--judge JUDGE --clips FOLDER [--seeds 1]]

FILE has one English sentence on each line. Of each way of keeping weights and cache, and of the
same model in other folders, as `nightingale quantize` or train.gptq leave it there:

- agreement: how often its most likely token is that of float32, after guidance, teacher-forced over
  the tokens with which float32 says the sentences, fed one at a time as when speaking;
- mel: the correlation of its mels of those tokens with those of float32, from the same noise;
- sound: the SNR of its sound of those mels to that of float32, in dB;
- with --judge: the word error rate of recognisers and the DistillMOS when it speaks by itself.
  Clips are kept in --clips, and not made again: a run can be stopped and continued. Another token
  makes another sentence of it, which may be heard better or worse: look at many.

JUDGE is what the judge's set-up made, with score.py put in (train/metrics.py).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

import nightingale
from train.metrics import RECOGNIZERS, error_rate, judge

from . import harness
from .draft_equality import read_sentences
from .kv_cache import BUDGETS, START, most_likely

EXACT = "float32"


@dataclass(frozen=True)
class Way:
    """How weights and cache are kept; bits None: as the folder has them, budget 0: all of it."""

    name: str
    bits: int | None = None
    cache_bits: int | None = None
    budget: float = 0.0
    spoken: bool = False  # whether it also speaks by itself
    folder: Path | None = None  # None: the model's

    @property
    def model(self) -> tuple[Path | None, int | None]:
        """Ways of which this is the same differ in the cache alone."""
        return self.folder, self.bits

    def load(self, folder: Path) -> nightingale.TTS:
        return nightingale.load(self.folder or folder, dtype=EXACT, bits=self.bits, device="cpu")

    def keep_cache(self, tts: nightingale.TTS) -> None:
        tts._engine.t3.keep_cache(self.cache_bits or 0, self.budget)
        tts._engine._conditions.clear()  # a voice's part of it was kept in another way


WAYS = (
    Way(EXACT, spoken=True),
    Way("cache in 8 bits", cache_bits=8, spoken=True),
    Way("cache in 4 bits", cache_bits=4),
    *(Way(f"{budget:.0%} of the cache", budget=budget, spoken=budget == 0.5) for budget in BUDGETS),
    Way("8 bits", 8),
    Way("8 bits, cache too", 8, 8, spoken=True),
    Way("4 bits", 4),
    Way("4 bits, cache in 8", 4, 8, spoken=True),
)


@dataclass(frozen=True)
class Sentence:
    """One as float32 says it."""

    text: np.ndarray  # tokens
    tokens: np.ndarray
    most_likely: np.ndarray  # after START and after each token but the last
    mel: np.ndarray
    sound: np.ndarray


def main() -> None:
    args = _arguments()
    texts = read_sentences(args.text, args.sentences)
    ways = [*WAYS, *(Way(folder.name, spoken=True, folder=folder) for folder in args.beside)]
    results = compare(args.model, texts, ways)
    if args.judge:
        args.clips.mkdir(parents=True, exist_ok=True)
        heard = listen(args.model, texts, ways, args.seeds, args.judge, args.clips)
        for name, scores in heard.items():
            results[name] |= scores
    print_table(results, len(texts))
    if args.json:
        args.json.write_text(
            json.dumps({"machine": harness.describe_machine("cpu"), **results}, indent=1)
        )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, metavar="FOLDER", required=True)
    parser.add_argument("--text", type=Path, metavar="FILE", required=True)
    parser.add_argument("--sentences", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=1, help="with which each is spoken")
    parser.add_argument("--beside", type=Path, metavar="FOLDER", nargs="+", default=[])
    parser.add_argument("--judge", type=Path, metavar="FOLDER")
    parser.add_argument("--clips", type=Path, metavar="FOLDER", help="where clips are kept")
    parser.add_argument("--json", type=Path, help="also write the results here")
    args = parser.parse_args()
    if args.judge and not args.clips:
        parser.error("--judge needs --clips")
    return args


def compare(
    folder: Path, texts: Sequence[str], all_ways: Sequence[Way]
) -> dict[str, dict[str, Any]]:
    """Each way beside float32, on what that says."""
    results: dict[str, dict[str, Any]] = {}
    said: list[Sentence] = []
    for _, ways in groupby(all_ways, key=lambda way: way.model):
        sound = None
        for way in ways:
            if sound is None:
                tts = way.load(folder)
            way.keep_cache(tts)
            if not said:
                said = [exactly(tts, text, seed) for seed, text in enumerate(texts)]
            sound = sound or sound_likeness(tts, said)  # the same for every cache
            results[way.name] = {"agreement": agreement(tts, said), **sound}
            print(f"{way.name}: {results[way.name]}", file=sys.stderr)
    return results


def exactly(tts: nightingale.TTS, text: str, seed: int) -> Sentence:
    tokens, words = tts.speech_tokens(text, seed=seed), tts.tokenize(text)
    mel = tts.mel(tokens, seed=seed)
    return Sentence(
        words, tokens, _most_likely(tts, words, tokens), mel, tts.vocode(mel, seed=seed)
    )


def _most_likely(tts: nightingale.TTS, text: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    return most_likely(tts, text, np.array([START, *tokens[:-1]], np.int32), tts._voice(None))


def agreement(tts: nightingale.TTS, said: Sequence[Sentence]) -> float:
    """Share of all positions."""
    same = [_most_likely(tts, one.text, one.tokens) == one.most_likely for one in said]
    return float(np.concatenate(same).mean())


def sound_likeness(tts: nightingale.TTS, said: Sequence[Sentence]) -> dict[str, float]:
    """Of the mels the mean correlation, of the sound of equal mels the median SNR."""
    correlations, ratios = [], []
    for seed, one in enumerate(said):
        mel = tts.mel(one.tokens, seed=seed)
        correlations.append(np.corrcoef(mel.ravel(), one.mel.ravel())[0, 1])
        error = tts.vocode(one.mel, seed=seed) - one.sound
        power, lost = np.square(one.sound).sum(), np.square(error).sum()
        ratios.append(10 * np.log10(power / lost) if lost else np.inf)
    return {"mel": float(np.mean(correlations)), "snr": float(np.median(ratios))}


def listen(
    folder: Path,
    texts: Sequence[str],
    all_ways: Sequence[Way],
    seeds: int,
    judge_folder: Path,
    clips: Path,
) -> dict[str, dict[str, Any]]:
    """What is heard of the ways that speak."""
    found = {}
    for _, ways in groupby(all_ways, key=lambda way: way.model):
        tts = None
        for way in (way for way in ways if way.spoken):
            tts = tts or way.load(folder)
            way.keep_cache(tts)
            wavs = {}
            for number, text in enumerate(texts):
                for seed in range(seeds):
                    name = f"{way.name.replace(' ', '-').replace('%', '')}-{number:03d}-{seed}"
                    wav = clips / f"{name}.wav"
                    if not wav.exists():
                        tts.generate(text, seed=seed).save(wav)
                    wavs[name] = (wav, "en", text)
            rows = list(judge(wavs, judge_folder, clips / "scores.jsonl").values())
            found[way.name] = {name: error_rate(rows, name) for name in RECOGNIZERS}
            found[way.name]["mos"] = mean(row["mos"] for row in rows)
    return found


def print_table(results: dict[str, dict[str, Any]], sentences: int) -> None:
    print(f"{sentences} sentences beside float32; errors in % of the words")
    columns = ("agreement", "mel", "snr", *RECOGNIZERS, "mos")
    shown = {"agreement": "{:.2%}", "mel": "{:.5f}", "snr": "{:.1f} dB", "mos": "{:.2f}"}
    rows = [["kept as", *columns]]
    for name, result in results.items():
        cells = [
            shown.get(column, "{}").format(result[column]) if column in result else ""
            for column in columns
        ]
        rows.append([name, *cells])
    harness.print_table(rows)


if __name__ == "__main__":
    main()
