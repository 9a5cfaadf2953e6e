"""Speculation and speaking together: tokens a second beside plain decoding, from one run.

    python -m bench.speculation --model FOLDER [--dtype float16] [--tokens 60] [--rounds 3]
    python -m bench.speculation --model FOLDER --equality --text FILE [--sentences 200] [--seeds 3]

T3 alone, both guidance rows, the analyser on, after the prompt. "heard before" is the n-gram draft
that was given the utterance itself: always right and free, so that it shows what the checking
takes, and with it how much a draft can bring at most. Others go by their own guesses: with random
weights they are nearly never right, which shows what switching itself off costs. All take turns in
one process; ratios are medians of those to the plain run of the same round. --draft PATH names a
smaller T3, which then also takes part.

--equality measures nothing and compares tokens instead (bench/draft_equality.py): the exit status
is 1 unless every draft leaves all of them as they are.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from tqdm import tqdm

import nightingale
from nightingale import _core
from nightingale.draft import KINDS

from . import draft_equality
from .t3 import EMOTION, text_tokens

Run = Callable[[], tuple[float, list[int], dict[str, int]]]


class Bench:
    """One model that says one text, or several that begin alike."""

    def __init__(self, tts: nightingale.TTS, tokens: int) -> None:
        self._tts = tts
        self._count = tokens
        self._voice = tts._voice(None)
        self._text = np.array(text_tokens(), np.int32)
        self._sampling = tts._sampling(0.8, 0.5, None, 0.05, 1.0, tokens)

    def begin(self, sentence: int = 0, **settings: Any) -> _core.SpeechTokens:
        """An utterance whose prompt has been read."""
        engine = self._tts._engine
        speech = engine.t3.speak(
            self._text,
            engine._condition(self._voice, EMOTION).cache,
            analyser=engine.settings["analyser"],
            sentence=sentence,
            min_tokens=self._count,
            seed=0,
            **self._sampling,
            **settings,
        )
        self._first = speech.next()
        return speech

    def alone(self, **settings: Any) -> tuple[float, list[int], dict[str, int]]:
        """Tokens a second after the first, all tokens, what a draft brought."""
        speech = self.begin(**settings)
        start = time.perf_counter()
        rest = list(iter(speech.next, None))
        rate = len(rest) / (time.perf_counter() - start)
        return rate, [self._first, *rest], speech.speculation

    def together(self, sentences: int) -> tuple[float, list[int], dict[str, int]]:
        """The same of several at once; the tokens are the first one's."""
        speeches = [self.begin(sentence) for sentence in range(sentences)]
        tokens: list[list[int]] = [[] for _ in speeches]
        start = time.perf_counter()
        for number, speech in enumerate(speeches):
            ahead = speeches[number + 1 :]
            while (token := speech.next(ahead)) is not None:
                tokens[number].append(token)
        rate = sum(map(len, tokens)) / (time.perf_counter() - start)
        return rate, tokens[0], {}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, metavar="FOLDER", required=True)
    parser.add_argument("--dtype", default="float16")
    parser.add_argument(
        "--tokens", type=int, help="default: 60, with --equality up to 1000 of a sentence"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--draft", help="of a smaller T3, which also takes part")
    parser.add_argument("--equality", action="store_true", help="compare tokens, not speed")
    parser.add_argument("--text", type=Path, metavar="FILE", help="one sentence a line")
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    if args.equality and args.text is None:
        parser.error("--equality needs --text FILE")
    return compare_tokens(args) if args.equality else compare_speed(args)


def compare_tokens(args: argparse.Namespace) -> int:
    """0 where no draft changes a token, else 1."""
    sentences = draft_equality.read_sentences(args.text, args.sentences)
    spoken = draft_equality.utterances(sentences, args.seeds, args.tokens or 1000)
    drafts = [*KINDS, *([args.draft] if args.draft else [])]
    total = len(spoken) * len(draft_equality.PRECISIONS) * (1 + len(drafts))
    with tqdm(total=total, unit=" utterances") as bar:
        outcomes = draft_equality.compare(args.model, drafts, spoken, bar.update)
    return 0 if draft_equality.report(outcomes) else 1


def compare_speed(args: argparse.Namespace) -> int:
    tts = nightingale.load(args.model, dtype=args.dtype, draft=args.draft, device="cpu")
    bench = Bench(tts, args.tokens or 60)
    t3 = tts._engine.t3
    _, expected, _ = bench.alone()
    heard = _core.Draft.ngram(np.array([6561, *expected], np.int32))
    prompt = np.asarray(tts._voice(None).cond_prompt_speech_tokens, np.int32)
    runs: dict[str, Run] = {"plain": bench.alone}
    for count in (1, 3, 7):
        runs[f"heard before, {count} proposed"] = _alone(bench, draft=heard, proposals=count)
    runs["heard before, as many as pay"] = _alone(bench, draft=heard)
    runs["n-grams, as many as pay"] = _alone(bench, draft=_core.Draft.ngram(prompt))
    runs["layers, 3 proposed"] = _alone(bench, draft=_core.Draft.layers(t3), proposals=3)
    runs["layers, as many as pay"] = _alone(bench, draft=_core.Draft.layers(t3))
    if args.draft:
        condition = tts._engine._condition(tts._voice(None), EMOTION)
        runs["model, 3 proposed"] = _alone(bench, draft=condition.draft, proposals=3)
        runs["model, as many as pay"] = _alone(bench, draft=condition.draft)
    for sentences in (2, 4, 8):
        runs[f"{sentences} together"] = _together(bench, sentences)
    report(take_turns(runs, args.rounds, expected))
    return 0


def _alone(bench: Bench, **settings: Any) -> Run:
    return lambda: bench.alone(**settings)


def _together(bench: Bench, sentences: int) -> Run:
    return lambda: bench.together(sentences)


def take_turns(
    runs: dict[str, Run], rounds: int, expected: list[int]
) -> dict[str, list[tuple[float, float, dict[str, int]]]]:
    """Of every run and round: tokens a second, the ratio to plain, what a draft brought."""
    results: dict[str, list[tuple[float, float, dict[str, int]]]] = {name: [] for name in runs}
    for _ in range(rounds):
        plain = 0.0
        for name, run in runs.items():
            rate, tokens, counts = run()
            if tokens != expected[-len(tokens) :]:
                raise AssertionError(f"{name}: other tokens than plain decoding")
            plain = rate if name == "plain" else plain
            results[name].append((rate, rate / plain, counts))
    return results


def report(results: dict[str, list[tuple[float, float, dict[str, int]]]]) -> None:
    print(f"{'':32} {'tok/s':>7} {'ratio':>6} {'proposed':>9} {'accepted':>9}")
    for name, rows in results.items():
        counts = rows[-1][2]
        rate, ratio = (median(row[i] for row in rows) for i in (0, 1))
        told = f"{counts.get('proposed', 0):9} {counts.get('accepted', 0):9}"
        print(f"{name:32} {rate:7.2f} {ratio:5.2f}x {told if counts.get('rounds') else ''}")


if __name__ == "__main__":
    sys.exit(main())
