"""What the shared rules have to know of a language."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from .engine import Rules
from .number_words import NumberWords
from .tables import word_table

MOST_DIGITS = 18  # of a number in words
SPACES = " \u00a0\u202f\u2009"
DASH = r"\s?[-–—]\s?"
_MARKS_BETWEEN_GROUPS = re.compile(r"[\s'’]")


@dataclass(frozen=True)
class Noun:
    """A unit or a currency: its forms, singular first, and its grammatical gender."""

    forms: tuple[str, ...]
    gender: str = "m"


def nouns(entries: str) -> dict[str, Noun]:
    """By symbol: "km: kilómetro/kilómetros, h: hora/horas f"; one form stands for all."""
    table = {}
    for symbol, text in word_table(entries).items():
        name, _, gender = text.rpartition(" ")
        if gender not in ("m", "f", "n"):
            name, gender = text, "m"
        table[symbol] = Noun(tuple(name.split("/")), gender)
    return table


def _one_or_many(whole: int, has_decimals: bool) -> int:
    return 0 if whole == 1 and not has_decimals else 1


@dataclass(frozen=True, kw_only=True)
class Language:
    """Words and habits of a language. Number forms: "m", "f", "n" stand before a noun of that
    gender, "" by themselves."""

    code: str
    numbers: NumberWords
    words: str  # "minus: menos, comma: coma, point: punto, ..."
    months: str
    date: Callable[["Language", int, int, int | None], str]  # day, month, year
    clock: Callable[["Language", int, int], str]  # hour, minute
    currencies: str
    hundredths: str = ""
    money: str = "{units} {cents} {cent}"
    units: str = ""
    decimal: str = ","
    joint: str = " "  # between words
    spelled_decimals: bool = False  # digit by digit, else as a number where they are few
    letter_boundary: str = r"\w"  # what may not touch a number
    plural: Callable[[int, bool], int] = _one_or_many
    of_millions: Callable[[str], str] = lambda noun: f" {noun}"
    agreement: Callable[[re.Match[str], int], str] = lambda match, number: ""
    ordinal: Callable[[int, str], str] | None = None  # number, gender
    fraction: Callable[[int, int], str] | None = None  # "three quarters"
    year: Callable[[int], str] | None = None
    decimal_fraction: Callable[[int, str], str | None] | None = None
    contracted: Callable[[str], str] = lambda words: words  # "un'ora"
    day_first: bool = True
    month_forms: dict[str, int] = field(default_factory=dict)  # abbreviations
    per: str = ""  # "h: por hora"
    scales: str = ""  # "k: mil, M: millón/millones"
    patterns: dict[str, str] = field(default_factory=dict)  # what the shared rules look for
    extra: dict[str, Rules] = field(default_factory=dict)  # by stage

    @cached_property
    def word(self) -> dict[str, str]:
        return word_table(self.words)

    @cached_property
    def month_names(self) -> list[str]:
        return self.months.split()

    @cached_property
    def currency_nouns(self) -> dict[str, Noun]:
        return nouns(self.currencies)

    @cached_property
    def hundredth_nouns(self) -> dict[str, Noun]:
        return nouns(self.hundredths) if self.hundredths else {}

    @cached_property
    def unit_nouns(self) -> dict[str, Noun]:
        return nouns(self.units) if self.units else {}

    # Patterns

    @cached_property
    def numeral(self) -> str:
        """A whole or decimal number as written in running text, without its sign."""
        point, group = re.escape(self.decimal), re.escape("." if self.decimal == "," else ",")
        last = "(?![0-9])"
        return (
            rf"(?:[0-9]{{1,3}}(?:{point}[0-9]{{3}}){{1,6}}{group}[0-9]{{1,2}}{last}"
            rf"|[1-9][0-9]{{0,2}}(?:{point}[0-9]{{3}}){{2,6}}{last}"
            rf"|[1-9][0-9]{{0,2}}(?:{group}[0-9]{{3}}){{1,6}}{last}(?:{point}[0-9]+)?"
            rf"|[1-9][0-9]{{0,2}}(?:[{SPACES}'’][0-9]{{3}}){{1,6}}{last}(?:{point}[0-9]+)?"
            rf"|[0-9]+(?:[.,][0-9]+)?)"
        )

    @cached_property
    def sign(self) -> str:
        """A minus sign, if there is one."""
        return rf"(?:(?<!{self.letter_boundary})(?<![0-9)\]])[-−])?"

    @cached_property
    def start(self) -> str:
        """What may not stand right before a number."""
        return rf"(?<!{self.letter_boundary})(?<![0-9][.,])(?<![0-9])"

    @cached_property
    def end(self) -> str:
        """What may not stand right after it."""
        return rf"(?!{self.letter_boundary}|[0-9]|[.,][0-9])"

    # Numbers in words

    def cardinal(self, number: int, form: str = "") -> str:
        """In words, or digit by digit where it is too long."""
        if number >= self.numbers.end:
            return self.digits(str(number))
        return self.numbers.spell(number, form)

    def digits(self, numeral: str) -> str:
        """Digit by digit; other characters are passed over."""
        return self.joint.join(
            self.numbers.spell(int(digit)) for digit in numeral if digit in "0123456789"
        )

    def split(self, numeral: str) -> tuple[str, str, str]:
        """The whole part, the name of the decimal sign and the decimals; "" if there are none."""
        numeral = _MARKS_BETWEEN_GROUPS.sub("", numeral)
        marks = [mark for mark in numeral if mark in ".,"]
        if not marks:
            return numeral, "", ""
        last = marks[-1]
        whole, _, decimals = numeral.rpartition(last)
        grouped = marks.count(last) > 1 or (
            last != self.decimal
            and len(set(marks)) == 1
            and len(decimals) == 3
            and whole[:1] != "0"
        )
        # "5,000" as in English: nobody measures to three zeros.
        grouped = grouped or (
            last == "," and decimals == "000" and len(whole) <= 3 and whole[:1] != "0"
        )
        if grouped:
            return numeral.replace(".", "").replace(",", ""), "", ""
        whole = whole.replace(".", "").replace(",", "")
        return whole, "comma" if last == "," else "point", decimals

    def in_words(self, numeral: str, form: str = "") -> str:
        """A numeral as written, with its sign, separators and decimals."""
        if numeral[:1] in ("-", "−"):
            return f"{self.word['minus']}{self.joint}{self.in_words(numeral[1:], form)}"
        whole, sign, decimals = self.split(numeral)
        if not sign:
            return self._whole(whole, form)
        if self.decimal_fraction is not None:
            words = self.decimal_fraction(int(whole[-MOST_DIGITS:]), decimals)
            if words is not None:
                return words
        form = form if form == "f" else ""
        return self.joint.join((self._whole(whole, form), self.word[sign], self.decimals(decimals)))

    def _whole(self, numeral: str, form: str) -> str:
        if (len(numeral) > 1 and numeral[0] == "0") or len(numeral) > MOST_DIGITS:
            return self.digits(numeral)
        return self.cardinal(int(numeral), form)

    def decimals(self, written: str) -> str:
        """What follows the decimal sign."""
        rest = written.lstrip("0")
        if self.spelled_decimals or len(rest) > 3 or not rest:
            return self.digits(written)
        zeros = [self.cardinal(0)] * (len(written) - len(rest))
        return self.joint.join([*zeros, self.cardinal(int(rest))])

    def span(self, first: str, last: str | None, form: str = "") -> str:
        """One number, or two with the word between them."""
        words = self.in_words(first, form)
        if last is None:
            return words
        return self.joint.join((words, self.word["to"], self.in_words(last, form)))

    def form_of(self, noun: Noun, numeral: str) -> str:
        """The form of a noun that goes with a numeral."""
        whole, sign, _ = self.split(numeral.lstrip("-−"))
        return noun.forms[
            min(self.plural(int(whole[-MOST_DIGITS:]), bool(sign)), len(noun.forms) - 1)
        ]

    def count(self, noun: Noun, numeral: str, last: str | None = None) -> str:
        """A number, or a range, of something."""
        words = self.span(numeral, last, noun.gender)
        name = self.form_of(noun, last or numeral)
        return self.contracted(words + self.after(words, name))

    def after(self, words: str, name: str) -> str:
        """A noun after number words: "diez euros", "un millón de euros"."""
        if words.split(" ")[-1] in self.word.get("millions", "").split("/"):
            return self.of_millions(name)
        return f"{self.joint}{name}"
