"""Random strings in 14 scripts: none may end the text front-end or lose what can be spoken.

    python -m tools.random_texts [--count 100000] [--seed 1] [--tokenizer FILE]

Every string is written out, split into segments and tokenized. Each letter and number of it has to
be in the text that is spoken, be written out in words, or be named as unspoken.
"""

# ruff: noqa: RUF001

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from unicodedata import category

import nightingale
from nightingale.checkpoint import LANGUAGES
from nightingale.text import Tokenizer, prepare
from nightingale.text.pauses import PAUSE_MARK
from nightingale.text.segment import Segment
from nightingale.text.unspoken import speakable

# Not spoken: how an address begins, and what HTML writes for "&", which is said as "and".
_SILENT = re.compile(rf"{PAUSE_MARK.pattern}|(?:https?|ftp)://|www\.|&amp;", re.IGNORECASE)
EMBEDDED = Path(nightingale.__file__).parent / "assets/grapheme_mtl_merged_expanded_v1.json"
SCRIPTS = {
    "Latin": "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    "áàâãäåæçéèêëíìîïñóòôõöøœßúùûüýÿžşğı",
    "Greek": "αβγδεζηθικλμνξοπρσςτυφχψωΑΒΓΔΘΛΞΠΣΦΨΩάέήίόύώ",
    "Cyrillic": "абвгдеёжзийклмнопрстуфхцчшщъыьэюяАБВГДЖЗЛПФЯіїєў",
    "Arabic": "ابتثجحخدذرزسشصضطظعغفقكلمنهويءآأؤإئةى٠١٢٣٤٥٦٧٨٩",
    "Hebrew": "אבגדהוזחטיכלמנסעפצקרשתךםןףץ",
    "Devanagari": "अआइईउऊएऐओऔकखगघचछजझटठडढणतथदधनपफबभमयरलवशषसह०१२३४५६७८९िीुूेैोौ्ंः",
    "Bengali": "অআইঈউএওকখগঘচছজটডণতদধনপফবভমযরলশষসহ০১২৩৪৫৬৭৮৯ািীুে",
    "Tamil": "அஆஇஈஉஎஏஐஒகசடதபறயரலவழளணநமனஙஞாிீுூெேை",
    "Thai": "กขคงจฉชซญดตถทธนบปผพภมยรลวศสหอะาิีึืุูเแโใไ๐๑๒๓๔๕๖๗๘๙",
    "Georgian": "აბგდევზთიკლმნოპჟრსტუფქღყშჩცძწჭხჯჰ",
    "Armenian": "աբգդեզէըթժիլխծկհձղճմյնշոչպջռսվտրցւփքօֆ",
    "Han": "一二三四五六七八九十百千万的是不我有他这中大来上国个到说们为子和你地出道也时年",
    "Kana": "あいうえおかきくけこさしすせそたちつてとなにぬねのはひ"
    "アイウエオカキクケコサシスセソー",
    "Hangul": "가나다라마바사아자차카타파하한국어는은이가을를에서으로와과도의일월년시분초",
}
DIGITS = "0123456789"
SIGNS = " .,:;!?-–—'’\"«»“”()[]/\\@#&%‰°ºª$€£¥+−=<>×÷±~^*_|§©№…¿¡½¼¾²³"
# What makes the rules of numbers, dates, units and names look.
_WRITTEN = """
    10:30 15h30 9.30 3/4 12/05/2024 2024-05-06 1.234,56 1,234.56 10-15 5% € $ km/h kg XIV IVe 1er 2ª
    3.º a.m. etc. www. http:// @ .com &amp; [pause] [laughter] ½ x² v1.2.3 A4 MP3 USB '99 1'5 48'30"
    mil millones 1 2 21 0 007 1e9 -5 = 🙂 👍🏽
"""
FRAGMENTS = (
    *_WRITTEN.split(),
    *("1 000 000", "20 °C", "R$ 5", "nº ", "n° ", "p. m.", "Dr. ", "Sr. ", "M. ", "EE. UU."),
    *("(555) 123-4567", "+34 600", "de ", "el ", "le ", "il ", "o ", "the ", "and "),
    *("\u200b", "\u00a0", "\u0301", "\n", "\n\n"),
)


def texts(count: int, seed: int) -> Iterator[tuple[str, str]]:
    """Languages and strings: letters of one to three scripts, digits, signs and fragments."""
    draw = random.Random(seed)
    languages = list(LANGUAGES)
    for _ in range(count):
        letters = "".join(draw.sample(list(SCRIPTS.values()), draw.choice((1, 1, 2, 3))))
        kinds = draw.choices((letters, DIGITS, SIGNS, " "), (6, 3, 2, 2), k=draw.randint(1, 40))
        parts = [draw.choice(kind) for kind in kinds]
        for _ in range(draw.choice((0, 0, 1, 3, 6))):
            parts.insert(draw.randrange(len(parts) + 1), draw.choice(FRAGMENTS))
        yield draw.choice(languages), "".join(parts)


def faults(text: str, language: str, tokenizer: Tokenizer) -> list[str]:
    """What is wrong with the way a text is read; nothing if all is well."""
    try:
        segments = _segments(text, language, tokenizer)
    except ValueError as error:
        told = str(error)
        if PAUSE_MARK.search(text) and "is no pause" in told:
            return []
        return [f"refused: {told}"] if any(map(_is_spoken, _SILENT.sub("", text))) else []
    except Exception as error:  # whatever it may be, it is a fault
        return [f"{type(error).__name__}: {error}"]
    return [f"{text[i]!r} at {i} is lost" for i in _lost(text, segments)]


def _segments(text: str, language: str, tokenizer: Tokenizer) -> Sequence[Segment]:
    segments = prepare(text, language)
    if language not in tokenizer.languages or language in ("zh", "ja"):  # which need packages
        return segments
    found = speakable(segments, lambda character, own: tokenizer.reads(character, own or language))
    for segment in found:
        if segment.text:
            tokenizer.encode(segment.text, language)
    return found


def _lost(text: str, segments: Sequence[Segment]) -> Iterator[int]:
    """Where letters and numbers stand that are neither spoken nor named as unspoken."""
    spoken = bytearray(len(text))
    for mark in _SILENT.finditer(text):
        spoken[mark.start() : mark.end()] = bytes([1]) * len(mark[0])
    for segment in segments:
        found = segment.text
        for character, start, end in zip(found, found.starts, found.ends, strict=True):
            if _is_spoken(character):
                spoken[start:end] = bytes([1]) * (end - start)
    named = Counter(c for segment in segments for grapheme in segment.unspoken for c in grapheme)
    for i, character in enumerate(text):
        if not spoken[i] and _is_spoken(character):
            if not named[character]:
                yield i
            named[character] -= 1


def _is_spoken(character: str) -> bool:
    return category(character)[0] in "LN"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tokenizer", type=Path, default=EMBEDDED)
    options = parser.parse_args()
    tokenizer = Tokenizer(options.tokenizer, LANGUAGES, multilingual=True)
    wrong = 0
    for language, text in texts(options.count, options.seed):
        for fault in faults(text, language, tokenizer):
            wrong += 1
            print(f"{language} {text!r}: {fault}")
    print(f"{options.count} texts, {wrong} faults")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
