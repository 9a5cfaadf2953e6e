"""The training texts: sentences without those of the evaluation, and more short and long texts.

    python -m train.texts lines DATA OUT            Common Voice text for make_texts.py --extra
    python -m train.texts mix DATA SENTENCES.jsonl OUT.jsonl [--seed N] [--english-share 0.6]
                                                    [--extra-lines 3000] [--shipped-share 0.3]
                                                    [--usual-speed-share 0.55]

DATA has harvard_en_half.txt, cmu_arctic_prompts.txt and cv_LL.txt.xz; SENTENCES is the output of
the teacher's make_texts.py, more than half of it English. --english-share keeps a share of the
English sentences, --extra-lines adds lines of DATA for each other language, --shipped-share
assigns a share of all texts to the voices of the package, --usual-speed-share is spoken neither
slower nor faster. OUT.jsonl is shuffled, so that its beginning is a representative sample.
"""

from __future__ import annotations

import itertools
import json
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from .evaluation_sentences import (
    LANGUAGES,
    assert_not_trained_on,
    contains_forbidden,
    forbidden_texts,
    read_lines,
)
from .options import add_paths, command_parser
from .phonemizer import MAX_PHONEMES, Phonemizer
from .short_texts import short_texts
from .voices import HELD_OUT_VOICES, draw_voice

HELD_OUT_ROWS, HELD_OUT_LETTERS = 24, 40  # rows of each held-out voice, and their minimum length
SHORT_ROWS = 0.12  # of the rows are a few words
PARAGRAPHS = 0.3  # of the sentences are joined with others
PARAGRAPH_LETTERS = 210  # about 15 s, the longest segment of the engine
LINE_LETTERS = (25, 140)  # of an extra line
# Of the teacher: T3 learns from them to speak slower and faster.
OTHER_SPEEDS = (0.6, 0.7, 0.8, 0.9, 1.1, 1.25, 1.45, 1.7)
OTHER_SPEED_WEIGHTS = (3, 4, 5, 8, 8, 6, 6, 5)
USUAL_SPEED = 0.55  # of the rows


def clean_line(line: str) -> str:
    """Makes a sentence of a Common Voice line: spaces, a capital letter, final punctuation."""
    text = " ".join(line.replace("\ufeff", "").replace("\u2060", "").split())
    text = re.sub(r"([¿¡]) ", r"\1", text)
    text = text.rstrip(" ,;:-\u2013\u2014")
    if not text:
        return ""
    if not re.search(r"[.!?…][\"»”']?$", text):
        text += "."
    return text[0].upper() + text[1:]


def usable_lines(data: Path, language: str, forbidden: set[str]) -> Iterator[str]:
    """Common Voice sentences of one language that are not evaluated."""
    lines = map(clean_line, read_lines(data / f"cv_{language}.txt.xz"))
    return (line for line in lines if line and not contains_forbidden(line, forbidden))


def write_lines(data: Path, out: Path) -> None:
    """writes Common Voice sentences, one file per language, without those of the evaluation"""
    forbidden = forbidden_texts(data)
    out.mkdir(parents=True, exist_ok=True)
    for language in LANGUAGES:
        kept = list(usable_lines(data, language, forbidden))
        (out / f"cv_{language}.txt").write_text("\n".join(kept) + "\n", encoding="utf-8")
        print(f"{language}: {len(kept)} lines")


def subsample_english(rows: list[dict], share: float, rng: random.Random) -> list[dict]:
    """Keeps the given share of the English rows."""
    return [row for row in rows if not row["lang"].startswith("en") or rng.random() < share]


def extra_rows(data: Path, count: int, forbidden: set[str], rng: random.Random) -> Iterator[dict]:
    """At most `count` different Common Voice lines of each language but English, as rows."""
    read = Phonemizer()
    for language in LANGUAGES[1:]:
        shortest, longest = LINE_LETTERS
        usable = usable_lines(data, language, forbidden)
        lines = sorted({line for line in usable if shortest <= len(line) <= longest})
        for text in rng.sample(lines, min(count, len(lines))):
            yield {"lang": language, "text": text, "phonemes": read(text, language)}


def paragraphs(rows: list[dict], rng: random.Random) -> Iterator[dict]:
    """Joins some of the rows with others of their accent, two to four sentences."""
    waiting: dict[str, list[dict]] = defaultdict(list)
    for row in rows:
        if rng.random() > PARAGRAPHS:
            yield row
            continue
        queue = waiting[row["lang"]]
        joined = _joined([*queue, row])
        fits = len(joined["text"]) <= PARAGRAPH_LETTERS and len(joined["phonemes"]) <= MAX_PHONEMES
        if queue and (not fits or rng.random() < (len(queue) - 1) / 3):
            yield _joined(queue)
            queue.clear()
        queue.append(row)
    for queue in waiting.values():
        if queue:
            yield _joined(queue)


def _joined(rows: list[dict]) -> dict:
    texts, phonemes = ([row[key] for row in rows] for key in ("text", "phonemes"))
    return {"lang": rows[0]["lang"], "text": " ".join(texts), "phonemes": " ".join(phonemes)}


