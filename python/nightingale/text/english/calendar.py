"""Dates, years and times of day."""

import re

from ..spoken.engine import Rules
from ..spoken.tables import kept_stop
from .numbers import DASH, END, START, cardinal, in_words, ordinal, plural, two_digits, year

MONTHS = (
    "January February March April May June July August September October November December"
).split()
_MONTH_OF = {name[:3]: name for name in MONTHS} | {"Sept": "September"}
_MONTH = "(?:" + "|".join([*MONTHS, *(rf"{short}\b\.?" for short in ("Sept", *_MONTH_OF))]) + ")"
_SUFFIX = "(?:st|nd|rd|th)"
_YEAR = r"(?P<year>[12][0-9]{3})(?![\w]|[.,][0-9]|-[0-9])"


def month_name(written: str) -> str:
    """The month's full name from "Nov", "Nov." or "November"."""
    return _MONTH_OF["Sept" if written.startswith("Sept") else written[:3]]


def _date(year_number: int, month: int, day: int) -> str | None:
    """None if there is no such month or day."""
    if 1 <= month <= 12 and 1 <= day <= 31:
        return f"{MONTHS[month - 1]} {ordinal(day)}, {year(year_number)}"
    return None


def _numeric_date(match: re.Match[str]) -> str:
    """Year first, or month first unless only day first is possible."""
    first, second = int(match["first"]), int(match["second"])
    written = match["year"]
    century = 0 if len(written) == 4 else 2000 if written < "50" else 1900
    day_first = match["separator"] == "." or first > 12
    month, day = (second, first) if day_first else (first, second)
    return _date(century + int(written), month, day) or match[0]


def _iso_date(match: re.Match[str]) -> str:
    words = _date(int(match["year"]), int(match["month"]), int(match["day"]))
    if words is None or match["hour"] is None:
        return words or match[0]
    return f"{words} at {_clock(int(match['hour']), int(match['minute']))}"


def _day_and_month(match: re.Match[str]) -> str:
    """ "May third to fifth", "the third to the fifth of May", with the year where there is one."""
    if not 1 <= int(match["day"]) <= 31:
        return match[0]
    month_first = match.start("month") < match.start("day")
    article = "" if month_first else "the "
    days = " to ".join(article + ordinal(int(day)) for day in match.group("day", "last") if day)
    month = month_name(match["month"])
    words = f"{month} {days}" if month_first else f"{days} of {month}"
    return words + (f", {year(int(match['year']))}" if match["year"] else kept_stop(match))


def _clock(hour: int, minute: int, half: str = "") -> str:
    if half:
        half = f" {half[0].upper()} M"
    if minute:
        return f"{cardinal(hour)} {two_digits(minute)}{half}"
    if half:
        return cardinal(hour) + half
    if hour in (0, 24):
        return "midnight"
    return f"{cardinal(hour)} o'clock" if hour <= 12 else f"{cardinal(hour)} hundred"


def _time(match: re.Match[str]) -> str:
    hour, minute = int(match["hour"]), int(match["minute"] or 0)
    half = match["half"] or ""
    if hour > (12 if half else 24) or minute > 59:
        return match[0]
    words = _clock(hour, minute, half)
    if match["second"]:
        words += f" and {in_words(match['second'].lstrip('0') or '0')} seconds"
    return words + kept_stop(match)


_HALF = r"(?P<half>[ap]m\b|[AP]M\b|[ap]\.\s?m\.?(?!\w)|[AP]\.M\.?(?!\w))"

# Words before a number that make it a year, and those that let it be one.
_DATING = re.compile(
    r"\b(?:in|since|until|till|during|circa|early|late|mid|year|spring|summer|autumn|fall|winter|AD|"
    + "|".join(MONTHS)
    + r"),?[ -]\Z",
    re.IGNORECASE,
)
_PERHAPS_DATING = re.compile(
    r"(?:\b(?:by|from|of|before|after|around|the|and|between|to|copyright)[ -]|[(©]\s?)\Z",
    re.IGNORECASE,
)
_ERA = re.compile(r"\s(?:AD|BC|CE|BCE|B\.C|A\.D)\b")
_COUNTED = re.compile(
    r"\s(?:(?!(?:was|is|has|does|as|its|this|thus|plus|versus|always|perhaps)\b)[a-z]*[^s\W]s|"
    r"people|men|women|children)\b"
)


def _single_year(match: re.Match[str]) -> str:
    """Reads four digits as a year where their size and the words around them suggest one."""
    number, text = int(match["year"]), match.string
    near = (max(0, match.start() - 16), match.start())
    recent, perhaps = number >= 1900, _PERHAPS_DATING.search(text, *near)
    counted = _COUNTED.match(text, match.end())
    if (
        _ERA.match(text, match.end())
        or (_DATING.search(text, *near) and (recent or not counted))
        or (recent and (perhaps or not counted))
        or (number >= 1500 and perhaps and not counted)
    ):
        return year(number)
    return match[0]


