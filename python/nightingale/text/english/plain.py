"""Ordinals, ranges, powers and what is left of the numbers."""

# ruff: noqa: RUF001

from __future__ import annotations

import re

from .numbers import END, NUMERAL, SIGN, START, digits, in_words, ordinal
from .rules import Rule, rule

_POWERS = {"²": "squared", "³": "cubed"}


def _groups(match: re.Match[str]) -> str:
    return ", ".join(map(digits, match[0].split("-")))


def _list(match: re.Match[str]) -> str:
    if re.fullmatch(NUMERAL, match[0]):
        return match[0]
    return ", ".join(match[0].split(","))


def _power(match: re.Match[str]) -> str:
    return f"{match[1]} to the power of {in_words(match[2])}"


RULES: tuple[Rule, ...] = (
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
