"""Tries respellings of a word and ranks them by what a speech recogniser hears.

    pip install faster-whisper
    python -m tools.respell Nguyen win "nwin" --accept Win

Each respelling is said in carrier sentences with several seeds and heard by Whisper. Those that are
heard as the word most often come first, then those that come closest by their letters. The best
line goes into a lexicon (docs/guide/text.md). Respellings made by rules are tried too.
"""

from __future__ import annotations

import argparse
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import numpy as np
from tqdm import tqdm

import nightingale

RECOGNISER_RATE = 16000
WORD = "{}"  # its place in a carrier sentence
CARRIERS = {
    "de": ("Auf der Tafel steht {} in weißer Schrift.", "Gestern hat sie {} noch einmal erwähnt."),
    "en": ("They wrote {} on the board.", "Yesterday she mentioned {} once again."),
    "es": ("Escribieron {} en la pizarra.", "Ayer ella mencionó {} otra vez."),
    "fr": ("Ils ont écrit {} au tableau.", "Hier elle a encore parlé de {} au dîner."),
    "it": ("Hanno scritto {} alla lavagna.", "Ieri ha nominato {} ancora una volta."),
    "pt": ("Eles escreveram {} no quadro.", "Ontem ela mencionou {} mais uma vez."),
}
# What may be written for what, by language; each is tried alone, then two together.
RULES: dict[str, tuple[tuple[str, str], ...]] = {
    "en": (
        (r"^(?:gn|kn|ng|pn)", "n"),
        (r"^(?:ps|cz)", "s"),
        ("g(?=[eiy])", "j"),
        ("c(?=[eiy])", "s"),
        ("c(?![eiyh])", "k"),
        ("ph", "f"),
        ("x", "ks"),
        ("^x", "z"),
        ("qu?", "k"),
        ("uy", "wee"),
        ("ie", "ee"),
        ("ei", "eye"),
        ("i(?![aeiou])", "ee"),
        ("a(?![aeiouwy])", "ah"),
        ("e$", "ay"),
        ("o$", "oh"),
        ("(?<=[aeiouy])(?=[^aeiouy][aeiouy])", "-"),
    ),
    "es": (("k", "qu"), ("w", "gu"), ("sh", "ch"), ("j(?=[aeiou])", "y"), ("oo", "u"), ("ee", "i")),
    "fr": (("w", "ou"), ("sh", "ch"), ("oo", "ou"), ("ee", "i"), ("u", "ou"), ("n$", "ne")),
    "it": (("k", "ch"), ("w", "u"), ("sh(?=[ei])", "sc"), ("j", "gi"), ("oo", "u"), ("ee", "i")),
    "pt": (("k", "qu"), ("w", "u"), ("sh", "x"), ("oo", "u"), ("ee", "i"), ("y", "i")),
}

Speak = Callable[[str, int], np.ndarray]  # a text and a seed to samples for the recogniser
Hear = Callable[[np.ndarray], str]


@dataclass(frozen=True)
class Result:
    """How one respelling was heard."""

    respelling: str
    heard: float  # share of the sentences in which it was heard as the word
    closeness: float  # mean, 1 where the letters are the same
    words: tuple[str, ...]  # what was heard in place of the word, each once, most frequent first

    @property
    def rank(self) -> tuple[float, float]:
        return -self.heard, -self.closeness


def generated(word: str, language: str, most: int) -> list[str]:
    """Respellings by the rules of a language, of one rule first, then of two."""
    found: dict[str, None] = {}
    if word.isupper() and len(word) > 1:
        found[" ".join(word)] = None
    rules = [(re.compile(pattern), put) for pattern, put in RULES.get(language, ())]
    plain = word.lower()
    singles = [rule for rule in rules if rule[0].search(plain)]
    for first, second in [*((r, r) for r in singles), *product(singles, singles)]:
        spelled = first[0].sub(first[1], plain)
        if first != second:
            spelled = second[0].sub(second[1], spelled)
        if spelled != plain:
            found[spelled] = None
    return list(found)[:most]


def candidates(word: str, given: Iterable[str], made: Iterable[str]) -> list[str]:
    """The word as it is, what the user gave and what rules made, each once."""
    return list(dict.fromkeys([word, *given, *made]))


def letters(text: str) -> str:
    """Text without case, accents, spaces and punctuation."""
    plain = unicodedata.normalize("NFKD", text.casefold())
    return "".join(character for character in plain if character.isalnum())


def closeness(one: str, other: str) -> float:
    """1 less the edit distance by the longer text's length, of their letters."""
    one, other = letters(one), letters(other)
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        previous, row = row, [i]
        for j, b in enumerate(other, 1):
            row.append(min(previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (a != b)))
    return 1 - row[-1] / max(len(one), len(other), 1)


