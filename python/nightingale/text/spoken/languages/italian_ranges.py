"""Ranges in Italian: "da dieci a quindici minuti", "dal 1914 al 1918", "circa venti trenta"."""

import re
from collections.abc import Callable

from ..engine import Rules

_NUMERAL = r"(?:[1-9][0-9]{0,2}(?:\.[0-9]{3})+|[0-9]{1,4})(?:,[0-9]{1,2})?"
_TIME = r"(?:[01]?[0-9]|2[0-4])[:.][0-5][0-9]"
_GAME = re.compile(
    r"\b(?i:partit[ae]|gol|vin[cst]\w*|batt\w+|pers[oaei]|perd\w+|pareggi\w*|finale|set|risultato|"
    r"sconfi\w+|punteggio|trasferta)\b|[A-Z]\w+ [0-9]{1,2}-[0-9]{1,2} [A-Z]"
)
_WORD_BEFORE = re.compile(r"([^\W\d_]+)['’]?\s?\Z")
# After these the two numbers stand side by side: "circa venti-trenta persone".
_JUXTAPOSED = frozenset(
    "a al all alla alle allo ai agli con da dal dall dalla dalle di del dell della delle dello dei "
    "degli fra gli i in il le la nel nell nella nelle nello nei negli ogni ore per su sui sul "
    "sulla sulle tra un una circa anni anno stagione".split()
)
_YEARS = re.compile("(?:1[0-9]{3}|20[0-9]{2}) (?:1[0-9]{3}|20[0-9]{2})")
_VOWEL = re.compile("8|11(?![0-9])|11(?=[0-9]{3})")  # "otto", "undici"


def _joined(preposition: str, numeral: str) -> str:
    """ "dal 9", "dall'8"."""
    if _VOWEL.match(numeral.replace(".", "")):
        return f"{preposition}l'{numeral}"
    return f"{preposition} {numeral}"


def calendar_ranges(months: str) -> Rules:
    """Times of day and days of a month."""
    return {
        rf"(?<![\w:.,])(?:(?:[Dd]alle|[Oo]re)\s)?(?P<first>{_TIME})\s?[-–]\s?(?P<last>{_TIME})"
        r"(?![\w:]|[.,][0-9])": r"dalle \g<first> alle \g<last>",
        r"(?<![\w.,/:-])(?P<first>[1-9][0-9]?)\s?[-–]\s?(?P<last>[1-3]?[0-9])"
        rf"(?=\s(?i:{months})\b)": (
            lambda match: (
                f"{_joined('dal', 'primo' if match['first'] == '1' else match['first'])} "
                f"{_joined('al', match['last'])}"
            )
        ),
    }


def number_ranges(in_words: Callable[[str], str]) -> Rules:
    """Other numbers; scores ("tre a uno") and dates in digits stay."""

    def spoken(match: re.Match[str]) -> str:
        first, last = match["first"], match["last"]
        if _value(first) >= _value(last) or re.match("0[0-9]", first):
            return match[0]
        if len(first) < 3 and len(last) < 3 and _GAME.search(match.string):
            return match[0]
        found = _WORD_BEFORE.search(match.string, max(0, match.start() - 24), match.start())
        before = found[1].lower() if found is not None else ""
        years = _YEARS.fullmatch(f"{first} {last}") is not None
        in_a_row = years and int(last) == int(first) + 1
        if in_a_row or (before in _JUXTAPOSED and not (years and before == "circa")):
            return f"{in_words(first)} {last}"
        if years:
            return f"{_joined('dal', first)} {_joined('al', last)}"
        return f"da {first} a {last}"

    return {
        rf"\bdel(?:\s|l['’])(?P<first>{_NUMERAL})(?:-|\s?–\s?)(?P<last>{_NUMERAL})(?=\s?%)": (
            lambda match: f"{_joined('dal', match['first'])} {_joined('al', match['last'])}"
        ),
        rf"(?<![\w.,/:+-])(?<![€$£#])(?<![€$£]\s)(?P<first>{_NUMERAL})(?:-|\s?–\s?)"
        rf"(?P<last>{_NUMERAL})(?![\w/:=-]|[.,][0-9]|\s?=)": spoken,
    }


def _value(numeral: str) -> float:
    return float(numeral.replace(".", "").replace(",", "."))
