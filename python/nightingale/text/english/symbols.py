"""Symbols that are spoken."""

from .acronyms import spelled
from .rules import Rule, rule, word_table

_PER = word_table(
    "hour hr: hour, day: day, week: week, month mo: month, year yr: year, minute min: minute, "
    "second sec: second, person: person, share: share, unit: unit, mile: mile, gallon: gallon, "
    "barrel: barrel, kg: kilogram, lb: pound"
)

# Those that only a number tells apart from ordinary punctuation, while there are numbers.
BEFORE_NUMBERS: tuple[Rule, ...] = (
    rule(r"\b24/7\b", "twenty-four seven"),
    rule(r"\b9/11\b(?!/)", "nine eleven"),
    rule(r"(?<![\w<])<\s?(?=[-−$£€]?[0-9])", "less than "),
    rule(r"(?<![\w>-])>\s?(?=[-−$£€]?[0-9])", "greater than "),
    rule(r"(?<!\w)(?:#|№)\s?(?=[0-9])", "number "),
    rule(r"(?<!\w)±\s?(?=[0-9])", "plus or minus "),
    rule(r"(?<![\w~])[~≈]\s?(?=[$£€]?[0-9])", "about "),
    rule(r"(?<![\w+])\+(?=[0-9])", "plus "),
    rule(
        rf"(?<=[0-9])(\s?[A-Za-zµ°]{{0,12}})\s?/\s?({'|'.join(_PER)})\b",
        lambda match: f"{match[1]} per {_PER[match[2]]}",
    ),
)

RULES: tuple[Rule, ...] = (
    rule(r"&amp;", "&"),
    rule(r"\bC\+\+", "C plus plus"),
    rule(r"\b([CF])#", r"\1 sharp"),
    rule(r"\band/or\b", "and or"),
    rule(r"\b[Nn]/[Aa]\b", "not applicable"),
    rule(r"(?<!\w)w/o(?!\w)", "without"),
    rule(r"(?<!\w)w/\s?", "with "),
    rule(
        r"\b([A-Z]{1,3})&([A-Z]{1,3})\b",
        lambda match: f"{spelled(match[1])} and {spelled(match[2])}",
    ),
    rule(r"\s*&\s*", " and "),
    rule(r"\s@\s", " at "),
    rule(r"\s\+\s|(?<=\w)\+(?=\w)", " plus "),
    rule(r"(?<=\w)\+(?![\w+])", " plus"),
    rule(r"(?<=[\w)])\s*(?<![=<>!])=(?![=>])\s*(?=[\w(])", " equals "),
    rule(r"(?<=[\w)])\s<\s(?=\w)", " is less than "),
    rule(r"(?<=[\w)])\s>\s(?=\w)", " is greater than "),
    rule(r"\s*≤\s*", " less than or equal to "),
    rule(r"\s*≥\s*", " greater than or equal to "),
    rule(r"\s*≠\s*", " not equal to "),
    rule(r"\s*≈\s*", " approximately "),
    rule(r"\s*±\s*", " plus or minus "),
    rule(r"(?<=\w)\s?×\s?(?=\w)", " times "),
    rule(r"(?<=\w)\s?÷\s?(?=\w)", " divided by "),
    rule(r"(?<=\w)\s*→\s*(?=\w)", " to "),
    rule(r"(?<=\w)\s?%", " percent"),
    rule(r"§§?\s?(?=\w)", "section "),
    rule(r"©\s?(?=\w)", "copyright "),
    rule(r"(?<=\w)/(?=\w)", " slash "),
    rule(r"(?<!\S)/(?=\w)", "slash "),
)
