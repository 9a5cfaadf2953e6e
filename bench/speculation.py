"""Speculation and speaking together: tokens a second beside plain decoding, from one run.

    python -m bench.speculation --model FOLDER [--precision float16] [--tokens 60] [--rounds 3]
    python -m bench.speculation --model FOLDER --text FILE --draft PATH [--sentences 10]
    python -m bench.speculation --model FOLDER --equality --text FILE [--sentences 200] [--seeds 3]

T3 alone, both guidance rows, the analyser on, after the prompt: so many tokens of no text at all,
or the sentences of FILE to their ends, which is for a model that speaks. "known utterance" is the
n-gram draft that was given the utterance itself: always right and free, so that it shows what the
checking takes, and with it how much a draft can bring at most. Others go by their own guesses: with
random weights they are nearly never right, which shows what switching itself off costs. All take
turns in one process, text by text; ratios are medians of those to the plain run of the same round.
--draft PATH names a smaller T3, which is then compared in place of the other drafts.

--equality measures nothing and compares tokens instead (bench/draft_equality.py): the exit status
is 1 unless every draft leaves all of them as they are.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from tqdm import tqdm

import nightingale
from nightingale import _core
from nightingale.draft import KINDS

from . import draft_equality, harness
from .t3 import EMOTION, text_tokens

MOST_TOKENS = 1000  # of a sentence that is said to its end


@dataclass(frozen=True)
class Spoken:
    tokens: list[int]
    count: int  # of tokens that took the seconds
    seconds: float
    brought: Counter[str]  # by a draft


Run = Callable[[int], Spoken]  # of a text's number


class Bench:
    """One model that says some texts, each of which it may also say several times at once."""

    def __init__(self, tts: nightingale.TTS, texts: Sequence[np.ndarray], tokens: int | None):
        """tokens: of each text, however long it is; None: to its end"""
        self.texts = range(len(texts))
        self._tts = tts
        self._texts = texts
        self._least = tokens or 0
        self._voice = tts._voice(None)
        options = nightingale.SpeechOptions(exaggeration=EMOTION, max_tokens=tokens or MOST_TOKENS)
        self._options = tts._resolved(options, self._voice)
        self.condition = tts._engine._condition(self._voice, EMOTION)

    def begin(self, text: int, sentence: int = 0, **settings: Any) -> _core.SpeechTokens:
        """An utterance whose prompt has been read."""
        engine = self._tts._engine
        speech = engine.t3.speak(
            self._texts[text],
            self.condition.cache,
            self._options,
            analyser=engine.settings["analyser"],
            sentence=sentence,
            min_tokens=self._least,
            **settings,
        )
        self._first = speech.next()
        return speech

    def alone(self, text: int, **settings: Any) -> Spoken:
        speech = self.begin(text, **settings)
        start = time.perf_counter()
        rest = list(iter(speech.next, None))
        seconds = time.perf_counter() - start
        return Spoken([self._first, *rest], len(rest), seconds, Counter(speech.speculation))

    def together(self, text: int, sentences: int) -> Spoken:
        """So many times at once; the tokens are those of the first time, without the first."""
        speeches = [self.begin(text, sentence) for sentence in range(sentences)]
        tokens: list[list[int]] = [[] for _ in speeches]
        start = time.perf_counter()
        for number, speech in enumerate(speeches):
            ahead = speeches[number + 1 :]
            while (token := speech.next(ahead)) is not None:
                tokens[number].append(token)
        seconds = time.perf_counter() - start
        return Spoken(tokens[0], sum(map(len, tokens)), seconds, Counter())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, metavar="FOLDER", required=True)
    parser.add_argument("--precision", default="float16", help="float32, float16, int8 ...")
    parser.add_argument(
        "--tokens", type=int, help="of an utterance; default: 60, with --text up to 1000"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--draft", help="of a smaller T3, to compare; with --equality also")
    parser.add_argument("--equality", action="store_true", help="compare tokens, not speed")
    parser.add_argument("--text", type=Path, metavar="FILE", help="one sentence a line")
    parser.add_argument("--sentences", type=int, help="default: 10, with --equality 200")
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    if args.equality and args.text is None:
        parser.error("--equality needs --text FILE")
    return compare_tokens(args) if args.equality else compare_speed(args)


def compare_tokens(args: argparse.Namespace) -> int:
    """0 where no draft changes a token, else 1."""
    sentences = draft_equality.read_sentences(args.text, args.sentences or 200)
    spoken = draft_equality.utterances(sentences, args.seeds, args.tokens or MOST_TOKENS)
    drafts = [*KINDS, *([args.draft] if args.draft else [])]
    total = len(spoken) * len(draft_equality.PRECISIONS) * (1 + len(drafts))
    with tqdm(total=total, unit=" utterances") as bar:
        outcomes = draft_equality.compare(args.model, drafts, spoken, bar.update)
    return 0 if draft_equality.report(outcomes) else 1


def compare_speed(args: argparse.Namespace) -> int:
    tts = harness.load(args.model, args.precision, "cpu", args.draft)
    if args.text:
        sentences = draft_equality.read_sentences(args.text, args.sentences or 10)
        bench = Bench(tts, [tts.tokenize(sentence) for sentence in sentences], args.tokens)
    else:
        bench = Bench(tts, [np.array(text_tokens(), np.int32)], args.tokens or 60)
    expected = [bench.alone(text).tokens for text in bench.texts]
    known = [_core.Draft.ngram(np.array([6561, *tokens], np.int32)) for tokens in expected]
    runs: dict[str, Run] = {"plain": bench.alone}

    def add(name: str, draft: Callable[[int], _core.Draft], counts: Sequence[int]) -> None:
        for count in (*counts, None):
            told = "as many as pay" if count is None else f"{count} proposed"
            runs[f"{name}, {told}"] = lambda text, count=count: bench.alone(
                text, draft=draft(text), proposals=count
            )

    add("known utterance", known.__getitem__, (1, 2, 3, 7))
    if args.draft:
        add("model", lambda text: bench.condition.draft, (1, 2, 3))
    else:
        prompt = np.asarray(tts._voice(None).cond_prompt_speech_tokens, np.int32)
        ngrams, layers = _core.Draft.ngram(prompt), _core.Draft.layers(tts._engine.t3)
        add("n-grams", lambda text: ngrams, ())
        add("layers", lambda text: layers, (3,))
    if not args.text:
        for count in (2, 4, 8):
            runs[f"{count} together"] = partial(bench.together, sentences=count)
    report([take_turns(runs, expected) for _ in range(args.rounds)])
    return 0


def take_turns(runs: dict[str, Run], expected: list[list[int]]) -> dict[str, list[Spoken]]:
    """What every run spoke, all of them one text before they go on to the next."""
    spoken: dict[str, list[Spoken]] = {name: [] for name in runs}
    for text, tokens in enumerate(expected):
        for name, run in runs.items():
            found = run(text)
            if found.tokens != tokens[-len(found.tokens) :]:
                raise AssertionError(f"{name}: other tokens than plain decoding")
            spoken[name].append(found)
    return spoken


def rate(spoken: Sequence[Spoken]) -> float:
    """Tokens a second."""
    return sum(each.count for each in spoken) / sum(each.seconds for each in spoken)


def report(rounds: Sequence[dict[str, list[Spoken]]]) -> None:
    print(f"{'':32} {'tok/s':>7} {'ratio':>6} {'proposed':>9} {'accepted':>9}")
    for name, last in rounds[-1].items():
        rates = [rate(spoken[name]) for spoken in rounds]
        ratios = [rate(spoken[name]) / rate(spoken["plain"]) for spoken in rounds]
        brought = sum((each.brought for each in last), Counter())
        told = f"{brought['proposed']:9} {brought['accepted']:9}" if brought["rounds"] else ""
        print(f"{name:32} {median(rates):7.2f} {median(ratios):5.2f}x {told}")


if __name__ == "__main__":
    sys.exit(main())
