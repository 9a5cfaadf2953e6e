"""Numbers in English words: cardinals, ordinals, years, fractions, powers, ranges, Roman ones."""

import re
from collections.abc import Callable
from unicodedata import normalize

from ..spoken.engine import Rules
from ..spoken.tables import word_table

# A whole or decimal number as written in running text, without its sign.
NUMERAL = r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?"
# What may not stand right before and right after it.
START = r"(?<![\w.])(?<![0-9],)"
END = r"(?!\w|[.,][0-9])"
SIGN = r"(?:(?<![\w)\]])[-−])?"
DASH = r"\s?[-–—]\s?"

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
).split()
_TENS = "zero ten twenty thirty forty fifty sixty seventy eighty ninety".split()
_SCALES = ("", " thousand", " million", " billion", " trillion", " quadrillion", " quintillion")
_LONGEST = 3 * len(_SCALES)  # digits
_ORDINALS = word_table(
    "one: first, two: second, three: third, five: fifth, eight: eighth, nine: ninth, "
    "twelve: twelfth"
)
_POWERS = {"²": "squared", "³": "cubed"}
_VULGAR = "½⅓⅔¼¾⅕⅖⅗⅘⅙⅛⅜⅝⅞⅒"
FRACTION = (
    rf"{START}(?:(?:(?P<whole>[0-9]+)\s)?(?P<over>[0-9]{{1,3}})/(?P<under>[0-9]{{1,3}})(?![0-9/])"
    rf"|(?:(?P<before>[0-9]+)\s?)?(?P<vulgar>[{_VULGAR}]))"
)


def digits(numeral: str) -> str:
    """Digit by digit: "zero zero seven"; other characters are passed over."""
    return " ".join(_ONES[int(digit)] for digit in numeral if digit in "0123456789")


def cardinal(number: int) -> str:
    """In words up to quintillions, digit by digit beyond."""
    if number < 0:
        return f"minus {cardinal(-number)}"
    if number >= 10**_LONGEST:
        return digits(str(number))
    if number == 0:
        return _ONES[0]
    groups = []
    for scale in _SCALES:
        number, group = divmod(number, 1000)
        if group:
            groups.append(_below_thousand(group) + scale)
    return " ".join(reversed(groups))


def _below_thousand(number: int) -> str:
    hundreds, rest = divmod(number, 100)
    words = [f"{_ONES[hundreds]} hundred"] if hundreds else []
    if rest >= 20:
        tens, ones = divmod(rest, 10)
        words.append(f"{_TENS[tens]}-{_ONES[ones]}" if ones else _TENS[tens])
    elif rest:
        words.append(_ONES[rest])
    return " ".join(words)


def ordinal(number: int) -> str:
    """ "twenty-second"."""
    head, separator, last = _last_word(cardinal(number))
    if last in _ORDINALS:
        last = _ORDINALS[last]
    elif last.endswith("y"):
        last = f"{last[:-1]}ieth"
    else:
        last += "h" if last.endswith("t") else "th"
    return head + separator + last


def plural(words: str) -> str:
    """The plural of number words: "nineteen nineties", "two thirds"."""
    head, separator, last = _last_word(words)
    if last.endswith("y"):
        return f"{head}{separator}{last[:-1]}ies"
    return words + ("es" if last.endswith("x") else "s")


def _last_word(words: str) -> tuple[str, str, str]:
    at = max(words.rfind(" "), words.rfind("-"))
    return words[: max(at, 0)], words[max(at, 0) : at + 1], words[at + 1 :]


def in_words(numeral: str) -> str:
    """A numeral as written, with its sign, separators and decimals: "minus one point five"."""
    if numeral[:1] in ("-", "−"):
        return f"minus {in_words(numeral[1:])}"
    whole, point, decimals = numeral.replace(",", "").partition(".")
    if (len(whole) > 1 and whole[0] == "0") or len(whole) > _LONGEST:
        words = digits(whole)
    else:
        words = cardinal(int(whole)) if whole else ""
    return f"{words} point {digits(decimals)}".strip() if point else words


def year(number: int) -> str:
    """ "nineteen ninety-nine", "two thousand five", "nineteen oh five", "twelve hundred"."""
    century, rest = divmod(number, 100)
    if century % 10 == 0 and rest < 10:
        return cardinal(number)
    if rest == 0:
        return f"{cardinal(century)} hundred"
    return f"{cardinal(century)} {two_digits(rest)}"


def code(numeral: str) -> str:
    """As in a model's name: "forty ninety", "seven forty-seven", "three oh one"."""
    if len(numeral) not in (3, 4):
        return in_words(numeral) if len(numeral) < 3 else digits(numeral)
    if numeral[0] == "0":
        return digits(numeral)
    number = int(numeral)
    if number % 1000 == 0 or (number < 1000 and number % 100 == 0):
        return cardinal(number)
    head, rest = divmod(number, 100)
    return f"{cardinal(head)} {two_digits(rest) if rest else 'hundred'}"


