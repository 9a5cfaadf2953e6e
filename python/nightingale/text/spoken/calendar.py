"""Rules for dates and times of day."""

import re

from .engine import Rules
from .language import DASH, SPACES, Language
from .tables import either, kept_stop

_ISO = (
    r"(?<![\w-])(?P<year>[0-9]{4})(?P<separator>[-/])(?P<month>[0-9]{1,2})(?P=separator)"
    r"(?P<day>[0-9]{1,2})"
    r"(?:(?:T|,?\s)(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})(?::[0-9]{2}(?:[.,][0-9]+)?)?"
    r"(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?(?![0-9A-Za-z/-])"
)
_NUMERIC = (
    r"(?<![0-9A-Za-z./-])(?P<first>[0-9]{1,2})(?P<separator>[/.-])\s?(?P<second>[0-9]{1,2})"
    r"(?P=separator)\s?(?P<year>[0-9]{4}|[0-9]{2}(?<=/..))(?![0-9A-Za-z/-]|\.[0-9])"
)


def date_rules(language: Language) -> Rules:
    """Dates in digits, and those with the name of a month."""

    def iso(match: re.Match[str]) -> str:
        words = _date(language, int(match["day"]), int(match["month"]), int(match["year"]))
        if words is None or match["hour"] is None:
            return words or match[0]
        return f"{words}, {language.clock(language, int(match['hour']), int(match['minute']))}"

    def numeric(match: re.Match[str]) -> str:
        first, second = int(match["first"]), int(match["second"])
        day, month = (first, second) if language.day_first or first > 12 else (second, first)
        written = match["year"]
        century = 0 if len(written) == 4 else 2000 if written < "50" else 1900
        return _date(language, day, month, century + int(written)) or match[0]

    def short(match: re.Match[str]) -> str:
        return _date(language, int(match["day"]), int(match["month"]), None) or match[0]

    rules: Rules = {
        _ISO: iso,
        _NUMERIC: numeric,
        # Without a year it could be a fraction; a month with a zero before it is none.
        r"(?<![0-9A-Za-z./-])(?P<day>0?[1-9]|[12][0-9]|3[01])/(?P<month>0[1-9])"
        r"(?![0-9A-Za-z/])": short,
    }
    return rules | (_named_month_rules(language) if language.joint else {})


def _date(language: Language, day: int, month: int, year: int | None) -> str | None:
    """None if there is no such month or day."""
    if 1 <= month <= 12 and 1 <= day <= 31:
        return language.date(language, day, month, year)
    return None


def _named_month_rules(language: Language) -> Rules:
    """ "1er janvier", "12 mar. 2024", "12 de mayo de 2024"."""
    numbers = {name.lower(): i for i, name in enumerate(language.month_names, 1)}
    names = f"(?:(?P<full>{either(numbers)})"
    if language.month_forms:
        names += rf"|(?P<short>{either(language.month_forms)})\b\.?"
    names += ")"
    of = language.patterns.get("date_link", "")
    link = rf"(?:{of}\s)?" if of else ""
    year = rf"(?:,?\s{link}(?P<year>[12][0-9]{{3}})(?![\w]|[.,][0-9]|-[0-9]))?"

    def month_of(match: re.Match[str]) -> int:
        groups = match.groupdict()
        if groups.get("short"):
            return language.month_forms[groups["short"].lower()]
        return numbers[groups["full"].lower()]

    def date(match: re.Match[str]) -> str:
        if not all(1 <= int(day or 1) <= 31 for day in match.group("first", "day")):
            return match[0]
        written = int(match["year"]) if match["year"] else None
        words = language.date(language, int(match["day"]), month_of(match), written)
        if match["first"]:
            first = language.date(language, int(match["first"]), month_of(match), None)
            words = f"{_shared(first, words)} {language.word['to']} {words}"
        return words + kept_stop(match, language.code)

    def month_and_year(match: re.Match[str]) -> str:
        return f"{language.month_names[month_of(match) - 1]} "

    day_end = language.patterns.get("day_end", "")
    rules: Rules = {
        rf"(?<![\w.,:/-])(?:(?P<first>[0-9]{{1,2}}){DASH})?0?(?P<day>[0-9]{{1,2}}){day_end}"
        rf"[{SPACES}]{link}(?i:{names})(?!\w){year}": date,
    }
    if language.month_forms:
        rules[rf"(?i:\b(?P<short>{either(language.month_forms)}))\b\.?\s(?=[12][0-9]{{3}}\b)"] = (
            month_and_year
        )
    return rules


