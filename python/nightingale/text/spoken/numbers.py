"""Rules for numbers that no unit, date or name goes with: fractions, powers, ranges, numerals."""

import re
from unicodedata import normalize

from .engine import Rules
from .language import Language

NUMBER = "[0-9¼-¾⅐-⅞²³]"  # what a text with any number holds
VULGAR = "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞⅒"
# Digits of other scripts, which are read as those of ASCII.
_OTHER_DIGITS = "٠-٩۰-۹०-९０-９"

DIGIT_RULES: Rules = {
    f"[{_OTHER_DIGITS}]": lambda match: normalize("NFKC", str(int(match[0]))),
    r"(?<=[0-9])٫(?=[0-9])": ".",
    r"(?<=[0-9])٬(?=[0-9])": ",",
}
ANY_OTHER_DIGIT = f"[{_OTHER_DIGITS}]"

# What is counted below zero.
_AFTER_NEGATIVE = re.compile(
    r"\s(?:grad|grau|degré|hora|heure|or[ae]\b|punt|pont|point|euro|d[óo]l|di)"
)
_MIXED_HALF = re.compile(r"[0-9]+(?:\s?½|\s1/2)")


def plain_rules(language: Language) -> Rules:
    """Ranges and single numbers, which every language has."""
    start, end, numeral = language.start, language.end, language.numeral

    def number(match: re.Match[str]) -> str:
        whole, sign, _ = language.split(match[0].lstrip("-−"))
        if sign == "point" and language.decimal == ",":
            return language.in_words(match[0])  # a version or a setting
        if match[0][0] in "-−" and not _AFTER_NEGATIVE.match(match.string, match.end()):
            return language.in_words(match[0])  # "-1 inhabilita"
        return language.in_words(match[0], language.agreement(match, _count(whole, sign)))

    def between(match: re.Match[str]) -> str:
        whole, _, _ = language.split(match[2])
        if len(match[2]) == 1 and len(match[1]) > 3 and match[1].isdecimal():  # a check digit
            return f"{language.in_words(match[1])}{language.joint}{language.in_words(match[2])}"
        # Down to one is a score: "ganó 3-1 fuera".
        form = language.agreement(match, 2) if whole != "1" else ""
        return language.span(match[1], match[2], form)

    def in_turn(match: re.Match[str]) -> str:
        """ "90-60-90"; the digits of what has longer groups."""
        groups = match[0].split("-")
        short = all(len(group) < 3 and group[0] != "0" for group in groups)
        return ", ".join(map(language.in_words if short else language.digits, groups))

    def ratio(match: re.Match[str]) -> str:
        return language.joint.join(
            (language.in_words(match[1]), language.word["to"], language.in_words(match[2]))
        )

    return {
        r"(?<=[0-9])\.{2,3}(?=[-−]?[0-9])": f" {language.word['to']} ",
        r"(?<![\w.,-])[0-9]+(?:-[0-9]+){2,}(?![\w-])": in_turn,
        rf"{start}({language.sign}{numeral})(?:-|\s?–\s?)({numeral}){end}(?!-[0-9])": between,
        r"(?<=[0-9])\s[-−]\s(?=[0-9])": f" {language.word['minus']} ",
        rf"(?<![\w:.])([0-9]+):({numeral})(?![\w:]|[.,][0-9])": ratio,
        r"(?<![0-9,.])[0-9]+(?:,[0-9]+){2,}(?![0-9,]|\.[0-9])": lambda match: (
            match[0]
            if re.fullmatch("[1-9][0-9]{0,2}(?:,[0-9]{3})+", match[0])
            else match[0].replace(",", ", ")
        ),
        rf"{start}{language.sign}{numeral}{end}": number,
    }


def _count(whole: str, sign: str) -> int:
    """What a noun agrees with: 1, or any other number."""
    return 1 if whole == "1" and not sign else 2


def leftover_rules(language: Language) -> Rules:
    """Digits in a place where no other rule takes them, so that none is left unspoken."""

    def digits(match: re.Match[str]) -> str:
        before = match.string[match.start() - 1 : match.start()]
        after = match.string[match.end() : match.end() + 1]
        words = (
            language.digits(match[0])
            if len(match[0]) > 1 and match[0][0] == "0"
            else language.cardinal(int(match[0]))
            if len(match[0]) <= 15
            else language.digits(match[0])
        )
        if not language.joint:
            return words
        return (" " if _touches(before) else "") + words + (" " if _touches(after) else "")

    return {"[0-9]+": digits}


