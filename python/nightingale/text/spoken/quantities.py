"""Rules for amounts of money, measures with their units, and percentages."""

import re
from unicodedata import normalize

from .engine import Rules
from .language import DASH, SPACES, Language, Noun
from .numbers import VULGAR
from .tables import either, kept_stop, word_table

_HEIGHT = re.compile("([1-9]),([1-9][0-9])m")  # "1,80 m" is one metre eighty


def money_rules(language: Language) -> Rules:
    """ "R$ 10", "3,50 €", "5 M€", "USD 10"."""
    currencies = language.currency_nouns
    symbols = either(currencies)
    leading = either(symbol for symbol in currencies if symbol not in ("F", "FF"))
    scales = word_table(language.scales) if language.scales else {}
    of = rf"(?:\s{language.word['of']}\s?)?" if scales else ""
    scale = (
        rf"(?:[{SPACES}]?(?P<short>{either(scales)}){of}(?=[{SPACES}]?(?:{symbols})))?"
        if scales
        else ""
    )
    scale_after = rf"[{SPACES}]?(?P<short>{either(scales)})" if scales else "(?!)"
    long = (
        rf"(?:[{SPACES}](?P<long>{language.patterns['scale_words']})(?:\s{language.word['of']})?)?"
        if "scale_words" in language.patterns
        else ""
    )
    numeral = language.numeral
    signs = either(symbol for symbol in currencies if symbol[-1] in "€$£¥") or "(?!)"
    letter = rf"(?:(?![0-9]){language.letter_boundary})"

    def amount(match: re.Match[str]) -> str:
        groups = match.groupdict()
        noun = currencies[match["symbol"]]
        sign = f"{language.word['minus']}{language.joint}" if groups.get("sign") else ""
        numeral, last = match["first"], groups.get("last")
        scaled = groups.get("long") or (scales[groups["short"]] if groups.get("short") else "")
        if scaled:
            words = language.span(numeral, last, "m" if scaled else noun.gender)
            one, _, many = scaled.partition("/")
            words = f"{words} {one if numeral == '1' or not many else many}"
            return sign + words + language.after(words, noun.forms[-1])
        words = _amount(language, match["symbol"], noun, numeral, last)
        return sign + words + kept_stop(match, language.code)

    def lone(match: re.Match[str]) -> str:
        """ "en €"."""
        return currencies[match["symbol"]].forms[-1]

    before = r"(?P<sign>(?<![\w)])[-−])?"
    gap = f"[{SPACES}]?"
    start = language.start
    to = f"{language.joint}{language.word['to']}{language.joint}"
    return {
        rf"{start}(?P<units>[0-9]+)\s?(?P<sign>[€$£])(?P<cents>[0-9]{{2}})(?!\w|[.,][0-9])": (
            rf"\g<units>{language.decimal}\g<cents> \g<sign>"  # "12€50"
        ),
        rf"(?<=[0-9]){DASH}(?=(?:{symbols}){gap}[0-9])": to,
        # "20 €-30 €"
        r"(?<=[0-9])(\s?[€$£])(?:[-–—]|\s[-–—]\s)(?=[0-9][0-9.,]*\s?[€$£])": rf"\1{to}",
        rf"{before}(?<![A-Za-z$])(?P<symbol>{leading}){gap}(?P<first>{numeral})"
        rf"(?:{DASH}(?P<last>{numeral}))?(?:{scale_after}|{long}){language.end}": amount,
        rf"{start}(?P<sign>{language.sign})(?P<first>{numeral})(?:{DASH}(?P<last>{numeral}))?{scale}{long}"
        rf"{gap}(?P<symbol>{symbols})(?![A-Za-z])(?!(?<={letter}){letter})": amount,
        rf"(?<=[^\W\d_]\s)(?P<symbol>{signs})(?=[.,;:)](?:\s|\Z)|\s[^\W\d_]|\s*\Z)": lone,
    }


def _amount(language: Language, symbol: str, noun: Noun, numeral: str, last: str | None) -> str:
    whole, _, decimals = language.split(numeral)
    if len(decimals) == 3 and whole.strip("0"):  # "$1,500" where others write "$1.500"
        numeral, decimals = whole + decimals, ""
    if last or len(decimals) != 2 or symbol not in language.hundredth_nouns:
        return language.count(noun, numeral, last)
    units = language.count(noun, whole)
    if decimals == "00":
        return units
    cents = language.hundredth_nouns[symbol]
    words = language.cardinal(int(decimals), cents.gender)
    name = language.form_of(cents, str(int(decimals)))
    if not whole.strip("0"):
        return f"{words}{language.joint}{name}"
    return language.money.format(units=units, cents=words, cent=name)


PER_NEEDED = r"[0-9€$£²]\s?\w{0,12}/[^\W\d_]"