def two_digits(number: int) -> str:
    """The end of a year, a time or a model's name: "oh five", "fifteen"."""
    return cardinal(number) if number >= 10 else f"oh {_ONES[number]}"


def range_in_words(first: str, last: str | None) -> str:
    """ "one", or "one to two" where there is a last."""
    return in_words(first) if last is None else f"{in_words(first)} to {in_words(last)}"


def fraction_in_words(match: re.Match[str]) -> str:
    """What `FRACTION` found, as a fraction where it can be one: "two and a half"."""
    if match["vulgar"]:
        over, under = map(int, normalize("NFKD", match["vulgar"]).split("\u2044"))
        return _fraction(over, under, match["before"])
    whole, over, under = match["whole"], int(match["over"]), int(match["under"])
    if not whole and over >= under > 0 and over + under == 100:
        return f"{cardinal(over)} {cardinal(under)}"  # shares: "fifty fifty"
    if not whole and under in (10, 100) and over <= under:
        return f"{cardinal(over)} out of {cardinal(under)}"
    if 0 < over < under <= 100 or (not whole and 1 < under < 10):
        return _fraction(over, under, whole)
    words = f"{cardinal(over)} over {cardinal(under)}"
    return f"{in_words(whole)} {words}" if whole else words


def _fraction(over: int, under: int, whole: str | None) -> str:
    if under == 2:
        name = "half" if over == 1 else "halves"
    else:
        name = "quarter" if under == 4 else ordinal(under)
        name = name if over == 1 else plural(name)
    if not whole:
        return f"{cardinal(over)} {name}"
    article = "a" if over == 1 and under in (2, 4) else cardinal(over)
    return f"{in_words(whole)} and {article} {name}"


def _list(match: re.Match[str]) -> str:
    return match[0] if re.fullmatch(NUMERAL, match[0]) else match[0].replace(",", ", ")


def _with_commas(match: re.Match[str]) -> str:
    """1 234 567, 1'234'567 and 1.234.567,89 as 1,234,567 and 1,234,567.89."""
    whole = re.sub(r"[^0-9]", ",", match["whole"])
    return whole + (f".{match['decimals']}" if match["decimals"] else "")


_SPACE = "[ \u00a0\u202f\u2009]"
# Groups of digits as other countries separate them.
GROUP_RULES: Rules = {
    rf"(?<![\w.,:/-])(?<![0-9]{_SPACE})(?P<whole>[1-9][0-9]{{0,2}}(?:{_SPACE}[0-9]{{3}}){{1,6}})"
    rf"(?P<decimals>)(?!{_SPACE}?[0-9]|[-:/][0-9]|,[0-9])": _with_commas,
    r"(?<![\w.,])(?P<whole>[1-9][0-9]{0,2}(?:['’][0-9]{3}){1,6})"
    r"(?:\.(?P<decimals>[0-9]+))?(?![\w'’])": (_with_commas),
    r"(?<![0-9.,])(?P<whole>[1-9][0-9]{0,2}(?:\.[0-9]{3}){1,6}),"
    r"(?P<decimals>[0-9]{1,2})(?![\w,])": (_with_commas),
    r"(?<![\w.,])(?P<whole>[1-9][0-9]{0,2}(?:\.[0-9]{3}){2,6})(?P<decimals>)(?!\w|[.,][0-9])": (
        _with_commas
    ),
    r"(?<=€)(?P<whole>\s?[1-9][0-9]{0,2}\.[0-9]{3})(?P<decimals>)(?!\w|[.,][0-9])": lambda match: (
        match[0].replace(".", ",")
    ),
    r"(?<![0-9.,])([0-9]+),([0-9]{1,2})(?=\s?€)"
    r"|(?<=€)(\s?[0-9]+),([0-9]{1,2})(?![0-9,])": r"\1\3.\2\4",
    r"(?<=[$£])(\s?[0-9]+),([0-9]{2})(?![0-9,])": r"\1.\2",
    # Lakhs and crores: 1,00,000.
    r"(?<![0-9.,])[0-9]{1,2}(?:,[0-9]{2}){1,4},[0-9]{3}(?!,?[0-9])": lambda match: match[0].replace(
        ",", ""
    ),
}

