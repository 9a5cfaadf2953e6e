"""Fractions, powers, ordinals, ranges and all other numerals."""

# ruff: noqa: RUF001

from __future__ import annotations

import re

from .numbers import END, NUMERAL, SIGN, START, cardinal, digits, in_words, ordinal, plural
from .rules import Rule, rule

_POWERS = {"²": "squared", "³": "cubed"}
_VULGAR = {
    "½": (1, 2),
    "⅓": (1, 3),
    "⅔": (2, 3),
    "¼": (1, 4),
    "¾": (3, 4),
    "⅕": (1, 5),
    "⅖": (2, 5),
    "⅗": (3, 5),
    "⅘": (4, 5),
    "⅙": (1, 6),
    "⅛": (1, 8),
    "⅜": (3, 8),
    "⅝": (5, 8),
    "⅞": (7, 8),
    "⅒": (1, 10),
}
FRACTION = (
    rf"{START}(?:(?:(?P<whole>[0-9]+)\s)?(?P<over>[0-9]{{1,3}})/(?P<under>[0-9]{{1,3}})(?![0-9/])"
    rf"|(?P<before>[0-9]+)?\s?(?P<vulgar>[{''.join(_VULGAR)}]))"
)


def fraction_in_words(match: re.Match[str]) -> str:
    """What `FRACTION` found, as a fraction where it can be one: "two and a half"."""
    if match["vulgar"]:
        return _fraction(*_VULGAR[match["vulgar"]], match["before"])
    whole, over, under = match["whole"], int(match["over"]), int(match["under"])
    if not whole and under in (10, 100) and over <= under:
        return f"{cardinal(over)} out of {cardinal(under)}"
    if 0 < over < under <= 100 or (not whole and 1 < under < 10):
        return _fraction(over, under, whole)
    words = f"{cardinal(over)} over {cardinal(under)}"
    return f"{in_words(whole)} {words}" if whole else words


def _fraction(over: int, under: int, whole: str | None) -> str:
    if under == 2:
        name = "half" if over == 1 else "halves"
    else:
        name = "quarter" if under == 4 else ordinal(under)
        name = name if over == 1 else plural(name)
    if not whole:
        return f"{cardinal(over)} {name}"
    article = "a" if over == 1 and under in (2, 4) else cardinal(over)
    return f"{in_words(whole)} and {article} {name}"


def _groups(match: re.Match[str]) -> str:
    return ", ".join(map(digits, match[0].split("-")))


def _list(match: re.Match[str]) -> str:
    if re.fullmatch(NUMERAL, match[0]):
        return match[0]
    return ", ".join(match[0].split(","))


def _power(match: re.Match[str]) -> str:
    return f"{match[1]} to the power of {in_words(match[2])}"


RULES: tuple[Rule, ...] = (
    rule(rf"{FRACTION}(?!\w|\.[0-9])", fraction_in_words),
    rule(r"([0-9A-Za-z)])\^([-−]?[0-9]+)", _power),
    rule(r"(?<=[\w)])([²³])", lambda match: f" {_POWERS[match[1]]}"),
    rule(
        rf"{START}([0-9]{{1,3}}(?:,[0-9]{{3}}){{1,5}}|[0-9]{{1,18}})(?:st|nd|rd|th)\b",
        lambda match: ordinal(int(match[1].replace(",", ""))),
    ),
    rule(r"(?<![\w.,-])[0-9]+(?:-[0-9]+){2,}(?![\w-])", _groups),
    rule(
        rf"{START}({SIGN}{NUMERAL})(?:-|\s?–\s?)({NUMERAL}){END}(?!-[0-9])",
        lambda match: f"{in_words(match[1])} to {in_words(match[2])}",
    ),
    rule(r"(?<=[0-9])\s[-−]\s(?=[0-9])", " minus "),
    rule(r"(?<![\w:.])([0-9]+):([0-9]+)(?![\w:]|\.[0-9])", r"\1 to \2"),
    rule(r"(?<![0-9,.])[0-9]+(?:,[0-9]+)+(?![0-9,]|\.[0-9])", _list),
    rule(rf"{START}{SIGN}{NUMERAL}{END}", lambda match: in_words(match[0])),
    rule(r"(?<![\w.])\.([0-9]+)(?!\w)", lambda match: f"point {digits(match[1])}"),
)