def per_rules(language: Language) -> Rules:
    """ "4/jour", "3,6 MB/seg", "12 €/kg"; what the table of units has stays."""
    per = word_table(language.per)

    def spoken(match: re.Match[str]) -> str:
        if f"{match['unit'].strip()}/{match['per']}" in language.unit_nouns:
            return match[0]
        measured = match["unit"].strip() in language.unit_nouns
        if measured and match["per"] in language.unit_nouns and "per_unit" in language.word:
            return (
                f"{match['unit']} {language.word['per_unit']} "
                + (language.unit_nouns[match["per"]].forms[0])
            )
        return f"{match['unit']} {per[match['per']]}"

    units = either(language.unit_nouns)
    return {
        rf"(?<=[0-9€$£])(?P<unit>(?:[{SPACES}]?(?:{units}))?)/(?P<per>{either(per)})"
        r"(?![\w/²³])": spoken,
        # "20 horas/semana"
        rf"(?<=[0-9])(?P<unit> [^\W\d_]{{3,12}})/(?P<per>{either(p for p in per if len(p) > 2)})"
        r"(?![\w/²³])": spoken,
    }


def unit_rules(language: Language) -> Rules:
    """ "5 km", "20 °C", "10-15 %", "½ kg"."""
    units = language.unit_nouns
    if not units:
        return {}
    names = either(units)
    # "ha" is a verb, too.
    end = (
        rf"(?!{language.letter_boundary}|[0-9²³'’]|/[a-z]\b|\.[0-9])"
        r"(?<!ha(?=\s(?!de\b|di\b|d['’])[\w]))"
    )
    gap = f"[{SPACES}]?"

    def measure(match: re.Match[str]) -> str:
        tall = _HEIGHT.fullmatch(match["first"] + match["unit"])
        if tall and not match["last"] and "height" in language.patterns:
            metres = language.count(units["m"], tall[1])
            rest = language.cardinal(int(tall[2]))
            return language.patterns["height"].format(metres=metres, rest=rest) + kept_stop(
                match, language.code
            )
        return language.count(units[match["unit"]], match["first"], match["last"]) + kept_stop(
            match, language.code
        )

    def part(match: re.Match[str]) -> str:
        """ "medio kilogramo", "tres cuartos de kilogramo", "dos kilogramos y medio"."""
        assert language.fraction is not None
        noun, whole = units[match["unit"]], match["before"]
        written = normalize("NFKD", match["part"]).replace("\u2044", "/")
        over, under = map(int, written.split("/"))
        if not 0 < over < under:
            return match[0]
        halved = (over, under) == (1, 2)
        if whole:
            half = language.word["and_half_f" if noun.gender == "f" else "and_half"]
            words = half if halved else f"{language.word['and']} {language.fraction(over, under)}"
            return f"{language.count(noun, whole)} {words}"
        if halved:
            return f"{language.word['half_f' if noun.gender == 'f' else 'half_m']} {noun.forms[0]}"
        return language.fraction(over, under) + language.of_millions(noun.forms[0])

    rules: Rules = {}
    if language.fraction is not None:
        rules[
            rf"{language.start}(?<!/)(?:(?P<before>[0-9]+)(?:\s|(?=[{VULGAR}])))?"
            rf"(?P<part>[{VULGAR}]|[1-9]/[1-9][0-9]?)\s?(?P<unit>{names}){end}"
        ] = part
    if "with_stop" in language.patterns:
        rules[
            rf"{language.start}(?P<first>{language.sign}{language.numeral})"
            rf"(?:{DASH}(?P<last>{language.numeral}))?{gap}"
            rf"(?P<unit>{language.patterns['with_stop']})\.(?!\w)"
        ] = measure
    rules[
        rf"{language.start}(?<!/)(?P<first>{language.sign}{language.numeral})"
        rf"(?:\s?(?:%|°)?{DASH}(?P<last>{language.numeral}))?{gap}(?:-(?![A-Z]\b))?"
        rf"(?!(?<=[0-9])K\b)(?P<unit>{names}){end}"
    ] = measure
    if "one_of" in language.patterns:
        rules |= _lone_units(language)
    if language.scales:
        scales = word_table(language.scales)
        words = either(scale for scale in scales if len(scale) > 1)
        rules[
            rf"{language.start}(?P<number>{language.numeral})"
            rf"(?P<scale>[kKM]|{gap}M(?=\s(?:de|di)\s|\sd['’])|{gap}(?:{words}))\b\.?"
        ] = lambda match: _scaled(language, match, scales) + kept_stop(match, language.code)
    return rules


_LONE = "km kg cm mm mg ml km/h km² m² m³ kWh kW MW GB MB TB".split()


def _lone_units(language: Language) -> Rules:
    """A unit that no digit stands before: "millones de km", "el precio por kg"."""

    def spoken(match: re.Match[str]) -> str:
        forms = language.unit_nouns[match["unit"]].forms
        return match["before"] + (forms[0] if match["one"] else forms[-1])

    units = either(unit for unit in _LONE if unit in language.unit_nouns)
    return {
        rf"(?<![\w.-])(?P<before>(?:(?P<one>(?i:{language.patterns['one_of']}))|[^\W\d_]+)\s)"
        rf"(?P<unit>{units})(?![\w²³/'’-]|\s?[0-9])": spoken,
    }


def _scaled(language: Language, match: re.Match[str], scales: dict[str, str]) -> str:
    if match[0] in ("2K", "4K", "8K"):  # screens
        return match[0]
    one, _, many = scales[match["scale"].strip(SPACES)].partition("/")
    if one in ("mil", "mille", "mila") and match["number"].isdecimal():
        return language.cardinal(1000 * int(match["number"]))
    words = language.in_words(match["number"], "m")
    return f"{words} {one if match['number'] == '1' or not many else many}"
