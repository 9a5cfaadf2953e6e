# ruff: noqa: RUF001 - other scripts are the subject here
"""2,024 seeded texts over 23 languages, from plain sentences to what no one should write.

Only characters that Unicode 13 had are used: what Python does to later ones depends on its version.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

LONG = 10_000


class Case(NamedTuple):
    language: str
    text: str


def span(first: int, last: int) -> str:
    return "".join(map(chr, range(first, last + 1)))


LATIN = span(0x61, 0x7A) * 3 + span(0x41, 0x5A)
HIRAGANA, KATAKANA = span(0x3041, 0x3096), span(0x30A1, 0x30FC)

# Letters words are made of; often used ones stand there more than once.
ALPHABETS = {
    "ar": span(0x621, 0x63A) + span(0x641, 0x64A) * 2 + span(0x64B, 0x652),
    "da": LATIN + "æøåÆØÅé",
    "de": LATIN + "äöüßÄÖÜẞ",
    "el": span(0x3B1, 0x3C9) * 2 + span(0x391, 0x3A1) + "άέήίόύώϊϋΐΰΆΈΏς",
    "en": LATIN + "'",
    "es": LATIN + "áéíóúüñÁÑ",
    "fi": LATIN + "äöåÄÖ",
    "fr": LATIN + "àâçéèêëîïôùûüÿœæÉÀÇŒ'",
    "he": span(0x5D0, 0x5EA) * 3 + span(0x5B0, 0x5BC) + "\u05c1\u05c2",
    "hi": span(0x905, 0x939) * 2 + span(0x93E, 0x94D) + span(0x958, 0x95F) + "\u0902\u0903",
    "it": LATIN + "àèéìòùÈ",
    "ja": HIRAGANA * 8 + KATAKANA + span(0x4E00, 0x4FFF) + "日本人東京今私学校行来見食",
    "ko": span(0xAC00, 0xD7A3)[::7] + span(0x3131, 0x3163),
    "ms": LATIN,
    "nl": LATIN + "ëïéèĳĲ",
    "no": LATIN + "æøåÆØÅ",
    "pl": LATIN + "ąćęłńóśźżĄĆŁŻ",
    "pt": LATIN + "ãõâêôáéíóúàçÃÇ",
    "ru": span(0x430, 0x44F) * 2 + span(0x410, 0x42F) + "ёЁ",
    "sv": LATIN + "åäöÅÄÖ",
    "sw": LATIN,
    "tr": LATIN + "çğıİöşüÇĞÖŞÜ",
    "zh": span(0x4E00, 0x5DFF) + span(0x8000, 0x80FF) + "的一是不了人我在有他这中大来上国",
}
LANGUAGES = tuple(ALPHABETS)
COUNT = 88 * len(LANGUAGES)
GOLDEN = range(0, COUNT, 7)  # cases kept with the reference's ids
ENGLISH_GOLDEN = range(0, COUNT, 28)  # those of the English model
UNSPACED = ("ja", "zh")

PHRASES = {
    "ar": ("كيف حالك", "مرحبا بالعالم"),
    "el": ("Καλημέρα κόσμε", "Τι κάνεις;"),
    "he": ("שלום עולם", "מה שלומך"),
    "hi": ("नमस्ते दुनिया", "आप कैसे हैं"),
    "ja": (
        "今日は東京へ行きます",
        "母は花が好きです",
        "部屋へ入る",
        "コンピューターが壊れた",
        "ﾊﾝｶｸｶﾅ",
        "々〆ヶ月",
        "葛\U000e0100飾区",
    ),
    "ko": ("안녕하세요", "반갑습니다", "ㅋㅋㅋ", "값없이"),
    "ru": ("Привет, мир", "ёлки-палки", "Москва и Оканск"),
    "zh": ("你好世界", "我爱北京天安门", "漢字與汉字", "㐀𠀀龍", "他说：“来！”"),
}

ENDS = (".", "!", "?", ",", "-", "…", "...", "。", "？", "！", "、", "，", "؟", "।", ";", ":", "")
BETWEEN = (" ", " ", " ", " ", ", ", "; ", ": ", " - ", " — ", "–", " , ", "... ", "…", "、", "، ")
DIGITS = (
    "0",
    "42",
    "3.14",
    "1,000,000",
    "10:30",
    "2026-11-15",
    "½",
    "²",
    "٣٤٥",
    "१२३",
    "１２３",
    "五",
)
QUOTES = (
    "“{}”",
    "‘{}’",
    '"{}"',
    "'{}'",
    "«{}»",
    "„{}“",
    "「{}」",
    "『{}』",
    "({})",
    "[{}]",
    "<{}>",
)
TOKENS = (
    "[START]",
    "[STOP]",
    "[UNK]",
    "[SPACE]",
    "[space]",
    "[en]",
    "[ZH]",
    "[cj_a]",
    "[cj_.]",
    "[laughter]",
    "[UH]",
    "[[en]",
    "[pause 500ms]",
    "[]",
)
EMOJI = (
    "😀",
    "👍🏽",
    "👩‍👩‍👧‍👦",
    "🏳️‍🌈",
    "❤️",
    "☂",
    "🇫🇷",
    "1️⃣",
    "©",
    "™",
)
CONTROLS = ("\x00", "\x01", "\x07", "\x08", "\x1b[31m", "\x7f", "\x80", "\x9f", "\u00ad", "\ufffd")
WHITE = (
    *("\t", "\n", "\r\n", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x1f", "\x85", "\xa0"),
    *("\u1680", "\u2000", "\u2003", "\u2009", "\u200a", "\u2028", "\u2029", "\u202f", "\u205f"),
    *("\u3000", "   "),
)
INVISIBLE = (
    "\u200b",
    "\u200c",
    "\u200d",
    "\u200e",
    "\u200f",
    "\u202a",
    "\u202e",
    "\u2066",
    "\ufeff",
)
COMBINING = (
    "\u0301",
    "\u0308",
    "\u0323\u0307",
    "\u0307\u0323",
    "\u0345",
    "\u20dd",
    "\u3099",
    "\u309a",
)
FORMS = (
    *("ＡＢＣ", "ａｂｃ", "！？，。", "ﬁ", "ﬀ", "ĳ", "ǆ", "ŉ", "①", "㎏", "㍿", "Ⅷ", "ℵ", "µ", "Ω"),
    *("ﾊﾟ", "가", "각", "豈", "⼀", "ﷺ", "ﻻ", "´", "¨", "¸", "˘", "K", "Å"),
    *("ß", "ẞ", "ſ", "ΐ", "ǰ", "İ", "ı", "Σ", "ς"),
)
JUNK = (*TOKENS, *EMOJI, *CONTROLS, *WHITE, *INVISIBLE, *COMBINING, *FORMS, *DIGITS, *ENDS)


def pick(draws: Random, options: Sequence[str]) -> str:
    # Of Random's methods, this is the one whose numbers stay the same in every version.
    return options[int(draws.random() * len(options))]


def whole(draws: Random, low: int, high: int) -> int:
    """A whole number of [low, high)."""
    return low + int(draws.random() * (high - low))


def word(draws: Random, language: str) -> str:
    if language in PHRASES and draws.random() < 0.3:
        return pick(draws, PHRASES[language])
    letters = ALPHABETS[language]
    return "".join(pick(draws, letters) for _ in range(whole(draws, 1, 9)))


def sentence(draws: Random, language: str, words: int = 0) -> str:
    """Words of one language with punctuation between and after them."""
    parts = [word(draws, language)]
    for _ in range(words or whole(draws, 0, 12)):
        unspaced = language in UNSPACED and draws.random() < 0.8
        parts += ["" if unspaced else pick(draws, BETWEEN), word(draws, language)]
    return "".join(parts) + pick(draws, ENDS)


def quoted(draws: Random, language: str) -> str:
    return pick(draws, QUOTES).format(sentence(draws, language)) + sentence(draws, language)


def numbered(draws: Random, language: str) -> str:
    parts = [pick(draws, (word(draws, language), pick(draws, DIGITS))) for _ in range(8)]
    return " ".join(parts)


def mixed(draws: Random, language: str) -> str:
    """Words of several scripts."""
    others = [pick(draws, LANGUAGES) for _ in range(whole(draws, 2, 8))]
    return " ".join(word(draws, each) for each in [language, *others])


def littered(draws: Random, language: str) -> str:
    """A sentence with things dropped into it, within words too."""
    text = sentence(draws, language)
    for _ in range(whole(draws, 1, 8)):
        at = whole(draws, 0, len(text) + 1)
        text = text[:at] + pick(draws, JUNK) + text[at:]
    return text


def junk(draws: Random, language: str) -> str:
    """Nothing but things that are dropped into others."""
    return "".join(pick(draws, JUNK) for _ in range(whole(draws, 1, 20)))


def stacked(draws: Random, language: str) -> str:
    """Letters under heaps of combining marks."""
    text = word(draws, language)
    return "".join(
        letter + "".join(pick(draws, COMBINING) for _ in range(whole(draws, 0, 6)))
        for letter in text
    )


def single(draws: Random, language: str) -> str:
    return pick(draws, (pick(draws, ALPHABETS[language]), pick(draws, JUNK)[:1]))


KINDS: tuple[Callable[[Random, str], str], ...] = (
    sentence,
    quoted,
    numbered,
    mixed,
    littered,
    littered,
    junk,
    stacked,
    single,
)


def long_text(draws: Random, language: str) -> str:
    text = ""
    while len(text) < LONG:
        text += sentence(draws, language, 30) + " "
    return text[:LONG]


# Texts with the language's own words, w and v, put in; every language gets every one of them.
CORNERS = (
    "",
    " ",
    "\t\u3000\n",
    ".",
    "…",
    "-",
    "w",
    "w.",
    "w。",
    "´w",
    "¨w¨ ¨",
    "\u0301w",
    "  w\t\nv\u00a0\u2003\u3000w  ",
    "w - v — w – v: w; v...w ,v …",
    "“w” ‘v’ «w» „v“",
    "[START]w[STOP] [SPACE][UNK][fr]v[cj_a][laughter]",
    "w 👩‍👩‍👧‍👦 v ❤️ 🇫🇷",
    "ＡＢＣ１２３！？，。 w",
    "\u200fw\u200e \u202ev\u202c \u2066w\u2069\ufeff",
    "\x00w\x01\x07\x1b\x7f\x85v\u200b\u2028w",
    "ﬁ ﬀ ĳ ½ ™ ① ㎏ ㍿ w",
    "ßw ŉ ǰ ΐ İ ı ſ K Å ẞ",
    "각\ud7a4\ud7af 각 w",
)


def corner(text: str, draws: Random, language: str) -> str:
    words = {"w": word(draws, language), "v": word(draws, language)}
    return "".join(words.get(character, character) for character in text)


def text_case(index: int) -> Case:
    """Corners by language first, then a long text of each, then the kinds in turn."""
    block, place = divmod(index, len(LANGUAGES))
    language = LANGUAGES[place]
    draws = Random(f"text case {index}")
    if block < len(CORNERS):
        text = corner(CORNERS[block], draws, language)
    elif block == len(CORNERS):
        text = long_text(draws, language)
    else:
        text = KINDS[block % len(KINDS)](draws, language)
    return Case(language, text)


def text_cases() -> list[Case]:
    return [text_case(index) for index in range(COUNT)]