def _years(match: re.Match[str]) -> str:
    first, last = match["year"], match["last"]
    if len(last) == 2 and int(last) == (int(first) + 1) % 100:  # a season
        return f"{year(int(first))} {two_digits(int(last))}"
    if match["mark"] == "/":
        return match[0]
    return f"{year(int(first))} to {(cardinal if len(last) == 2 else year)(int(last))}"


def _decade(match: re.Match[str]) -> str:
    century, tens = match["century"] or "", match["tens"]
    if tens == "00":
        return plural(cardinal(int(century)) + " hundred" if century != "20" else "two thousand")
    if tens == "10":
        return f"{cardinal(int(century))} tens" if century else "tens"
    return f"{cardinal(int(century)) + ' ' if century else ''}{plural(cardinal(int(tens)))}"


RULES: Rules = {
    r"(?<![\w./-])(?P<year>[0-9]{4})(?P<separator>[-/.])(?P<month>[0-9]{1,2})(?P=separator)"
    r"(?P<day>[0-9]{1,2})(?![0-9])"
    r"(?:[T ](?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})(?::[0-9]{2}(?:\.[0-9]+)?)?"
    r"(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?(?![\w-])": _iso_date,
    r"(?<![\w./-])(?P<first>[0-9]{1,2})(?P<separator>[/.])(?P<second>[0-9]{1,2})(?P=separator)"
    r"(?P<year>[0-9]{4}|[0-9]{2}(?<=/..))(?![\w/-]|\.[0-9])": _numeric_date,
    rf"\b(?P<month>{_MONTH})\s(?P<day>[0-9]{{1,2}}){_SUFFIX}?"
    rf"(?:{DASH}(?P<last>[0-9]{{1,2}}){_SUFFIX}?)?(?![\w:%]|[.,][0-9])"
    rf"(?:,?\s{_YEAR})?": _day_and_month,
    rf"(?<![\w.,:$£€])(?:[Tt]he\s)?(?P<day>[0-9]{{1,2}}){_SUFFIX}?"
    rf"(?:{DASH}(?P<last>[0-9]{{1,2}}){_SUFFIX}?)?(?:\sof)?\s(?P<month>{_MONTH})(?!\w)"
    rf"(?:,?\s{_YEAR})?": _day_and_month,
    rf"\b(?P<month>{_MONTH})(?:\sof)?,?\s{_YEAR}": lambda match: (
        f"{month_name(match['month'])} {year(int(match['year']))}"
    ),
    # Ranges of times, then times.
    r"([0-9](?:\s?[AaPp]\.?[Mm]\.?)?)\s?[-–]\s?"
    r"(?=[0-9]{1,2}(?::[0-9]{2})?\s?[AaPp]\.?[Mm]\b)": r"\1 to ",
    r"(?<![0-9:])([0-9]{1,2}:[0-9]{2})\s?[-–]\s?(?=[0-9]{1,2}:[0-9]{2}(?![0-9:]))": r"\1 to ",
    r"(?<![\w:.,])(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2}))?(?!:?[0-9]|[.,][0-9])"
    rf"(?:\s?{_HALF})?": _time,
    rf"(?<![\w:.,$£€])(?P<hour>[0-9]{{1,2}})(?P<minute>)(?P<second>)\s?{_HALF}": _time,
}

DECADE_RULES: Rules = {
    r"(?<![\w.,])(?P<century>1[0-9]|20)(?P<tens>[0-9]0)['’]?s\b": _decade,
    r"(?:(?<![\w'’])['’]|(?<=\bthe )|(?<=\bhis )|(?<=\bher )|(?<=\bmy )|(?<=\btheir )|"
    r"(?<=\bearly )|(?<=\blate )|(?<=\bmid[ -]))(?P<century>)(?P<tens>[1-9]0)['’]?s\b": _decade,
    r"(?<![\w.,])(?P<century>)(?P<tens>[2-9]0)['’]?s"
    r"(?= (?:music|rock|pop|fashion|style|film|movie|song|show|hit|kid)s?\b)": _decade,
    r"(?<![\w'’])['’]([0-9]{2})(?![\w'’])": lambda match: two_digits(int(match[1])),
}

YEAR_RULES: Rules = {
    rf"{START}(?P<year>[12][0-9]{{3}})(?:{DASH}|(?P<mark>/))"
    rf"(?P<last>[12][0-9]{{3}}|[0-9]{{2}}){END}(?!-)": _years,
    rf"(?<![$£€¥#+-]){START}(?P<year>1[0-9]{{3}}|20[0-9]{{2}}){END}(?!-[0-9])": _single_year,
}
