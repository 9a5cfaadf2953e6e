"""Rules for abbreviations, from tables of what they stand for."""

import re
from collections.abc import Callable

from .engine import Rules
from .tables import either, kept_stop, word_table

_CAPITAL = r"[^\W\d_a-zà-ÿ]"
_RANGE = re.compile(r"[0-9]+\s?[-–]\s?[0-9]")
_FRENCH_RANGE = re.compile(r"[0-9]+\sà\s[0-9]")
_PAGES = {"página": "páginas", "page": "pages", "pagina": "pagine"}  # "p. 45-52"
_POLITE = re.compile("(?i:sr|dr|prof|sig|dott)")
# Titles that are something else in small letters.
_ONLY_CAPITALIZED = frozenset("d s m r p mm me min al ir fr col cap gal pe st ste sto sta".split())
_UNITS = r"(?<![0-9])(?<![0-9][ \u00a0\u202f])(?=(?:min|sec|seg|gr)\.)|(?!(?:min|sec|seg|gr)\.)"


def abbreviation_rules(
    code: str, *, titles: str, words: str, numbered: str, phrases: dict[str, str]
) -> Rules:
    """Rules of a language.

    titles: before a name. words: anywhere, with their stop. numbered: before a number. phrases: by
    pattern, with what they stand for.
    """
    tables = tuple(map(word_table, (titles, words, numbered)))
    named, anywhere, counted = tables
    # "el sr. García", "o prof. Nunes"
    named |= {
        title.lower(): spoken
        for title, spoken in named.items()
        if title.lower() not in named and title.lower() not in _ONLY_CAPITALIZED
    }

    def phrase(spoken: str) -> Callable[[re.Match[str]], str]:
        return lambda match: _cased(spoken, match[0]) + kept_stop(match, code)

    def before_number(match: re.Match[str]) -> str:
        spoken = _entry(counted, match[1])
        several = _RANGE.match(match.string, match.end())
        if several or (code == "fr" and _FRENCH_RANGE.match(match.string, match.end())):
            spoken = _PAGES.get(spoken, spoken)
        return f"{_cased(spoken, match[1])} "

    return {
        **{pattern: phrase(spoken) for pattern, spoken in phrases.items()},
        rf"(?<![\w.])(?:(?<![A-Z]\.\s)|(?=[a-zà-ÿ]))((?i:{either(counted)}))(?:\.\s?[ºo°]?|[º°])\s?(?=[0-9]|(?:[IVX]+|"
        rf"[IVXLC]{{2,}})\b)": (before_number),
        # "Prezados Srs.,"
        rf"(?<![\w.])({either(filter(_POLITE.match, named))})\.(?=[,:;])": (
            lambda match: named[match[1]]
        ),
        rf"(?<![\w.])({either(named)})\.(?!{_CAPITAL}\.)(?=[\s\u00a0]?(?:{_CAPITAL}|\w+\.\s)"
        r"|(?<=\w\w\.)\s(?:e|y|et|o|ou)\s)\s?": lambda match: f"{named[match[1]]} ",
        rf"(?<![\w./])(?:{_UNITS})({either(anywhere)}|{either(map(str.capitalize, anywhere))})"
        r"\.(?!\w|/k?m²)": (
            lambda match: _cased(_entry(anywhere, match[1]), match[1]) + kept_stop(match, code)
        ),
    }


def at_end(words: str) -> str:
    """A pattern of the abbreviations in a table where the text ends, or another alternative."""
    table = word_table(words)
    return rf"|\b(?:{either(table)})\.\W*\Z"


def _entry(table: dict[str, str], written: str) -> str:
    for form in (written, written.lower(), written[0].lower() + written[1:], written.capitalize()):
        if form in table:
            return table[form]
    return written


def _cased(spoken: str, written: str) -> str:
    """With a capital where what is written has one and goes on in small letters."""
    capital = written[:1].isupper() and (written[1:2].islower() or written[1:2] in ".º°")
    if capital and spoken[:1].islower():
        return spoken[0].upper() + spoken[1:]
    return spoken
