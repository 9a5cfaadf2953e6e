"""What holds for the segments of any text, over generated ones in many scripts."""

# ruff: noqa: RUF001

from __future__ import annotations

import random
import re
import unicodedata
from collections.abc import Callable
from itertools import pairwise

import pytest

from nightingale.text import prepare
from nightingale.text.characters import graphemes, speaking_time
from nightingale.text.english import expand
from nightingale.text.sentences import split_sentences

from .test_text_segments import squeezed, texts_of, written

# share: one of so many cases is tried.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.parametrize("share", [4, pytest.param(1, marks=pytest.mark.nightly, id="all")]),
]

SCRIPTS = {
    "en": "The quick brown fox can't jump over 3.14 lazy dogs at example.com or 10:30 Dr. U.S. I",
    "de": "Am 3. Mai aß Herr Müller z. B. Äpfel während größere Straßenbahnen fuhren usw.",
    "fr": "L'été où Mme Noël a mangé des crêpes à l'hôtel « Chez M. Hulot » etc.",
    "ru": "Быстрая лиса прыгает через ленивую собаку в 1999 г. на ул. Ленина и т. д.",
    "el": "Η γρήγορη αλεπού πηδά πάνω από τον κ. Νίκο π.χ. σήμερα",
    "tr": "İyi günler 19. yüzyılda Iğdır'da çok güzel kuşlar vardı vb.",
    "ar": "السلام عليكم ورحمة الله د. أحمد يقرأ ١٢٣ كتابا",
    "he": "שלום עולם ד״ר כהן קרא א. ב. יהושע בְּרֵאשִׁית",
    "hi": "नमस्ते डॉ. शर्मा क्षत्रिय किताब पढ़ते हैं १२३",
    "zh": "今天 天气很好 我们去公园 价格是3.14元 他说 然后走了",
    "ja": "こんにちは 世界です カタカナー きゃっと 漢字と仮名 ﾊﾟｰﾄ",
    "ko": "안녕하세요 세계 여러분 \u1112\u1161\u11ab\u1100\u1173\u11af 값은 3.5원",
    "th": "สวัสดีชาวโลก น้ำใจ",
    "xx": "e\u0301a\u0308 a👨‍👩‍👧b x🇩🇪y 👍🏽ok 𝒳𝒴 ①② % & €5 snake_case",
}
PUNCTUATION = {
    "zh": ["。", "，", "、", "！？", "……", "」", "「", "；", "：", "”", "（"],
    "ja": ["。", "、", "！？", "…", "」", "「", "）", "』"],
    "ar": [".", "،", "؛", "؟", "!", "...", "۔"],
    "hi": ["।", "॥", ",", "?", "!", "..."],
    "he": [".", ",", "?", "׃", "־", '"'],
    "el": [".", ",", ";", "·", "!", "…"],
}
LATIN = [".", ".", ",", ",", ";", ":", "!", "?", "?!", "...", "…", " —", " -", '."', ")", "»", "“"]


def generated(count: int, breaks: bool) -> list[tuple[str, str]]:
    """Texts by language: words, punctuation after them, pauses, and line breaks if asked."""
    draw = random.Random(4)
    found = []
    for i in range(count):
        language = list(SCRIPTS)[i % len(SCRIPTS)]
        words = SCRIPTS[language].split()
        marks = PUNCTUATION.get(language, LATIN)
        parts = []
        for _ in range(draw.choice((1, 3, 10, 40, 150))):
            parts.append(draw.choice(words))
            if draw.random() < 0.3:
                parts.append(draw.choice(marks))
            if draw.random() < 0.03:
                parts.append(draw.choice((" [pause] ", "[PAUSE 1s]", " [pause 20ms]")))
            space = "" if language in ("zh", "ja", "th") and draw.random() < 0.8 else " "
            if breaks and draw.random() < 0.1:
                space = draw.choice(("\n", "\n\n", "\n- ", "\n1. ", "\r\n", "\n— ", "\n* * *\n"))
            parts.append(space)
        found.append((language, "".join(parts)))
    return found


def settings_of(i: int) -> dict[str, object]:
    count: Callable[[str], int] | None = (lambda text: 2 + len(text)) if i % 3 == 0 else None
    return {"limit": (None, 2.0, 6.0, 30.0)[i % 4], "count": count, "max_tokens": 40}


def without_pauses(text: str) -> str:
    return re.sub(r"(?i)\[pause[^]]*\]", " ", text)


def spoken(text: str) -> str:
    return "".join(
        character
        for character in text
        if unicodedata.category(character)[0] in "LMN" or character in "%&€@"
    )


def test_no_character_is_lost_or_reordered_or_doubled(share: int) -> None:
    for i, (language, text) in enumerate(generated(2800 // share, breaks=False)):
        segments = written(text, language, **settings_of(i))
        assert squeezed("".join(texts_of(segments))) == squeezed(without_pauses(text)), text
        assert sum(segment.pause for segment in segments) == pytest.approx(
            0.5 * text.count("[pause] ") + text.count("[PAUSE 1s]") + 0.02 * text.count("20ms]")
        )
        assert segments == written(text, language, **settings_of(i))


def test_no_spoken_character_is_lost_where_lines_break(share: int) -> None:
    for i, (language, text) in enumerate(generated(2800 // share, breaks=True)):
        segments = written(text, language, **settings_of(i))
        assert spoken("".join(texts_of(segments))) == spoken(without_pauses(text)), text


def test_every_segment_has_something_to_say_and_fits(share: int) -> None:
    for i, (language, text) in enumerate(generated(2100 // share, breaks=True)):
        settings = settings_of(i)
        for segment in written(text, language, **settings):
            if not segment.text:
                assert segment.pause
                continue
            assert spoken(segment.text) or not spoken(without_pauses(text)), text
            assert segment.ends in ("sentence", "clause", "cut", "paragraph")
            single = len(graphemes(segment.text)) == 1
            assert single or speaking_time(segment.text) <= (settings["limit"] or 15), text
            if settings["count"]:
                assert single or 2 + len(segment.text) <= 40, text


def test_no_segment_begins_or_ends_inside_a_grapheme(share: int) -> None:
    for i, (language, text) in enumerate(generated(1400 // share, breaks=False)):
        texts = texts_of(written(text, language, limit=0.5 + i % 3))
        for before, after in pairwise(texts):
            if before and after:
                assert graphemes(before + after)[: len(graphemes(before))] == graphemes(before)


def test_expanded_segments_hold_the_expanded_sentences(share: int) -> None:
    for i, (language, text) in enumerate(generated(700 // share, breaks=False)):
        if language == "en":
            marked = [expand(s) for part in split_pauses(text) for s in split_sentences(part)]
            segments = prepare(text, limit=settings_of(i)["limit"])  # type: ignore[arg-type]
            assert squeezed("".join(texts_of(segments))) == squeezed("".join(marked)), text


def split_pauses(text: str) -> list[str]:
    return re.split(r"(?i)\[pause[^]]*\]", text)
