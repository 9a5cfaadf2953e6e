"""Replaces abbreviations with the words they stand for, and spells acronyms."""

import re
from collections.abc import Callable

from ..spoken.acronyms import is_shouted
from ..spoken.engine import Rules
from ..spoken.tables import ends_sentence, kept_stop, word_table
from .calendar import MONTHS, month_name

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
    # A section of an act, not seconds: "s. 12".
    r"(?<![\w.])(?<![0-9]\s)(ss?)\.\s?(?=[0-9])": lambda match: (
        "section " if match[1] == "s" else "sections "
    ),
    r"(?<=[0-9]\s)ea\.(?!\w)": "each",
    rf"\b(?P<first>{_either(_DAYS)})\.?\s?[-–]\s?(?P<last>{_either(_DAYS)})\b\.?": lambda match: (
        f"{_DAYS[match['first']]} to {_DAYS[match['last']]}{kept_stop(match)}"
    ),
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

_PRONOUNCED = frozenset(
    """
    NASA NATO UNICEF UNESCO OPEC FIFA UEFA AIDS NAFTA ASEAN INTERPOL SCUBA LASER RADAR SONAR
    CAPTCHA JPEG MPEG GIF PIN SIM RAM ROM LAN WAN BIOS CAD COBOL FORTRAN BASIC LISP ASCII YAML
    JSON TOML REST SOAP CERN DARPA NOAA OSHA FEMA HIPAA SARS MERS COVID ZIP SWAT POTUS SCOTUS
    MIDI CUDA LAPACK BLAS SIMD RISC WAV SEGA IKEA LEGO VISA NIMBY YOLO ISIS SALT START SIDS
    LIDAR
    """.split()
)
# Ordinary words that are often written in capitals for stress.
_STRESSED = frozenset(
    """
    A ABOUT AFTER AGAIN ALL ALSO AN AND ANY ARE AS ASK AT AWAY BAD BE BEEN BEST BIG BOTH BOY
    BUT BUY BY CALL CAME CAN COME DAY DEAR DID DIE DO DOES DONE DOWN EACH EAT END EVEN EVER
    EVERY FAR FAST FEW FIND FIRST FOR FREE FROM FULL FUN GET GIRL GIVE GO GOD GONE GOOD GOT
    GREAT HAD HAHA HARD HAS HATE HAVE HE HELL HELLO HELP HER HERE HEY HI HIM HIS HOME HOT HOW
    HUGE IF IN INTO IS ITS JOY JUST KEEP KNOW LAST LATE LEFT LESS LET LIE LIFE LIKE LIVE LONG
    LOOK LOST LOVE MAD MADE MAN MANY MAY ME MEN MINE MORE MOST MUCH MUST MY NAME NEAR NEED
    NEVER NEW NEXT NICE NIGHT NO NOPE NOT NOTE NOW OF OFF OH OK OLD ON ONCE ONE ONLY OPEN OR
    OTHER OUR OUT OVER OWN PAST PLAY PLUS POOR PUT RAN READ REAL RED RIGHT RUN SAD SAID SAME
    SAVE SAW SAY SEE SHE SHUT SIR SO SOLD SOME SOON STAY STILL STOP SUCH SURE TAKE TELL TEN
    TEXT THAN THANK THAT THE THEIR THEM THEN THERE THESE THEY THIS THOSE TIME TO TODAY TOLD
    TOO TOP TRUE TRY TURN TWO UH UM UP VERY WAIT WALK WANT WAR WAS WAY WE WELL WENT WERE WHAT
    WHEN WHERE WHICH WHILE WHY WIFE WILL WIN WISH WITH WON WORD WORK WORLD WORST WOW WRONG
    YEAH YES YET YOU YOUR
    """.split()
)
_VOWELS = frozenset("aeiouyAEIOUY")


def spelled(letters: str) -> str:
    """ "F B I"."""
    return " ".join(letters.upper())


def is_spelled(word: str) -> bool:
    """Whether the letters of a word are said one by one."""
    if not word.isascii():  # letters of another script have other vowels
        return False
    if not _VOWELS & set(word):
        return True
    if not word.isupper() or len(word) > 5:
        return False
    return word not in _PRONOUNCED and word not in _STRESSED


def _acronym(match: re.Match[str]) -> str:
    letters = match["letters"]
    if not is_spelled(letters) or (is_shouted(match.string) and _VOWELS & set(letters)):
        return match[0]
    return spelled(letters) + (match["ending"] or "") + (" " if match["joint"] else "")


# In a text that is all in capitals, only those without a vowel are spelled.
ACRONYM_RULES: Rules = {
    r"(?<![\w.@#'’])(?P<letters>[A-Z]{2,})(?P<ending>['’]?s)?(?![\w'’])"
    r"(?P<joint>-(?=\w))?": _acronym,
}
