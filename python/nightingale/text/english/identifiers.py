"""Numbers that are names: versions, addresses, telephone numbers, models."""

from __future__ import annotations

import re

from .acronyms import is_spelled, spelled
from .numbers import code, digits, in_words
from .rules import Rule, rule


def _version(match: re.Match[str]) -> str:
    return f"version {_dotted(match[1])}"


def _dotted(numeral: str) -> str:
    return " point ".join(map(in_words, numeral.split(".")))


def _several_stops(match: re.Match[str]) -> str:
    parts = match[0].split(".")
    if len(parts) == 4 and all(len(part) <= 3 for part in parts):
        return " dot ".join(map(digits, parts))
    return _dotted(match[0])


def _telephone(match: re.Match[str]) -> str:
    groups = re.findall(r"\+?[0-9]+", match[0])
    if not 7 <= sum(len(group.lstrip("+")) for group in groups) <= 15:
        return match[0]
    words = ["eight hundred" if group == "800" else digits(group) for group in groups]
    return ("plus " if groups[0][0] == "+" else "") + ", ".join(words)


def _model(match: re.Match[str]) -> str:
    """ "R T X forty ninety", "M P three", "iPhone fifteen"."""
    words = []
    for run in re.findall(r"[0-9]+|[^\W\d_]+", match[0]):
        if run[0] in "0123456789":
            words.append(code(run))
        elif is_spelled(run) or len(run) <= 2:
            words.append(spelled(run))
        else:
            words.append(run)
    return " ".join(words)


def _scientific(match: re.Match[str]) -> str:
    return f"{in_words(match[1])} times ten to the {in_words(match[2].lstrip('+'))}"


_GAP = "[ .-]"

RULES: tuple[Rule, ...] = (
    rule(
        rf"(?<![\w+])\+[0-9]{{1,3}}(?:{_GAP}?\([0-9]{{1,4}}\))?(?:{_GAP}?[0-9]{{2,5}}){{2,5}}(?!\w)",
        _telephone,
    ),
    rule(rf"(?<![\w+])(?:1{_GAP})?\([0-9]{{3}}\)\s?[0-9]{{3}}{_GAP}[0-9]{{4}}(?!\w)", _telephone),
    rule(rf"(?<![\w.-])(?:1{_GAP})?[0-9]{{3}}([.-])[0-9]{{3}}\1[0-9]{{4}}(?![\w-])", _telephone),
    rule(r"(?<![\w.-])(?:\(0[0-9]{2,4}\)|0[0-9]{2,4}) [0-9]{3,4} [0-9]{3,4}(?!\w)", _telephone),
    rule(r"(?<![\w.,$£€-])[0-9]{3}-[0-9]{4}(?<!00)(?![\w-])", _telephone),
    rule(r"(?<![\w.])([0-9]+(?:\.[0-9]+)?)[eE]([+-]?[0-9]{1,3})(?!\w)", _scientific),
    rule(r"(?<![\w.])v\.?([0-9]+(?:\.[0-9]+)*)(?!\w|\.[0-9])", _version),
    rule(
        r"(?<![\w.])(?![0-9]{1,2}\.[0-9]{1,2}\.[0-9]{4}\b)[0-9]+(?:\.[0-9]+){2,}(?!\w)",
        _several_stops,
    ),
)

MODEL_RULES: tuple[Rule, ...] = (
    rule(r"(?<![\w.])(?=[0-9]*[^\W\d_])(?=[^\W\d_]*[0-9])[^\W_]+(?!\w)", _model),
)