def short_rows(rows: list[dict], count: int, rng: random.Random) -> Iterator[dict]:
    """`count` texts of a few words in the accents of the rows, some with words of the rows."""
    words: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        found = re.findall(r"(?<![\w'-])[^\W\d_]{2,}(?![\w'-])", row["text"])
        words[row["lang"][:2]].update(word.lower() for word in found)
    makers = {
        language: short_texts(language, sorted(found), rng) for language, found in words.items()
    }
    read = Phonemizer()
    accents = Counter(row["lang"] for row in rows)
    for accent in rng.choices(list(accents), list(accents.values()), k=count):
        text = next(makers[accent[:2]])
        yield {"lang": accent, "text": text, "phonemes": read(text, accent)}


def vary_punctuation(text: str, language: str, rng: random.Random) -> str:
    """Punctuation that does not change the pronunciation: quotes, dashes, French spaces."""
    if language == "fr" and rng.random() < 0.4:
        text = re.sub(r"\s*([?!:;])", "\u00a0\\1", text)
    chance = rng.random()
    if chance < 0.03:
        opening, closing = rng.choice(['""', "“”", "«»"])
        text = f"{opening}{text}{closing}"
    elif chance < 0.06:
        text = re.sub(r", ", rng.choice([" - ", " \u2013 ", "; "]), text, count=1)
    elif chance < 0.08:
        text = text.removesuffix(".")
    return text


def held_out_rows(rows: list[dict]) -> Iterator[dict]:
    """Sentences of the held-out voices, which other voices speak, too."""
    for voice, accent in HELD_OUT_VOICES.items():
        usable = (
            row for row in rows if row["lang"] == accent and len(row["text"]) > HELD_OUT_LETTERS
        )
        for row in itertools.islice(usable, HELD_OUT_ROWS):
            yield row | {"voice": voice, "speed": 1.0}


def build_rows(
    sentences: list[dict],
    forbidden: set[str],
    seed: int,
    shipped: float = 0.0,
    usual_speed: float = USUAL_SPEED,
) -> list[dict]:
    """All rows for the teacher: id lang voice speed text phonemes."""
    rng = random.Random(seed)
    rows = [dict(row) for row in sentences if not contains_forbidden(row["text"], forbidden)]
    rng.shuffle(rows)
    short = short_rows(rows, round(len(rows) * SHORT_ROWS), rng)
    made = [
        *paragraphs(rows, rng),
        *(row for row in short if not contains_forbidden(row["text"], forbidden)),
    ]
    rng.shuffle(made)
    for row in made:
        row["voice"] = draw_voice(row["lang"], rng, shipped)
        is_usual = rng.random() < usual_speed
        row["speed"] = 1.0 if is_usual else rng.choices(OTHER_SPEEDS, OTHER_SPEED_WEIGHTS)[0]
    made[1000:1000] = held_out_rows(made)
    for number, row in enumerate(made):
        row["id"] = f"{row['lang'][:2]}{seed}-{number:06d}"
        row["text"] = vary_punctuation(row["text"], row["lang"], rng)
    assert_not_trained_on((row["text"] for row in made), forbidden)
    return made


def write_mix(
    data: Path,
    sentences: Path,
    out: Path,
    seed: int,
    english_share: float = 1.0,
    extra_lines: int = 0,
    shipped_share: float = 0.0,
    usual_speed_share: float = USUAL_SPEED,
) -> None:
    """writes the teacher's sentences with short and long texts, voices and punctuation added"""
    forbidden, rng = forbidden_texts(data), random.Random(seed)
    with sentences.open(encoding="utf-8") as lines:
        given = subsample_english([json.loads(line) for line in lines], english_share, rng)
    known = {row["text"] for row in given}
    others = (
        row for row in extra_rows(data, extra_lines, forbidden, rng) if row["text"] not in known
    )
    rows = build_rows([*given, *others], forbidden, seed, shipped_share, usual_speed_share)
    keys = ("id", "lang", "voice", "speed", "text", "phonemes")
    with out.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps({key: row[key] for key in keys}, ensure_ascii=False) + "\n")
    report(rows)


def report(rows: Iterable[dict]) -> None:
    by_accent = defaultdict(list)
    for row in rows:
        by_accent[row["lang"]].append(row)
    for accent, found in sorted(by_accent.items()):
        seconds = sum(0.35 + 0.0504 * len(row["phonemes"]) / row["speed"] for row in found)
        voices = len({row["voice"] for row in found})
        print(f"{accent:6s} {len(found):7d} texts, about {seconds / 3600:5.1f} h, {voices} voices")


def main(arguments: list[str]) -> None:
    parser = command_parser("texts", __doc__)
    commands = parser.add_subparsers(required=True)
    lines = commands.add_parser("lines", help=write_lines.__doc__)
    add_paths(lines, "data", "out")
    lines.set_defaults(run=write_lines)
    mix = commands.add_parser("mix", help=write_mix.__doc__)
    add_paths(mix, "data", "sentences", "out")
    mix.set_defaults(run=write_mix)
    mix.add_argument("--seed", type=int, default=1)
    mix.add_argument(
        "--english-share", type=float, default=1.0, help="share of the English sentences to keep"
    )
    mix.add_argument("--extra-lines", type=int, default=0, help="more lines of each other language")
    mix.add_argument(
        "--shipped-share", type=float, default=0.0, help="share of texts for the package's voices"
    )
    mix.add_argument(
        "--usual-speed-share",
        type=float,
        default=USUAL_SPEED,
        help="share of texts that are not spoken slower or faster",
    )
    options = vars(parser.parse_args(arguments))
    options.pop("run")(**options)


if __name__ == "__main__":
    main(sys.argv[1:])
