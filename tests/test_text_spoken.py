"""Sentences of several languages as written to the words that are said."""

from __future__ import annotations

import random
import re
from importlib import import_module
from pathlib import Path

import pytest

import nightingale
from nightingale.checkpoint import LANGUAGES as LANGUAGES_OF_MODELS
from nightingale.text import prepare
from nightingale.text.spoken import written_out

LANGUAGES = {"es": "spanish", "fr": "french", "it": "italian", "pt": "portuguese"}


def cases(language: str) -> dict[str, list[tuple[str, str]]]:
    """Sentences and what is said, by where they come from."""
    found: dict[str, list[tuple[str, str]]] = {}
    text = (Path(__file__).parent / "spoken" / f"{language}.txt").read_text("utf-8")
    for block in text.strip().split("\n\n"):
        if block.startswith("# "):
            source = found.setdefault(block[2:], [])
        else:
            written, spoken = block.split("\n")
            source.append((written, spoken))
    return found


CASES = {language: cases(language) for language in (*LANGUAGES, "en")}
# By language: at least numbers, decimals, percent, money, dates and times.
BASIC = cases("basic")
ALL = [
    (language, written, spoken)
    for language, sources in CASES.items()
    for pairs in sources.values()
    for written, spoken in pairs
]
ALL += [(language, *pair) for language, pairs in BASIC.items() for pair in pairs]


@pytest.mark.parametrize(("language", "written", "spoken"), ALL)
def test_a_sentence_is_said_in_these_words(language: str, written: str, spoken: str) -> None:
    assert nightingale.normalize(written, language) == spoken


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_table_has_real_sentences_and_is_large_enough(language: str) -> None:
    sources = {name: len(pairs) for name, pairs in CASES[language].items()}
    assert sum(sources.values()) >= 60
    assert sum(sources.values()) - sources["written for this test"] >= 30


def test_english_has_two_hundred_cases_besides_those_of_its_own_tests() -> None:
    assert len(CASES["en"]["written for this test"]) >= 200


def test_every_language_of_the_models_is_written_out() -> None:
    assert CASES.keys() | BASIC.keys() == LANGUAGES_OF_MODELS.keys()
    for language in LANGUAGES_OF_MODELS:
        assert not re.search("[0-9]", written_out("5, 17, 1999 & 3.5%", language))


@pytest.mark.parametrize("language", [*CASES, *BASIC])
def test_what_is_said_stays_as_it_is(language: str) -> None:
    for code, _, spoken in ALL:
        if code == language:
            assert written_out(spoken, language) == spoken


@pytest.mark.parametrize("language", [*CASES, *BASIC])
def test_writing_out_twice_is_writing_out_once(language: str) -> None:
    draw = random.Random(5)
    words = [word for code, written, _ in ALL if code == language for word in written.split()]
    signs = "0123456789.,:-/$€%#'aApPmMhºª°xIVeE +=@&()[]²½\u00a0"
    for i in range(1200 if language in CASES else 200):
        if i % 2:
            text = draw.choice(("", " ")).join(draw.choices(words, k=draw.randint(2, 4)))
        else:
            text = "".join(draw.choices(signs, k=draw.randint(1, 14)))
        once = written_out(text, language)
        assert written_out(once, language) == once, text
        if language != "en":
            assert not re.search("[0-9]", once), text


# By number: words without a noun; with a masculine and with a feminine one where they differ.
NUMBERS = {
    "es": {
        16: "dieciséis",
        21: "veintiuno, veintiún, veintiuna",
        101: "ciento uno, ciento un, ciento una",
        500: "quinientos, quinientos, quinientas",
        21_000: "veintiún mil",
        1_000_000: "un millón",
        31_000_000: "treinta y un millones",
        10**12: "un billón",
    },
    "fr": {
        21: "vingt et un, vingt et un, vingt et une",
        71: "soixante et onze",
        80: "quatre-vingts",
        81: "quatre-vingt-un, quatre-vingt-un, quatre-vingt-une",
        99: "quatre-vingt-dix-neuf",
        200: "deux cents",
        201: "deux cent un, deux cent un, deux cent une",
        80_000: "quatre-vingt mille",
        200_000_000: "deux cents millions",
        10**9: "un milliard",
    },
    "it": {
        1: "uno, un, una",
        23: "ventitré",
        28: "ventotto",
        108: "centotto",
        180: "centottanta",
        1003: "milletré",
        21_000: "ventunomila",
        2_300_000: "due milioni e trecentomila",
    },
    "pt": {
        2: "dois, dois, duas",
        14: "quatorze",
        16: "dezesseis",
        101: "cento e um, cento e um, cento e uma",
        202: "duzentos e dois, duzentos e dois, duzentas e duas",
        1100: "mil e cem",
        1034: "mil e trinta e quatro",
        2_030_000: "dois milhões e trinta mil",
        10**9: "um bilhão",
    },
}


@pytest.mark.parametrize("language", NUMBERS)
def test_numbers_in_words(language: str) -> None:
    numbers = import_module(f"nightingale.text.spoken.languages.{LANGUAGES[language]}").NUMBERS
    for number, words in NUMBERS[language].items():
        forms = words.split(", ")
        expected = forms if len(forms) == 3 else forms * 3
        assert [numbers.spell(number, form) for form in ("", "m", "f")] == expected


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_number_has_its_own_words(language: str) -> None:
    numbers = import_module(f"nightingale.text.spoken.languages.{LANGUAGES[language]}").NUMBERS
    draw = random.Random(6)
    drawn = {*range(10_000), *(draw.randrange(10 ** draw.randint(5, 15)) for _ in range(2000))}
    for form in ("", "m", "f"):
        assert len({numbers.spell(number, form) for number in drawn}) == len(drawn)


@pytest.mark.parametrize("language", LANGUAGES)
def test_long_runs_of_signs_take_no_longer_than_they_are_long(language: str) -> None:
    runs = ("1", "1-", "1 ", "1,", "123 456 ", "1.000", "12/", "A.", "a@", "[a](", "10:", "º1")
    for run in runs:
        assert written_out(run * (8000 // len(run)), language)


def test_segments_hold_what_is_said() -> None:
    assert [
        segment.text for segment in prepare("Tengo 25 años. [pause 1s] A las 10:30.", "es")
    ] == [
        "Tengo veinticinco años.",
        "A las diez y treinta.",
    ]
    assert prepare("Tengo 25 años.", "es", expand=False)[0].text == "Tengo 25 años."


def test_tags_are_not_text() -> None:
    assert written_out("[pause 500ms] 5 [laughter]", "fr") == "[pause 500ms] cinq [laughter]"


@pytest.mark.parametrize(
    ("text", "language", "message"),
    [(5, "es", "text must be a string"), ("5", "xx", "unknown language 'xx'"), ("5", None, "None")],
)
def test_bad_arguments_are_named(text: object, language: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        nightingale.normalize(text, language)  # type: ignore[arg-type]
