"""Whether drafts leave every token as it is: sentences spoken plainly and with each of them.

Every sentence is spoken with every seed, nearly greedily and as usual, by T3 in float32 and in
int8: plainly first, then with each draft. The number of proposals goes from 1 to 7 and round again
instead of following the clock, so that a draft which does not pay is put to the test all the same,
and acceptance is the same in every run. One model is in memory at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import nightingale
from nightingale import _core

from . import harness
from .t3 import EMOTION

PRECISIONS = ("float32", "int8")
TEMPERATURES = (0.0001, 0.8)
MOST_PROPOSALS = 7


@dataclass(frozen=True)
class Utterance:
    """A sentence and how it is spoken."""

    text: str
    seed: int
    temperature: float
    proposals: int
    max_tokens: int


@dataclass
class Outcome:
    """What a draft did at one precision and temperature."""

    precision: str
    draft: str
    temperature: float
    spoken: int = 0
    equal: int = 0
    proposed: int = 0
    accepted: int = 0
    first_difference: str = ""


def read_sentences(path: Path, count: int) -> list[str]:
    """The first of a file that has one on each line."""
    lines = [line.strip() for line in path.read_text("utf-8").splitlines()]
    sentences = [line for line in lines if line]
    if len(sentences) < count:
        raise ValueError(f"{path} has {len(sentences)} sentences; {count} were asked for")
    return sentences[:count]


def utterances(sentences: Sequence[str], seeds: int, max_tokens: int) -> list[Utterance]:
    """Every sentence with every seed at every temperature."""
    choices = product(TEMPERATURES, sentences, range(seeds))
    return [
        Utterance(text, seed, temperature, 1 + number % MOST_PROPOSALS, max_tokens)
        for number, (temperature, text, seed) in enumerate(choices)
    ]


def speak(tts: nightingale.TTS, utterance: Utterance) -> tuple[list[int], dict[str, int]]:
    """The tokens, and what the model's draft brought."""
    options = nightingale.SpeechOptions(
        exaggeration=EMOTION,
        seed=utterance.seed,
        temperature=utterance.temperature,
        max_tokens=utterance.max_tokens,
    )
    voice = tts._voice(None)
    speech: _core.SpeechTokens = tts._engine.speak(
        tts.tokenize(utterance.text),
        voice,
        tts._resolved(options, voice),
        proposals=utterance.proposals,
    )
    return list(iter(speech.next, None)), speech.speculation


def compare(
    folder: Path,
    drafts: Sequence[str],
    spoken: Sequence[Utterance],
    progress: Callable[[], object],
) -> list[Outcome]:
    """What became of each draft at each precision and temperature. progress: after an utterance."""
    outcomes = []
    for precision in PRECISIONS:
        plain = harness.load(folder, precision, "cpu")
        expected = []
        for utterance in spoken:
            expected.append(speak(plain, utterance)[0])
            progress()
        del plain
        for draft in drafts:
            found = {t: Outcome(precision, draft, t) for t in TEMPERATURES}
            drafted = harness.load(folder, precision, "cpu", draft)
            for utterance, tokens in zip(spoken, expected, strict=True):
                _count(found[utterance.temperature], utterance, tokens, *speak(drafted, utterance))
                progress()
            outcomes += found.values()
    return outcomes


def _count(
    outcome: Outcome,
    utterance: Utterance,
    expected: list[int],
    tokens: list[int],
    brought: dict[str, int],
) -> None:
    outcome.spoken += 1
    outcome.equal += tokens == expected
    outcome.proposed += brought["proposed"]
    outcome.accepted += brought["accepted"]
    if tokens != expected and not outcome.first_difference:
        pairs = zip(tokens, expected, strict=False)
        alike = next(
            (i for i, (a, b) in enumerate(pairs) if a != b), min(len(tokens), len(expected))
        )
        outcome.first_difference = (
            f"{outcome.precision}, {outcome.draft}, temperature {outcome.temperature}: "
            f"seed {utterance.seed} differs from token {alike} on: {utterance.text}"
        )


def report(outcomes: Sequence[Outcome]) -> bool:
    """Prints a row for each, and where they differ; whether all are equal."""
    rows = [["", "draft", "temperature", "equal", "of", "proposed", "accepted", "rate"]]
    for o in outcomes:
        rate = f"{o.accepted / o.proposed:.1%}" if o.proposed else ""
        counts = (o.equal, o.spoken, o.proposed, o.accepted)
        rows.append([o.precision, o.draft, str(o.temperature), *map(str, counts), rate])
    harness.print_table(rows)
    equal, spoken = sum(o.equal for o in outcomes), sum(o.spoken for o in outcomes)
    print(f"{equal} of {spoken} token sequences are those of plain decoding")
    for outcome in outcomes:
        if outcome.first_difference:
            print(outcome.first_difference)
    return equal == spoken