RULES: Rules = {
    rf"{FRACTION}(?!\w|\.[0-9])": fraction_in_words,
    r"(?<=[A-Za-z)])\^2(?![0-9])": " squared",
    r"(?<=[A-Za-z)])\^3(?![0-9])": " cubed",
    r"([0-9A-Za-z)])\^([-−]?[0-9]+)": lambda match: (
        f"{match[1]} to the power of {in_words(match[2])}"
    ),
    r"(?<=[\w)])(?<![⁰¹²³⁴-⁹])([²³])(?![⁰¹²³⁴-⁹])": lambda match: f" {_POWERS[match[1]]}",
    r"(?<=[\w)])(⁻(?=[²³])|⁻?(?![²³]))([⁰¹²³⁴-⁹]+)": lambda match: (
        f" to the power of {'minus ' if match[1] else ''}{in_words(normalize('NFKC', match[2]))}"
    ),
    rf"{START}([0-9]{{1,3}}(?:,[0-9]{{3}}){{1,5}}|[0-9]{{1,18}})(?:st|nd|rd|th)\b": lambda match: (
        ordinal(int(match[1].replace(",", "")))
    ),
    r"(?<![\w.,-])[0-9]+(?:-[0-9]+){2,}(?![\w-])": lambda match: ", ".join(
        map(digits, match[0].split("-"))
    ),
    rf"{START}({SIGN}{NUMERAL})(?:-|\s?–\s?)({NUMERAL}){END}(?!-[0-9])": lambda match: (
        range_in_words(match[1], match[2])
    ),
    r"(?<=[0-9])\s[-−]\s(?=[0-9])": " minus ",
    r"(?<![\w:.])([0-9]+):([0-9]+)(?![\w:]|\.[0-9])": r"\1 to \2",
    r"(?<![0-9,.])[0-9]+(?:,[0-9]+)+(?![0-9,]|\.[0-9])": _list,
    rf"{START}{SIGN}{NUMERAL}{END}": lambda match: in_words(match[0]),
    r"(?<![\w.])\.([0-9]+)(?!\w)": lambda match: f"point {digits(match[1])}",
}

# Roman numerals after names and headings.
_ROMAN_DIGITS = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
_VALID_ROMAN = re.compile(r"M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})")
_RULERS = (
    "Henry|Louis|Charles|George|Edward|James|William|Elizabeth|Richard|John|Paul|Pius|Benedict|Leo|"
    "Gregory|Clement|Innocent|Urban|Philip|Frederick|Napoleon|Nicholas|Alexander|Catherine|Peter|"
    "Ivan|Ferdinand|Otto|Ramesses|Ramses|Ptolemy|Mary|Francis|Victor|Christian|Gustav|Carl|Harald|"
    "Olav|Haakon|Juan|Carlos|Alfonso|Felipe|Cleopatra|Darius|Xerxes|Mehmed|Murad|Selim|Suleiman|"
    "Constantine|Theodosius|Justinian|Leopold|Albert|Maximilian|Joseph|Wilhelm|Margrethe|Beatrix"
)
_HEADINGS = (
    "Chapter|Part|Volume|Book|Section|Act|Scene|Article|Appendix|Title|Phase|Type|Class|Level|"
    "Stage|Grade|Figure|Table|War|Bowl|Fantasy|Unit|Module|Lesson|Canto|Psalm|Number|Schedule"
)
# "Elizabeth I" is a numeral only where no verb follows: "with Elizabeth I went home".
_FIRST = r"I(?=[.,;:!?)]|['’]s\b|\s+(?:of|and|to)\b|\s*\Z)"


def _roman_value(numeral: str) -> int:
    values = [_ROMAN_DIGITS[letter] for letter in numeral]
    return sum(
        -value if value < following else value
        for value, following in zip(values, [*values[1:], 0], strict=True)
    )


def _numeral(words: Callable[[int], str], joint: str = " ") -> Callable[[re.Match[str]], str]:
    """What is `before` a numeral, if anything, and the words for it; no change if it is invalid."""

    def spoken(match: re.Match[str]) -> str:
        if not _VALID_ROMAN.fullmatch(match["numeral"]):
            return match[0]
        before = match.groupdict().get("before")
        return (before + joint if before else "") + words(_roman_value(match["numeral"]))

    return spoken


_counted = _numeral(lambda value: cardinal(value).capitalize())
_ranked = _numeral(ordinal, " the ")

ROMAN_RULES: Rules = {
    r"\bWWII\b": "World War Two",
    r"\bWWI\b": "World War One",
    rf"\b(?P<before>(?i:{_HEADINGS}))\s(?P<numeral>{_FIRST}|[VX]|[IVXLC]{{2,}})\b": _counted,
    r"\b(?P<before>World War)\s(?P<numeral>I)\b": _counted,
    rf"\b(?P<before>{_RULERS})\s(?P<numeral>{_FIRST}|(?!I\b)[IVX]+)\b": _ranked,
    r"\b(?P<numeral>[IVX]+)(?=\s[Cc]entur(?:y|ies)\b)": _ranked,
    r"\b(?P<before>[A-Z][a-z]+)\s(?P<numeral>[IVX]{2,})\b": _counted,
    r"\b(?!(?:IV|VI|XXX?)\b)(?P<numeral>[IVX]{2,})\b": _numeral(cardinal),
}