def _shared(first: str, second: str) -> str:
    """The first of two dates without what the second says again."""
    words, others = first.split(" "), second.split(" ")
    while len(words) > 1 and words[-1] in others:
        words.pop()
    return " ".join(words)


def time_rules(language: Language) -> Rules:
    """10:30, 15h30, 15.30 h, and ranges of them; the language knows the marks."""
    hours = language.patterns["hours"]  # after whole hours, a pattern
    halves = "|".join(
        filter(None, (r"(?P<am>[aA]\.?\s?[mM]\b\.?)", r"(?P<pm>[pP]\.?\s?[mM]\b\.?)"))
    )

    def duration(match: re.Match[str]) -> str:
        parts = zip(("h", "min", "s"), match.group("hour", "minute", "second"), strict=True)
        return " ".join(
            language.count(language.unit_nouns[unit], str(int(number)))
            for unit, number in parts
            if number
        )

    def time(match: re.Match[str]) -> str:
        hour, minute = int(match["hour"]), int(match["minute"] or 0)
        if hour > 24 or minute > 59:
            return match[0]
        groups = match.groupdict()
        if groups.get("second"):
            return duration(match)
        words = language.clock(language, hour, minute)
        half = "am" if groups.get("am") else "pm" if groups.get("pm") else ""
        if half and hour <= 12:
            late = half == "pm" and 8 <= hour < 12
            words += f" {language.word['late' if late else half]}"
        return words + kept_stop(match, language.code)

    digits = r"(?P<hour>[0-9]{1,2})"
    rules: Rules = {
        rf"(?<![0-9:])([0-9]{{1,2}}(?::|{hours})[0-9]{{2}})\s?[-–]\s?"
        rf"(?=[0-9]{{1,2}}(?::|{hours})[0-9]{{2}}(?![0-9:]))": rf"\1 {language.word['to']} ",
        rf"(?<![\w:.,]){digits}:(?P<minute>[0-9]{{2}})(?::(?P<second>[0-9]{{2}}))?(?!:?[0-9]|[.,][0-9])"
        rf"(?:\s?(?:{halves}|(?:{hours})(?![\w/])\.?))?": time,
        rf"(?<![\w:.,]){digits}\s?(?:{hours})\s?(?P<minute>[0-9]{{1,2}})\s?(?:min|mn)(?![^\W\d_])\.?"
        r"(?:\s?(?P<second>[0-9]{1,2})\s?(?:seg|sec|s)\b)?": duration,
        rf"(?<![\w:.,]){digits}\s?(?:{hours})\s?(?P<minute>[0-9]{{2}})(?!\w|[.,][0-9])": time,
    }
    if "am" in language.word:
        rules[
            rf"(?<![\w:.,$£€]){digits}(?P<minute>)\s?"
            r"(?:(?P<am>[aA]\.\s?[mM]\.|[aA][mM]\b)|(?P<pm>[pP]\.\s?[mM]\.|[pP][mM]\b))"
        ] = time
    if "dotted_hour" in language.patterns:
        rules[
            rf"{language.patterns['dotted_hour']}{digits}\.(?P<minute>[0-5][0-9])(?!\w|[.,][0-9])"
            rf"(?:\s?(?:{hours})(?![\w/]))?"
        ] = time
    return rules
