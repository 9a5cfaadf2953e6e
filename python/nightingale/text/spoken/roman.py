"""Rules for Roman numerals where they are usual: centuries, rulers, headings, before a noun."""

import re
from collections.abc import Callable

from .engine import Rules

_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
VALID = re.compile(r"M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})")
NEEDED = r"[IVXLC]\b|[IVXLC](?:e|er|ère|re|ème|ᵉ|º|°|ª)"
# A single L or C is a letter: "tipo C".
_ANY = r"(?P<numeral>[IVX]+|[IVXLC]{2,})\b(?![.'’]\w)"
_SEVERAL = r"(?P<numeral>[IVX]{2,}|[IVX]+[LC]?[IVX]+|[LC][LXVI]{2,})\b(?![.'’]\w)"


def value(numeral: str) -> int:
    """Of a valid Roman numeral."""
    values = [_VALUES[letter] for letter in numeral]
    return sum(
        -number if number < following else number
        for number, following in zip(values, [*values[1:], 0], strict=True)
    )


def numeral(
    words: Callable[[int, str], str], before: str = "before"
) -> Callable[[re.Match[str]], str]:
    """What stands before a numeral, if anything, and the words for it; unchanged if invalid."""

    def spoken(match: re.Match[str]) -> str:
        if not VALID.fullmatch(match["numeral"].upper()):
            return match[0]
        lead = match.groupdict().get(before) or ""
        return f"{lead} {words(value(match['numeral'].upper()), lead)}".strip()

    return spoken


def roman_rules(
    *,
    centuries: str,
    rulers: str,
    headings: str,
    counted: str,
    century: Callable[[int, str], str],
    ruler: Callable[[int, str], str],
    heading: Callable[[int, str], str],
    ranked: Callable[[int, str], str],
    alone: Callable[[int, str], str],
    ordinal: Callable[[int, str], str] | None = None,
) -> Rules:
    """Rules from patterns of the words around a numeral, each with how it is read there."""

    def before_noun(match: re.Match[str]) -> str:
        if not VALID.fullmatch(match["numeral"]):
            return match[0]
        return f"{ranked(value(match['numeral']), match['noun'])} {match['noun']}"

    def several(match: re.Match[str]) -> str:
        numerals = re.split("([^IVXLC]+)", match["numerals"])
        if not all(VALID.fullmatch(found) for found in numerals[::2]):
            return match[0]
        numerals[::2] = [century(value(found), match["before"]) for found in numerals[::2]]
        return f"{match['before']} {''.join(numerals)}"

    def with_sign(match: re.Match[str]) -> str:
        if ordinal is None or not VALID.fullmatch(match["numeral"]):
            return match[0]
        return ordinal(value(match["numeral"]), "f" if match["sign"] == "ª" else "m")

    return {
        r"\b(?P<numeral>[IVXLC]+)\.?(?P<sign>[ªº])": with_sign,
        rf"\b(?P<before>(?i:{centuries}))\s(?P<numerals>[IVXLC]+\b(?:(?:\s\w{{1,2}}\s|-|"
        rf"–)[IVXLC]+\b)*)": (several),
        rf"\b(?P<numeral>[IVXLC]+)\s(?P<noun>{counted})\b": before_noun,
        r"\b(?P<numeral>[IVX])(?=\s(?:y|e|et)\s[IVX]{2,}\b)": numeral(alone),
        rf"\b(?P<before>(?i:{headings}))\s{_ANY}": numeral(heading),
        rf"\b(?P<before>{rulers})\s{_ANY}": numeral(ruler),
        rf"\b(?P<before>[^\W\d_a-z]\w+)\s{_SEVERAL}": numeral(ruler),
        rf"(?<![\w.-])(?!(?:XX[LX]?|XL|LL|CC|II?L|MIX|CIVIL|VI)\b){_SEVERAL}": numeral(alone),
    }
