"""Roman numerals after names and headings."""

import re
from collections.abc import Callable

from .numbers import cardinal, ordinal
from .rules import Rules

_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
_VALID = re.compile(r"M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})")
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


def _value(numeral: str) -> int:
    values = [_VALUES[letter] for letter in numeral]
    return sum(
        -value if value < following else value
        for value, following in zip(values, [*values[1:], 0], strict=True)
    )


def _numeral(words: Callable[[int], str], joint: str = " ") -> Callable[[re.Match[str]], str]:
    """What is `before` a numeral, if anything, and the words for it; no change if it is invalid."""

    def spoken(match: re.Match[str]) -> str:
        if not _VALID.fullmatch(match["numeral"]):
            return match[0]
        before = match.groupdict().get("before")
        return (before + joint if before else "") + words(_value(match["numeral"]))

    return spoken


_counted = _numeral(lambda value: cardinal(value).capitalize())
_ordinal = _numeral(ordinal, " the ")

RULES: Rules = {
    r"\bWWII\b": "World War Two",
    r"\bWWI\b": "World War One",
    rf"\b(?P<before>(?i:{_HEADINGS}))\s(?P<numeral>{_FIRST}|[VX]|[IVXLC]{{2,}})\b": _counted,
    r"\b(?P<before>World War)\s(?P<numeral>I)\b": _counted,
    rf"\b(?P<before>{_RULERS})\s(?P<numeral>{_FIRST}|(?!I\b)[IVX]+)\b": _ordinal,
    r"\b(?P<numeral>[IVX]+)(?=\s[Cc]entur(?:y|ies)\b)": _ordinal,
    r"\b(?P<before>[A-Z][a-z]+)\s(?P<numeral>[IVX]{2,})\b": _counted,
    r"\b(?!(?:IV|VI|XXX?)\b)(?P<numeral>[IVX]{2,})\b": _numeral(cardinal),
}
