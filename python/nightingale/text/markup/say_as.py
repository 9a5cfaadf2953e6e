"""What `say-as` of SSML asks for: numbers, letters, dates and times, read as they are told to."""

import re
from collections.abc import Callable
from datetime import date
from functools import lru_cache

from ...option import shown
from ..spoken import written_out

_LETTER_NAMES = ("es", "fr", "it", "pt")  # languages whose rules know the names of letters
_GROUPED_BY_STOP = ("de", "nl", "da", "no", "sv")  # which read 1999 as a year, 1.999 as a number
_NUMBER = re.compile(r"[-−+]?[0-9]{1,30}(?:[.,][0-9]{1,30})?")
_WHOLE = re.compile(r"[0-9]{1,6}")
_TIME = re.compile(
    r"(?P<hour>[0-9]{1,2}):(?P<rest>[0-5][0-9](?::[0-5][0-9])?)\s*(?:(?P<half>[aApP])\.?[mM]\.?)?"
)
_DATE_FORMATS = ("dmy", "mdy", "ymd")


def say_as(text: str, kind: str, format: str, language: str) -> str:
    """The words for a text; a ValueError where it is not of this kind.

    kind: the attribute `interpret-as`; format: the attribute of that name, of a date.
    """
    if kind not in _KINDS:
        raise ValueError(f"interpret-as={shown(kind)} is not one of {', '.join(_KINDS)}")
    text = " ".join(text.split())
    if not text:
        raise ValueError("<say-as> has no text")
    if format and kind not in ("date", "time"):
        raise ValueError(f"interpret-as={kind!r} has no format")
    return _KINDS[kind](text, format, language)


def _characters(text: str, _: str, language: str) -> str:
    names = (_character(character, language) for character in text)
    return " ".join(name for name in names if name)


@lru_cache(maxsize=4096)
def _character(character: str, language: str) -> str:
    """The name of a letter or digit; a sign that the language has no word for is passed over."""
    upper = character.upper()
    if "A" <= upper <= "Z" and language in _LETTER_NAMES:
        twice = written_out(f"{upper}.{upper}.", language).rstrip(".").split()
        return " ".join(twice[: len(twice) // 2])
    if character.isalpha():
        return upper
    words = str(written_out(character, language)).strip()
    return words if any(map(str.isalnum, words)) else ""


def _cardinal(text: str, _: str, language: str) -> str:
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{shown(text)} is not a number of at most 30 digits")
    sign, digits = (text[0], text[1:]) if text[0] in "-−+" else ("", text)
    if digits.isdigit():
        digits = digits.lstrip("0") or "0"
        if language == "en":
            digits = f"{int(digits):,}"
        elif language in _GROUPED_BY_STOP:
            digits = f"{int(digits):,}".replace(",", ".")
    return str(written_out(sign.replace("+", "") + digits, language))


def _ordinal(text: str, _: str, language: str) -> str:
    number = re.sub(r"(?<=[0-9])\D{1,3}\Z", "", text)
    if not _WHOLE.fullmatch(number):
        raise ValueError(f"{shown(text)} is not a whole number of at most six digits")
    value = int(number)
    if language == "en":
        return str(written_out(f"{value}{_english_ending(value)}", language))
    if language == "fr":
        return str(written_out(f"{value}{'er' if value == 1 else 'e'}", language))
    if language in ("es", "it", "pt"):
        return str(written_out(f"{value}º", language))
    raise ValueError(f"there are no ordinals for the language {language!r}; write them in words")


def _english_ending(number: int) -> str:
    if number % 100 in (11, 12, 13):
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


def _digits(text: str, _: str, language: str) -> str:
    if not re.fullmatch(r"[0-9 .,-]*[0-9][0-9 .,-]*", text):
        raise ValueError(f"{shown(text)} has characters that are not digits")
    return " ".join(_character(digit, language) for digit in text if digit.isdigit())


def _telephone(text: str, _: str, language: str) -> str:
    """Digit by digit, with a comma between the groups."""
    if not re.fullmatch(r"\+?[0-9 ./()-]*[0-9][0-9 ./()-]*", text):
        raise ValueError(f"{shown(text)} is not a telephone number")
    groups = [_digits(group, "", language) for group in re.findall("[0-9]+", text)]
    plus = str(written_out("+1", language)).split()
    sign = [plus[0]] if text.startswith("+") and len(plus) == 2 else []
    return " ".join([*sign, ", ".join(groups)])


def _date(text: str, format: str, language: str) -> str:
    if not format:
        return str(written_out(text, language))
    if format not in _DATE_FORMATS:
        raise ValueError(
            f"format={shown(format)} of a date is not one of {', '.join(_DATE_FORMATS)}"
        )
    numbers = dict(zip(format, re.findall("[0-9]+", text), strict=False))
    if not re.fullmatch(r"[0-9]+([-/. ]+[0-9]+){2}", text) or len(numbers["y"]) != 4:
        raise ValueError(f"{shown(text)} is not a date with day, month and a year of four digits")
    try:
        day = date(int(numbers["y"]), int(numbers["m"]), int(numbers["d"]))
    except ValueError as error:
        raise ValueError(f"{shown(text)} is not a date: {error}") from None
    return str(written_out(day.isoformat(), language))


def _time(text: str, format: str, language: str) -> str:
    if format not in ("", "hms12", "hms24"):
        raise ValueError(f"format={shown(format)} of a time is not one of hms12, hms24")
    found = _TIME.fullmatch(text)
    hour = int(found["hour"]) if found else 24
    if found is None or hour > (12 if found["half"] else 23):
        raise ValueError(f"{shown(text)} is not a time such as 10:30 or 10:30:15")
    if found["half"] and language != "en":
        hour = hour % 12 + (12 if found["half"] in "pP" else 0)
        text = f"{hour}:{found['rest']}"
    return str(written_out(text, language))


_KINDS: dict[str, Callable[[str, str, str], str]] = {
    "characters": _characters,
    "spell-out": _characters,
    "cardinal": _cardinal,
    "number": _cardinal,
    "ordinal": _ordinal,
    "digits": _digits,
    "telephone": _telephone,
    "date": _date,
    "time": _time,
}
