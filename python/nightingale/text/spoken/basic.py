"""The stages of languages of which numbers, money, percent, dates and times are written out."""

import re

from .calendar import date_rules
from .engine import Normalizer, Rules
from .language import DASH, Language
from .numbers import ANY_OTHER_DIGIT, DIGIT_RULES, leftover_rules, plain_rules
from .quantities import money_rules, unit_rules


def clock_rules(language: Language) -> Rules:
    """10:30, 9:05:30, and ranges of them."""
    time = r"[0-9]{1,2}:[0-5][0-9]"
    to = f"{language.joint}{language.word['to']}{language.joint}"

    def spoken(match: re.Match[str]) -> str:
        hour, minute = int(match["hour"]), int(match["minute"])
        if hour > 24:
            return match[0]
        words = language.clock(language, hour, minute)
        if match["second"]:
            words += language.joint + language.cardinal(int(match["second"]))
        return words

    mark = language.patterns.get("hours", "(?!)")
    dotted: Rules = {}
    if "dotted_clock" in language.patterns:  # "kl. 8.05", "8.05 uur"
        before, _, after = language.patterns["dotted_clock"].partition("{time}")
        dotted[
            rf"{before}(?P<hour>[0-9]{{1,2}})\.(?P<minute>[0-5][0-9])(?P<second>)"
            rf"(?![0-9]|[.,][0-9]){after}"
        ] = spoken
    return dotted | {
        rf"(?<![0-9:])({time}){DASH}(?={time}(?![0-9:]))": rf"\g<1>{to}",
        rf"{language.start}(?<!:)(?P<hour>[0-9]{{1,2}}):(?P<minute>[0-5][0-9])"
        rf"(?::(?P<second>[0-5][0-9]))?(?!:?[0-9]|[.,][0-9])(?:\s?(?:{mark})(?!\w))?": spoken,
    }


def basic_normalizer(language: Language) -> Normalizer:
    """The rules of a language in their order, each set with what a text must hold."""
    extra = language.extra
    return Normalizer(
        (
            (ANY_OTHER_DIGIT, DIGIT_RULES),
            (r"[0-9]", extra.get("dates", {}) | date_rules(language)),
            (r"[0-9][:.][0-9]", clock_rules(language)),
            ("[0-9]", money_rules(language) | unit_rules(language)),
            ("[0-9]", extra.get("numbers", {}) | plain_rules(language) | leftover_rules(language)),
            *(((".", extra["words"]),) if "words" in extra else ()),
        )
    )