def _touches(character: str) -> bool:
    return character.isalpha() or character == "_"


def fraction_rules(language: Language) -> Rules:
    """Fractions and powers."""
    start = language.start

    def spoken(match: re.Match[str]) -> str:
        form = "f" if language.agreement(match, 2) == "f" else ""
        if match["vulgar"]:
            over, under = map(int, normalize("NFKD", match["vulgar"]).split("\u2044"))
            return _fraction(language, over, under, match["before"], form)
        whole, over, under = match["whole"], int(match["over"]), int(match["under"])
        if whole and not 0 < over < under:
            return match[0]
        marks = under in (10, 20, 100) and 1 < over <= under and not whole  # out of so many
        if marks or under in (0, 1) or over > 100 or under > 100 or (not whole and over == under):
            words = (language.cardinal(over), language.word["over"], language.cardinal(under))
            return " ".join(filter(None, words))
        return _fraction(language, over, under, whole, form)

    def and_half(match: re.Match[str]) -> str:
        """ "una taza y media"."""
        number = _MIXED_HALF.match(match.string, match.start())
        form = language.agreement(number, int(match["whole"])) if number is not None else ""
        noun = match["noun"]
        if match["whole"] == "1" and noun.endswith("s"):
            noun = noun.removesuffix("s")
        elif form not in ("m", "f") or (match["whole"] == "1" and language.code == "it"):
            return match[0]
        half = language.word["and_half_f" if form == "f" else "and_half"]
        return f"{language.in_words(match['whole'], form)} {noun} {half}"

    def half(match: re.Match[str]) -> str:
        form = language.agreement(match, 1)
        return language.word[f"half_{form}"] if form else match[0]

    return {
        rf"{start}(?P<whole>[0-9]+)(?:\s?½|\s1/2)\s(?P<noun>[^\W\d_]{{3,}})(?!\w)": and_half,
        rf"{start}(?:(?<![0-9]\s)½|(?<![0-9]\s)1/2(?![0-9/]))(?=\s[^\W\d_]{{3,}})": half,
        r"(?<![\w/.,])24/7(?![\w/])": f"{language.cardinal(24)} {language.cardinal(7)}",
        r"(?<![\w/.,])50/50(?![\w/])": f"{language.cardinal(50)} {language.cardinal(50)}",
        rf"{start}(?:(?:(?P<whole>[0-9]+)\s)?(?P<over>[0-9]{{1,3}})[/⁄](?P<under>[0-9]{{1,3}})"
        rf"(?![0-9/]|[.,][0-9]|\w|[ \u00a0\u202f][0-9]{{3}}\b)"
        rf"|(?:(?P<before>[0-9]+)\s?)?(?P<vulgar>[{VULGAR}]))": spoken,
        # A scale: "1/25 000".
        r"(?<![\w/.,])1/(?=[1-9][0-9]{0,2}(?:[ .\u00a0\u202f][0-9]{3})+(?![0-9]))": (
            f"{language.cardinal(1)} {language.word['over']} "
        ),
        r"(?<=[0-9],[0-9])/(?=(?:10|20|100)(?![\w/]))": f" {language.word['over']} ",
        r"([0-9A-Za-z)])\^([-−]?[0-9]+)": lambda match: (
            f"{match[1]} {language.word['power']} {language.in_words(match[2])}"
        ),
        r"(?<=[0-9A-Za-z)])([⁰¹²³⁴⁵⁶⁷⁸⁹⁻]{2,}|[⁰¹⁴⁵⁶⁷⁸⁹])": lambda match: (
            f" {language.word['power']} {language.in_words(normalize('NFKC', match[1]))}"
        ),
        r"(?<=[\w)])([²³])(?!\w)": lambda match: (
            " " + language.word["squared" if match[1] == "²" else "cubed"]
        ),
    }


def _fraction(language: Language, over: int, under: int, whole: str | None, form: str) -> str:
    assert language.fraction is not None
    words = language.fraction(over, under)
    if not whole:
        return words
    if (over, under) == (1, 2):
        half = language.word["and_half_f" if form else "and_half"]
        return f"{language.in_words(whole, form)} {half}"
    return f"{language.in_words(whole)} {language.word['and']} {words}"
