"""English text normalization: numbers, dates, money and abbreviations become words.

A small module of our own: num2words and inflect turn a number into words, but what has to be found
in running text (dates, times, amounts, units, ranges, acronyms) they leave to the caller.
"""

import re

from . import abbreviations, calendar, identifiers, numbers, quantities, symbols

__all__ = ["expand"]

# The rules in their order, each set with what a text must hold for any of them to apply.
_NUMBER = "[0-9¼-¾⅐-⅞²³]"
_STAGES = [
    (re.compile(needed), [(re.compile(pattern), spoken) for pattern, spoken in rules.items()])
    for needed, rules in (
        (r"[@#]|\.\w|://", identifiers.WEB_RULES),
        (_NUMBER, identifiers.RULES | symbols.BEFORE_NUMBERS | calendar.RULES),
        ("[A-Z.]|etc|vs|aka", abbreviations.RULES),
        (_NUMBER, quantities.MONEY_RULES | calendar.DECADE_RULES | quantities.UNIT_RULES),
        (r"[IVXLC]\b", numbers.ROMAN_RULES),
        (_NUMBER, calendar.YEAR_RULES | numbers.RULES | identifiers.MODEL_RULES),
        ("[&@#+=<>≤≥≠≈±×÷→%§©/]", symbols.RULES),
    )
]
_MOST_ROUNDS = 8
# [pause 500ms], [laughter]: not text.
_TAG = re.compile(r"(\[\s*[Pp][Aa][Uu][Ss][Ee](?![a-zA-Z_])[^\[\]]*\]|\[[A-Za-z][A-Za-z _-]*\])")


def expand(text: str) -> str:
    """Replaces what is not spoken as it is written with words; other text is unchanged."""
    parts = _TAG.split(text)
    parts[::2] = map(_written_out, parts[::2])
    return "".join(parts)


def _written_out(text: str) -> str:
    # What one rule writes out can bare something to another: until nothing changes, so that doing
    # it twice is doing it once.
    for _ in range(_MOST_ROUNDS):
        before = text
        for needed, rules in _STAGES:
            if needed.search(text):
                for pattern, spoken in rules:
                    text = pattern.sub(spoken, text)
        text = abbreviations.spell_acronyms(text)
        if text == before:
            break
    return text
