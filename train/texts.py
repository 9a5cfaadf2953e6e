"""The sentences to train on: a list, less what is evaluated, with more short and long ones.

    python -m train.texts lines DATA OUT            Common Voice text for make_texts.py --extra
    python -m train.texts mix DATA SENTENCES.jsonl OUT.jsonl [--seed N] [--english 0.6 --more 3000]
                                                    [--shipped 0.3]

DATA holds harvard_en_half.txt, cmu_arctic_prompts.txt and cv_LL.txt.xz; SENTENCES is what the
teacher's make_texts.py writes, more than half of it English: the options take less of that, and
so many lines of DATA's of each other language besides, and have the voices that are shipped say a
share of all before the others get theirs. OUT.jsonl is shuffled: its beginning is a
smaller list alike.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from .evaluation import LANGUAGES, assert_left_out, forbidden_texts, read_lines, says
from .phonemes import MOST, Phonemiser
from .phrases import phrases
from .voices import HELD_OUT_VOICES, draw_voice

UNSEEN_ROWS, UNSEEN_LETTERS = 24, 40  # of each voice held out, for validation; more letters
SHORT_ROWS = 0.12  # of the rows are a few words
PARAGRAPHS = 0.3  # of the sentences are said with others in one breath
PARAGRAPH_LETTERS = 210  # about 15 s, the longest piece that the engine says at once
LINE_LETTERS = (25, 140)  # of a line that is taken besides
SPEEDS, SPEED_WEIGHTS = (0.9, 1.0, 1.1), (15, 70, 15)


def tidy(line: str) -> str:
    """A line of Common Voice as a sentence: spaces in place, a capital first, a mark at the end."""
    text = " ".join(line.replace("\ufeff", "").replace("\u2060", "").split())
    text = re.sub(r"([¿¡]) ", r"\1", text)
    text = text.rstrip(" ,;:-\u2013\u2014")
    if not text:
        return ""
    if not re.search(r"[.!?…][\"»”']?$", text):
        text += "."
    return text[0].upper() + text[1:]


def usable_lines(data: Path, language: str, forbidden: set[str]) -> Iterator[str]:
    """Of one language."""
    lines = map(tidy, read_lines(data / f"cv_{language}.txt.xz"))
    return (line for line in lines if line and not says(line, forbidden))


def write_lines(data: Path, out: Path) -> None:
    """Common Voice text as sentences, one file a language, less what is evaluated."""
    forbidden = forbidden_texts(data)
    out.mkdir(parents=True, exist_ok=True)
    for language in LANGUAGES:
        kept = list(usable_lines(data, language, forbidden))
        (out / f"cv_{language}.txt").write_text("\n".join(kept) + "\n", encoding="utf-8")
        print(f"{language}: {len(kept)} lines")


def less_english(rows: list[dict], share: float, rng: random.Random) -> list[dict]:
    """The rows, of the English ones the given share."""
    return [row for row in rows if not row["lang"].startswith("en") or rng.random() < share]


def more_of_others(
    data: Path, count: int, forbidden: set[str], rng: random.Random
) -> Iterator[dict]:
    """At most `count` Common Voice lines of each language but English, as rows, none twice."""
    read = Phonemiser()
    for language in LANGUAGES[1:]:
        shortest, longest = LINE_LETTERS
        usable = usable_lines(data, language, forbidden)
        lines = sorted({line for line in usable if shortest <= len(line) <= longest})
        for text in rng.sample(lines, min(count, len(lines))):
            yield {"lang": language, "text": text, "phonemes": read(text, language)}


def paragraphs(rows: list[dict], rng: random.Random) -> Iterator[dict]:
    """The rows, some of them joined with others of their accent: two to four sentences."""
    waiting: dict[str, list[dict]] = defaultdict(list)
    for row in rows:
        if rng.random() > PARAGRAPHS:
            yield row
            continue
        queue = waiting[row["lang"]]
        joined = _joined([*queue, row])
        fits = len(joined["text"]) <= PARAGRAPH_LETTERS and len(joined["phonemes"]) <= MOST
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
    """`count` texts of a few words in the accents of the rows, single words out of the rows."""
    words: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        found = re.findall(r"(?<![\w'-])[^\W\d_]{2,}(?![\w'-])", row["text"])
        words[row["lang"][:2]].update(word.lower() for word in found)
    makers = {language: phrases(language, sorted(found), rng) for language, found in words.items()}
    read = Phonemiser()
    accents = Counter(row["lang"] for row in rows)
    for accent in rng.choices(list(accents), list(accents.values()), k=count):
        text = next(makers[accent[:2]])
        yield {"lang": accent, "text": text, "phonemes": read(text, accent)}


def as_people_write(text: str, language: str, rng: random.Random) -> str:
    """Marks that change nothing in how a text is said: quotes, dashes, French spaces."""
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


def unseen_rows(rows: list[dict]) -> Iterator[dict]:
    """What the voices held out say: sentences that others say, too."""
    for voice, accent in HELD_OUT_VOICES.items():
        usable = (
            row for row in rows if row["lang"] == accent and len(row["text"]) > UNSEEN_LETTERS
        )
        for row in itertools.islice(usable, UNSEEN_ROWS):
            yield row | {"voice": voice, "speed": 1.0}


def mixed(
    sentences: list[dict], forbidden: set[str], seed: int, shipped: float = 0.0
) -> list[dict]:
    """All rows for the teacher: id lang voice speed text phonemes."""
    rng = random.Random(seed)
    rows = [dict(row) for row in sentences if not says(row["text"], forbidden)]
    rng.shuffle(rows)
    short = short_rows(rows, round(len(rows) * SHORT_ROWS), rng)
    made = [*paragraphs(rows, rng), *(row for row in short if not says(row["text"], forbidden))]
    rng.shuffle(made)
    for row in made:
        row["voice"] = draw_voice(row["lang"], rng, shipped)
        row["speed"] = rng.choices(SPEEDS, SPEED_WEIGHTS)[0]
    made[1000:1000] = unseen_rows(made)
    for number, row in enumerate(made):
        row["id"] = f"{row['lang'][:2]}{seed}-{number:06d}"
        row["text"] = as_people_write(row["text"], row["lang"], rng)
    assert_left_out((row["text"] for row in made), forbidden)
    return made


def write_mix(
    data: Path,
    sentences: Path,
    out: Path,
    seed: int,
    english: float = 1.0,
    more: int = 0,
    shipped: float = 0.0,
) -> None:
    """The teacher's list with short and long texts, voices and marks, less what is evaluated."""
    forbidden, rng = forbidden_texts(data), random.Random(seed)
    with sentences.open(encoding="utf-8") as lines:
        given = less_english([json.loads(line) for line in lines], english, rng)
    known = {row["text"] for row in given}
    others = (row for row in more_of_others(data, more, forbidden, rng) if row["text"] not in known)
    rows = mixed([*given, *others], forbidden, seed, shipped)
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


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="train.texts",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    lines = commands.add_parser("lines", help=write_lines.__doc__)
    lines.add_argument("data", type=Path)
    lines.add_argument("out", type=Path)
    mix = commands.add_parser("mix", help=write_mix.__doc__)
    mix.add_argument("data", type=Path)
    mix.add_argument("sentences", type=Path)
    mix.add_argument("out", type=Path)
    mix.add_argument("--seed", type=int, default=1)
    mix.add_argument("--english", type=float, default=1.0, help="share of the English sentences")
    mix.add_argument("--more", type=int, default=0, help="lines of each other language besides")
    mix.add_argument(
        "--shipped", type=float, default=0.0, help="share that the package's voices say besides"
    )
    given = vars(parser.parse_args())
    {"lines": write_lines, "mix": write_mix}[given.pop("command")](**given)


if __name__ == "__main__":
    main()
