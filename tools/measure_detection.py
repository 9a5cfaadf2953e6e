"""Measures how often the language of a text is detected, by language and length of the text.

    python tools/measure_detection.py FOLDER [--languages en,es,fr,it,pt] [--sentences 500]

FOLDER has a file of sentences for each language, one a line: en.txt, es.txt, ... For each sentence
one to three words of it are tried, the sentence itself, and four sentences as a paragraph.
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Iterator
from pathlib import Path

from nightingale.text.detection import detect

KINDS = ("1-3 words", "sentence", "paragraph")
WORD = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")
CHARACTERS_OF_WORDS = 6  # that stand for one to three words where there are no spaces


def texts(sentences: list[str], draw: random.Random) -> Iterator[tuple[str, str]]:
    """Texts of each kind."""
    for sentence in sentences:
        yield KINDS[0], some_words(sentence, draw)
        yield KINDS[1], sentence
        yield KINDS[2], " ".join(draw.sample(sentences, min(4, len(sentences))))


def some_words(sentence: str, draw: random.Random) -> str:
    words = WORD.findall(sentence)
    if not words:
        return sentence
    count = min(len(words), draw.randint(1, 3))
    start = draw.randrange(len(words) - count + 1)
    found = " ".join(words[start : start + count])
    return found if found.isascii() or found[0] < "\u3000" else found[:CHARACTERS_OF_WORDS]


def accuracy(folder: Path, languages: list[str], most: int) -> Iterator[tuple[str, list[str]]]:
    for language in languages:
        file = folder / f"{language}.txt"
        sentences = [line for line in file.read_text("utf-8").splitlines() if line.strip()]
        if not sentences:
            raise SystemExit(f"{file} has no sentences")
        draw = random.Random(language)
        draw.shuffle(sentences)
        right, tried = dict.fromkeys(KINDS, 0), dict.fromkeys(KINDS, 0)
        for kind, text in texts(sentences[:most], draw):
            tried[kind] += 1
            right[kind] += detect(text, languages) == language
        shares = [f"{100 * right[kind] / tried[kind]:.1f} %" for kind in KINDS]
        yield language, [*shares, str(min(most, len(sentences)))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--languages", help="with commas (default: all files there are)")
    parser.add_argument("--sentences", type=int, default=500, help="of each language, at most")
    args = parser.parse_args()
    there = sorted(file.stem for file in args.folder.glob("*.txt"))
    languages = args.languages.split(",") if args.languages else there
    print(f"| language | {' | '.join(KINDS)} | sentences |\n|---|---|---|---|---|")
    for language, cells in accuracy(args.folder, languages, args.sentences):
        print(f"| {language} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
