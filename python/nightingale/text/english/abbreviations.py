"""Replaces abbreviations with the words they stand for."""

import re
from collections.abc import Callable

from .calendar import MONTHS, month_name
from .rules import Rules, ends_sentence, kept_stop, word_table

_TITLES = word_table(
    "Mr: Mister, Mrs: Missus, Ms: Miz, Messrs: Messieurs, Prof: Professor, Gen: General, "
    "Col: Colonel, Sgt: Sergeant, Capt: Captain, Lt: Lieutenant, Cmdr: Commander, Maj: Major, "
    "Adm: Admiral, Rev: Reverend, Hon: Honorable, Sen: Senator, Rep: Representative, "
    "Gov: Governor, Pres: President, Fr: Father, Mt: Mount, Ft: Fort"
)
_WRITTEN_BARE = "Mr|Mrs|Ms|Messrs|Prof|Mt"  # also without a stop
_STREETS = word_table(
    "Ave: Avenue, Blvd: Boulevard, Rd: Road, Ln: Lane, Hwy: Highway, Pkwy: Parkway"
)
_SUFFIXES = {"et al": "et al"} | word_table(
    "Jr: Junior, Sr: Senior, Inc: Incorporated, Ltd: Limited, Co: Company, Corp: Corporation, "
    "Bros: Brothers, Esq: Esquire, Dept: Department, dept: department, Apt: Apartment, "
    "apt: apartment, Assn: Association, Univ: University, approx: approximately, "
    "Approx: Approximately, esp: especially, incl: including, excl: excluding, "
    "misc: miscellaneous, viz: namely, cf: compare"
)
_BEFORE_NUMBERS = word_table(
    "no: number, nos: numbers, p pg: page, pp: pages, vol: volume, vols: volumes, ch: chapter, "
    "fig: figure, figs: figures, sec: section, art: article, para: paragraph, eq: equation, "
    "c ca: circa, est: established, op: opus"
)
_DAYS = word_table(
    "Mon: Monday, Tues Tue: Tuesday, Wed: Wednesday, Thurs Thur Thu: Thursday, Fri: Friday, "
    "Sat: Saturday, Sun: Sunday"
)
_CAPITAL_FOLLOWS = re.compile(r"\s[A-Z]")


def _word(table: dict[str, str]) -> Callable[[re.Match[str]], str]:
    return lambda match: table[match[1]] + kept_stop(match)


def _before_number(match: re.Match[str]) -> str:
    word = _BEFORE_NUMBERS[match[1].lower()]
    return f"{word.capitalize() if match[1][0].isupper() else word} "


def _doctor(match: re.Match[str]) -> str:
    if _is_street(match, r"[A-Z]\w+\s\Z"):
        return f"Drive{kept_stop(match)}"
    named = re.compile(r"\s(?:[A-Z]|and\b)").match(match.string, match.end())
    return "Doctor" if named else match[0]


def _saint(match: re.Match[str]) -> str:
    if _is_street(match, r"(?:[A-Z]\w+|[0-9](?:st|nd|rd|th))\s\Z"):
        return f"Street{kept_stop(match)}"
    return "Saint" if _CAPITAL_FOLLOWS.match(match.string, match.end()) else match[0]


def _is_street(match: re.Match[str], name: str) -> bool:
    """Whether a street name comes before it and no personal name after it."""
    before = match.string[max(0, match.start() - 40) : match.start()]
    if not re.search(name, before):
        return False
    return (
        not _CAPITAL_FOLLOWS.match(match.string, match.end())
        or re.search(r"[0-9]+\s(?:[A-Z]\w+\s)+\Z", before) is not None
        or ends_sentence(match.string, match.end())
    )


def _letters(match: re.Match[str]) -> str:
    return " ".join(re.findall(r"[A-Z]", match[0].upper())) + kept_stop(match)


def _initial(match: re.Match[str]) -> str:
    return match[0] if ends_sentence(match.string, match.end()) else match[1]


def _said(words: str) -> Callable[[re.Match[str]], str]:
    return lambda match: words.capitalize() if match[0][0].isupper() else words


def _month(match: re.Match[str]) -> str:
    if match[1] == "Jan" and ends_sentence(match.string, match.end()):
        return match[0]  # more likely someone's name
    return month_name(match[1]) + kept_stop(match)


def _either(table: dict[str, str]) -> str:
    return "|".join(sorted(table, key=len, reverse=True))


_DATE_FOLLOWS = rf"(?=,?\s(?:{'|'.join(MONTHS)}|the\s[\w-]+\sof)\b)"

RULES: Rules = {
    r"\b[eE]\.\s?g\.,?": _said("for example,"),
    r"\b[iI]\.\s?e\.,?": _said("that is,"),
    r"\b[aA]\.?k\.?a\b\.?": _said("also known as"),
    r"\b[eE]tc\b\.?": lambda match: _said("et cetera")(match) + kept_stop(match),
    r"\b[vV]s\b\.?": "versus",
    r"(?<=\w)\sv\.\s(?=[A-Z])": " versus ",
    rf"\b({_either(_BEFORE_NUMBERS)}|{_either(_BEFORE_NUMBERS).title()})\.\s?"
    r"(?=[0-9]|[IVX]{2,}\b|[VX]\b)": _before_number,
    r"\bDr\b\.?": _doctor,
    r"\bSt\b\.?": _saint,
    rf"\b({_either(_TITLES)})\.(?=\s[A-Z])": _word(_TITLES),
    r"\b(Mr|Mrs|Ms)\.(?=\s)": _word(_TITLES),
    rf"\b({_WRITTEN_BARE})(?=\s[A-Z])": _word(_TITLES),
    rf"(?<=\w\s)({_either(_STREETS)})\b\.?": _word(_STREETS),
    r"(?<=[\w,]\s)(Jr|Sr)\b\.?": _word(_SUFFIXES),
    rf"\b({_either(_SUFFIXES)})\.(?!\w)": _word(_SUFFIXES),
    rf"\b({_either(_DAYS)})\b\.?{_DATE_FOLLOWS}": _word(_DAYS),
    r"\b(Mon|Tues?|Wed|Thu(?:rs?)?|Fri)\.(?!\w)": _word(_DAYS),
    r"\b(Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\.(?!\w)": _month,
    r"\bPh\.?\s?D\b\.?": lambda match: "P H D" + kept_stop(match),
    r"\b[ap]\.\s?m\.(?!\w)": _letters,
    r"(?<![\w.])(?:[A-Z]\.){2,}(?!\w)|(?<![\w.])(?:[A-Z]\.)+[A-Z]\b(?!\.)": _letters,
    r"(?<![\w.])(?<![A-Z] )([A-Z])\.(?=\s?[A-Z](?:[a-z]|\.))": _initial,
}