def in_place(carrier: str, heard: str) -> str:
    """What was heard between the words of the carrier sentence that stand around the word."""
    words = heard.split()
    before, after = (part.split() for part in carrier.split(WORD))
    start = _shared(before, words)
    end = len(words) - _shared(after[::-1], words[start:][::-1])
    return " ".join(words[start:end]).strip(".,;:!?\"'«»")


def _shared(expected: Sequence[str], heard: Sequence[str]) -> int:
    """How many words of the beginning were heard about as they are."""
    count = 0
    for one, other in zip(expected, heard, strict=False):
        if closeness(one, other) < 0.5:
            break
        count += 1
    return count


def judged(
    respelling: str,
    accepted: Sequence[str],
    carriers: Sequence[str],
    seeds: Sequence[int],
    speak: Speak,
    hear: Hear,
) -> Result:
    """Says one respelling in every carrier with every seed."""
    heard = [
        in_place(carrier, hear(speak(carrier.replace(WORD, respelling), seed)))
        for carrier in carriers
        for seed in seeds
    ]
    close = [max(closeness(word, each) for word in accepted) for each in heard]
    right = sum(value == 1 for value in close)
    words = sorted(dict.fromkeys(heard), key=heard.count, reverse=True)
    return Result(respelling, right / len(heard), sum(close) / len(heard), tuple(words))


def ranked(respellings: Iterable[str], **judging: Any) -> Iterator[Result]:
    """All respellings, the best first; equal ones in the order in which they were given."""
    return iter(sorted((judged(each, **judging) for each in respellings), key=lambda r: r.rank))


def speaker(tts: nightingale.TTS, language: str, voice: str | None) -> Speak:
    import soxr

    def speak(text: str, seed: int) -> np.ndarray:
        audio = tts.generate(text, language=language, voice=voice, seed=seed)
        resampled: np.ndarray = soxr.resample(audio.samples, audio.sample_rate, RECOGNISER_RATE)
        return resampled

    return speak


def whisper(model: str, language: str) -> Hear:
    """Whisper through faster-whisper. model: a size such as base, or a folder."""
    try:
        from faster_whisper import WhisperModel
    except ModuleNotFoundError:
        raise SystemExit("respell needs faster-whisper: pip install faster-whisper") from None
    recogniser = WhisperModel(model, device="cpu", compute_type="int8")

    def hear(samples: np.ndarray) -> str:
        segments, _ = recogniser.transcribe(
            samples, language=language, temperature=0, condition_on_previous_text=False
        )
        return " ".join(segment.text.strip() for segment in segments)

    return hear


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="respell", description=__doc__.splitlines()[0])
    parser.add_argument("word", help="as it is written")
    parser.add_argument("respellings", nargs="*", help="to try")
    parser.add_argument("--language", default="en")
    parser.add_argument("--model", help="a checkpoint (default: the embedded model)")
    parser.add_argument("--voice", help="of the model")
    parser.add_argument(
        "--accept",
        action="append",
        default=[],
        help="another way in which the recogniser may write the right sound; may be repeated",
    )
    parser.add_argument(
        "--carrier", action="append", help=f"a sentence with {WORD} in it; may be repeated"
    )
    parser.add_argument("--seeds", type=int, default=3, help="for each sentence (default: 3)")
    parser.add_argument(
        "--generated", type=int, default=8, help="respellings by rules, at most (default: 8)"
    )
    parser.add_argument("--whisper", default="base", help="a size or a folder (default: base)")
    parser.add_argument("--json", action="store_true", help="print one line of JSON each")
    args = parser.parse_args(words)
    if args.seeds < 1 or args.generated < 0 or not letters(args.word):
        parser.error("seeds must be 1 or more, generated 0 or more, and the word needs a letter")
    args.carrier = args.carrier or CARRIERS.get(args.language, (f"{WORD}.",))
    if any(carrier.count(WORD) != 1 for carrier in args.carrier):
        parser.error(f"a carrier sentence needs one {WORD}")
    return args


def main() -> None:
    args = arguments()
    hear = whisper(args.whisper, args.language)
    tts = nightingale.load(args.model)
    made = generated(args.word, args.language, args.generated)
    results = ranked(
        tqdm(candidates(args.word, args.respellings, made), disable=None, unit="respelling"),
        accepted=(args.word, *args.accept),
        carriers=args.carrier,
        seeds=range(args.seeds),
        speak=speaker(tts, args.language, args.voice),
        hear=hear,
    )
    for result in results:
        if args.json:
            print(json.dumps(asdict(result), ensure_ascii=False))
        else:
            heard = ", ".join(result.words[:4])
            print(f"{result.heard:4.0%}  {result.closeness:.2f}  {result.respelling:20}  {heard}")


if __name__ == "__main__":
    main()
