"""Whole numbers in words, by rules such as those of CLDR's rule-based number format (RBNF).

A rule is "base: words": it spells numbers from its base up to the next rule's. In its words `<<`
stands for the number divided by the rule's divisor, `>>` for the remainder and `==` for the number
itself; a name inside the signs (`<f<`) has it spelled by other rules. What is in brackets is left
out where the remainder is zero, and `_` is a space. The divisor is the highest power of ten in the
base, or what follows a slash ("60/20: soixante->>"). Words with a bar between them are those of one
number after another ("1: one|two|three").
"""

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass

_MARK = re.compile(r"<(\w*)<|>(\w*)>|=(\w*)=")
_OPTIONAL = re.compile(r"\[([^\]]*)\]")


@dataclass(frozen=True)
class _Rule:
    base: int
    divisor: int
    with_rest: str
    without_rest: str


def _parsed(rules: str) -> list[_Rule]:
    found = []
    for entry in filter(None, map(str.strip, rules.split(";"))):
        head, words = entry.split(":", 1)
        written, _, divisor = head.partition("/")
        base = int(written)
        for text in words.strip().split("|"):
            power = 10 ** (len(str(base)) - 1) if base else 1
            spaced = text.strip().replace("_", " ")
            found.append(
                _Rule(
                    base,
                    int(divisor) if divisor else power,
                    _OPTIONAL.sub(r"\1", spaced),
                    _OPTIONAL.sub("", spaced),
                )
            )
            base += 1
    return found


class NumberWords:
    """Spells numbers below `end` by named sets of rules; `main` is the set without a name."""

    def __init__(self, main: str, end: int = 10**15, **others: str) -> None:
        self.end = end
        self._sources = {"": main, **others}
        self._rules: dict[str, tuple[list[int], list[_Rule]]] = {}

    def spell(self, number: int, form: str = "") -> str:
        """In words; a form that has no rules of its own is spelled by the main ones."""
        if form not in self._sources:
            form = ""
        if form not in self._rules:
            rules = _parsed(self._sources[form])
            self._rules[form] = [rule.base for rule in rules], rules
        bases, rules = self._rules[form]
        rule = rules[bisect_right(bases, number) - 1]
        quotient, rest = divmod(number, rule.divisor)

        def spelled(mark: re.Match[str]) -> str:
            sign = mark[0][0]
            value = quotient if sign == "<" else rest if sign == ">" else number
            return self.spell(value, mark[1] or mark[2] or mark[3] or form)

        return _MARK.sub(spelled, rule.with_rest if rest else rule.without_rest)


def by_hundreds(words: Callable[[int, str], str]) -> str:
    """Rules for 200 to 900: those of the full hundred and those of the numbers after it."""
    return "".join(words(100 * i, "") + words(100 * i + 1, ">>") for i in range(2, 10))
