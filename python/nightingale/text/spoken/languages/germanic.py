"""German, Dutch, Danish, Norwegian and Swedish."""

import re
from collections.abc import Callable

from ..basic import basic_normalizer
from ..engine import Normalizer, Rules
from ..language import Language
from ..number_words import NumberWords

# Four digits that are read in hundreds, as years are.
_YEAR = r"(?<![\w.,:/-])1[1-9][0-9]{2}(?![\w]|[.,:/][0-9]|-[0-9])"


def _years(spoken: Callable[[int], str]) -> Rules:
    return {_YEAR: lambda match: spoken(int(match[0]))}


def _dated(day: Callable[[int], str], year: Callable[[int], str]) -> Callable[..., str]:
    def date(language: Language, number: int, month: int, written: int | None) -> str:
        words = f"{day(number)} {language.month_names[month - 1]}"
        return words if written is None else f"{words} {year(written)}"

    return date


def _hundreds(numbers: NumberWords, hundred: str, joint: str = "") -> Callable[[int], str]:
    """Years from 1100 to 1999 in hundreds."""

    def year(number: int) -> str:
        century, rest = divmod(number, 100)
        if not 11 <= century <= 19:
            return numbers.spell(number)
        words = numbers.spell(century) + hundred
        return words + (joint + numbers.spell(rest) if rest else "")

    return year


_GERMAN_NUMBERS = NumberWords(
    "0: null|eins; 2: =part=; 100: <part<hundert[>>]; 1000: <part<tausend[>>]; "
    "1000000: eine Million[ >>]; 2000000: <part<_Millionen[ >>]; "
    "1000000000: eine Milliarde[ >>]; 2000000000: <part<_Milliarden[ >>]; "
    "1000000000000: eine Billion[ >>]; 2000000000000: <part<_Billionen[ >>]",
    part=(
        "0: null|ein|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf|dreizehn|vierzehn|"
        "fünfzehn|sechzehn|siebzehn|achtzehn|neunzehn; 20: [>>und]zwanzig; 30: [>>und]dreißig; "
        "40: [>>und]vierzig; 50: [>>und]fünfzig; 60: [>>und]sechzig; 70: [>>und]siebzig; "
        "80: [>>und]achtzig; 90: [>>und]neunzig; 100: <<hundert[>>]; 1000: <<tausend[>>]"
    ),
    m="0: =all=; 1: ein; 2: =all=",
    f="0: =all=; 1: eine; 2: =all=",
    all="0: null|eins; 2: =main=".replace("=main=", "=whole="),
    whole=(
        "0: null; 2: =part=; 100: <part<hundert[>all>]; 1000: <part<tausend[>all>]; "
        "1000000: eine Million[ >all>]; 2000000: <part<_Millionen[ >all>]; "
        "1000000000: eine Milliarde[ >all>]; 2000000000: <part<_Milliarden[ >all>]; "
        "1000000000000: eine Billion[ >all>]; 2000000000000: <part<_Billionen[ >all>]"
    ),
)
_GERMAN_ORDINALS = {1: "erster", 3: "dritter", 7: "siebter", 8: "achter"}
_german_year = _hundreds(_GERMAN_NUMBERS, "hundert")


def _german_day(number: int) -> str:
    if number in _GERMAN_ORDINALS:
        return _GERMAN_ORDINALS[number]
    return _GERMAN_NUMBERS.spell(number) + ("ter" if number < 20 else "ster")


def _german_clock(language: Language, hour: int, minute: int) -> str:
    words = f"{language.cardinal(hour, 'm')} Uhr"
    return f"{words} {language.cardinal(minute)}" if minute else words


def _german_ordinal(match: re.Match[str]) -> str:
    """ "der zweite Weltkrieg", "im zweiten Weltkrieg"."""
    ending = "" if match["article"].lower() in ("der", "die", "das") else "n"
    return f"{match['article']} {_german_day(int(match['number']))[:-1]}{ending}"


def _german_one(match: re.Match[str]) -> str:
    """ "ein Kind", "eine Frau", "seit einer Stunde"."""
    noun, before = match["noun"], match.string[: match.start()]
    feminine = re.search(r"(?:e|ung|heit|keit|schaft|ion|tät|Frau|Person|Uhr)\Z", noun)
    is_feminine = feminine is not None and noun not in ("Auge", "Ende", "Name")
    if re.search(r"\b(?:[Ss]eit|[Vv]or|[Nn]ach|[Mm]it|[Vv]on|[Zz]u|[Aa]us|[Bb]ei)\s\Z", before):
        return "einer" if is_feminine else "einem"
    return "eine" if is_feminine else "ein"


_GERMAN_RULES: Rules = {
    r"\b(?P<article>[Dd](?:er|ie|as|em|en|es)|[Ii]m|[Aa]m|[Zz]um|[Zz]ur|[Bb]eim|[Vv]om|[Ii]hre[mn]|"
    r"[Ss]eine[mn]|[Uu]nsere[mn])\s(?P<number>[1-9][0-9]{0,2})\.(?=\s[A-ZÄÖÜ][a-zäöüß])": (
        _german_ordinal
    ),
    r"(?<![\w.,:/-])1(?=\s(?P<noun>[A-ZÄÖÜ][a-zäöüß]+)\b)": _german_one,
    r"(?<![\w.,:/-])1/2(?=\s[A-ZÄÖÜ])": "ein halber",
    r"(?<![\w.,:/-])1/4(?![\w/])": "ein Viertel",
    r"(?<![\w.,:/-])3/4(?![\w/])": "drei Viertel",
}
_GERMAN_MONTHS = (
    "Januar Februar März April Mai Juni Juli August September Oktober November Dezember"
)


def german() -> Normalizer:
    """The rules for German."""
    return basic_normalizer(
        Language(
            code="de",
            numbers=_GERMAN_NUMBERS,
            words="minus: minus, comma: Komma, point: Punkt, to: bis",
            months=_GERMAN_MONTHS,
            month_forms={"jan": 1, "feb": 2, "sept": 9, "okt": 10, "nov": 11, "dez": 12},
            date=_dated(_german_day, _german_year),
            clock=_german_clock,
            patterns={
                "day_end": r"\.",
                "hours": "Uhr|h",
                "dotted_clock": r"(?<![\w.,]){time}\s?Uhr\b",
            },
            currencies=(
                "€ EUR: Euro, $ US$ USD: Dollar, £ GBP: Pfund n, ¥: Yen, "
                "CHF: Schweizer Franken, R$: Real"
            ),
            hundredths="€ EUR: Cent, $ US$ USD: Cent, £ GBP: Pence, CHF: Rappen",
            money="{units} {cents}",
            units=(
                "%: Prozent, ‰: Promille, °C: Grad Celsius, °: Grad, km: Kilometer, m: Meter, "
                "cm: Zentimeter, mm: Millimeter, kg: Kilogramm, g: Gramm, l: Liter, "
                "ml: Milliliter, km/h: Kilometer pro Stunde, m²: Quadratmeter, "
                "km²: Quadratkilometer, min Min.: Minute/Minuten f, h: Stunde/Stunden f, "
                "GB: Gigabyte, MB: Megabyte, kWh: Kilowattstunde/Kilowattstunden f"
            ),
            spelled_decimals=True,
            extra={
                "numbers": _years(_german_year) | _GERMAN_RULES,
                "words": {
                    # "am zwölften Mai"
                    r"\b((?:[Aa]m|[Vv]om|[Zz]um|[Dd]em|[Dd]en|[Bb]is|[Aa]b|[Ss]eit)\s\w+te)r"
                    rf"(?=\s(?:{'|'.join(_GERMAN_MONTHS.split())})\b)": r"\1n",
                    r"\b([Dd]er\s\w+te)r"
                    rf"(?=\s(?:{'|'.join(_GERMAN_MONTHS.split())})\b)": r"\1",
                },
            },
        )
    )


_DUTCH_ONES = "een twee drie vier vijf zes zeven acht negen".split()
_DUTCH_TENS = "twintig dertig veertig vijftig zestig zeventig tachtig negentig".split()
_DUTCH_NUMBERS = NumberWords(
    "0: nul|een|twee|drie|vier|vijf|zes|zeven|acht|negen|tien|elf|twaalf|dertien|veertien|vijftien|"
    "zestien|zeventien|achttien|negentien; "
    + "".join(
        f"{10 * i}: {ten}"
        + "".join(f"|{one}{'ën' if one[-1] == 'e' else 'en'}{ten}" for one in _DUTCH_ONES)
        + "; "
        for i, ten in enumerate(_DUTCH_TENS, 2)
    )
    + "100: honderd[>>]; 200: <<honderd[>>]; 1000: duizend[ >>]; 2000: <<duizend[ >>]; "
    "1000000: << miljoen[ >>]; 1000000000: << miljard[ >>]; 1000000000000: << biljoen[ >>]"
)
_dutch_year = _hundreds(_DUTCH_NUMBERS, "honderd")


def _dutch_clock(language: Language, hour: int, minute: int) -> str:
    words = f"{language.cardinal(hour)} uur"
    return f"{words} {language.cardinal(minute)}" if minute else words


def dutch() -> Normalizer:
    """The rules for Dutch."""
    return basic_normalizer(
        Language(
            code="nl",
            numbers=_DUTCH_NUMBERS,
            words="minus: min, comma: komma, point: punt, to: tot",
            months=(
                "januari februari maart april mei juni juli augustus september oktober november "
                "december"
            ),
            month_forms={"jan": 1, "feb": 2, "mrt": 3, "apr": 4, "aug": 8, "sep": 9, "okt": 10},
            date=_dated(_DUTCH_NUMBERS.spell, _dutch_year),
            clock=_dutch_clock,
            patterns={"hours": "uur|u", "dotted_clock": r"(?<![\w.,]){time}\s?uur\b"},
            currencies="€ EUR: euro, $ US$ USD: dollar, £ GBP: pond, ¥: yen, R$: real",
            hundredths="€ EUR: cent, $ US$ USD: cent, £ GBP: pence",
            money="{units} {cents}",
            units=(
                "%: procent, ‰: promille, °C: graden Celsius, °: graden, km: kilometer, m: meter, "
                "cm: centimeter, mm: millimeter, kg: kilogram, g: gram, l: liter, ml: milliliter, "
                "km/h: kilometer per uur, m²: vierkante meter, km²: vierkante kilometer, "
                "min: minuut/minuten, GB: gigabyte, MB: megabyte"
            ),
            extra={"numbers": _years(_dutch_year)},
        )
    )


def _scandinavian(
    code: str,
    numbers: NumberWords,
    ordinals: str,
    year: Callable[[int], str],
    *,
    words: str,
    months: str,
    currencies: str,
    hundredths: str,
    units: str,
    money: str,
    oclock: str,
) -> Normalizer:
    days = ordinals.split()

    def clock(language: Language, hour: int, minute: int) -> str:
        first = language.cardinal(hour)
        if not minute:
            return first
        zero = f"{language.cardinal(0)} " if minute < 10 else ""
        return f"{first} {zero}{language.cardinal(minute)}"

    return basic_normalizer(
        Language(
            code=code,
            numbers=numbers,
            words=words,
            months=months,
            date=_dated(lambda number: days[number - 1], year),
            clock=clock,
            patterns={
                "day_end": r"(?:\.|:[ae])?",
                "dotted_clock": rf"(?<=\b{oclock} ){{time}}",
            },
            currencies=currencies,
            hundredths=hundredths,
            money=money,
            units=units,
            extra={
                "numbers": _years(year),
                "dates": {r"\b[Kk]l\.?\s(?=[0-9])": f"{oclock} "},
            },
        )
    )


_DANISH_ONES = "en to tre fire fem seks syv otte ni".split()
_DANISH_TENS = "tyve tredive fyrre halvtreds tres halvfjerds firs halvfems".split()
_DANISH = (
    "0: nul|en|to|tre|fire|fem|seks|syv|otte|ni|ti|elleve|tolv|tretten|fjorten|femten|seksten|"
    "sytten|atten|nitten; "
    + "".join(
        f"{10 * i}: {ten}" + "".join(f"|{one}og{ten}" for one in _DANISH_ONES) + "; "
        for i, ten in enumerate(_DANISH_TENS, 2)
    )
    + "100: et hundrede[ og >>]; 200: << hundrede[ og >>]; 1000: et tusind[ >r>]; "
    "2000: << tusind[ >r>]; 1000000: en million[ >r>]; 2000000: << millioner[ >r>]; "
    "1000000000: en milliard[ >r>]; 2000000000: << milliarder[ >r>]; "
    "1000000000000: en billion[ >r>]; 2000000000000: << billioner[ >r>]"
)
_DANISH_NUMBERS = NumberWords(_DANISH, r="1: og =b=; 100: =b=", b=_DANISH)


def danish() -> Normalizer:
    """The rules for Danish."""
    return _scandinavian(
        "da",
        _DANISH_NUMBERS,
        "første anden tredje fjerde femte sjette syvende ottende niende tiende ellevte tolvte "
        "trettende fjortende femtende sekstende syttende attende nittende tyvende enogtyvende "
        "toogtyvende treogtyvende fireogtyvende femogtyvende seksogtyvende syvogtyvende "
        "otteogtyvende niogtyvende tredivte enogtredivte",
        _hundreds(_DANISH_NUMBERS, " hundrede", " og "),
        words="minus: minus, comma: komma, point: punktum, to: til",
        months=(
            "januar februar marts april maj juni juli august september oktober november december"
        ),
        currencies=(
            "kr kr. DKK: krone/kroner, € EUR: euro, $ US$ USD: dollar, £ GBP: pund, ¥: yen, R$: "
            "real"
        ),
        hundredths="kr kr. DKK: øre, € EUR: cent, $ US$ USD: cent, £ GBP: pence",
        money="{units} og {cents} {cent}",
        units=(
            "%: procent, ‰: promille, °C: grader Celsius, °: grad/grader, km: kilometer, m: meter, "
            "cm: centimeter, mm: millimeter, kg: kilo, g: gram n, l: liter, ml: milliliter, "
            "km/t: kilometer i timen, m²: kvadratmeter, km²: kvadratkilometer, "
            "min: minut/minutter, GB: gigabyte, MB: megabyte"
        ),
        oclock="klokken",
    )


_NORWEGIAN = (
    "0: null|en|to|tre|fire|fem|seks|sju|åtte|ni|ti|elleve|tolv|tretten|fjorten|femten|seksten|"
    "sytten|atten|nitten; 20: tjue[>>]; 30: tretti[>>]; 40: førti[>>]; 50: femti[>>]; "
    "60: seksti[>>]; 70: sytti[>>]; 80: åtti[>>]; 90: nitti[>>]; 100: ett hundre[ og >>]; "
    "200: << hundre[ og >>]; 1000: ett tusen[ >r>]; 2000: << tusen[ >r>]; "
    "1000000: en million[ >r>]; 2000000: << millioner[ >r>]; 1000000000: en milliard[ >r>]; "
    "2000000000: << milliarder[ >r>]; 1000000000000: en billion[ >r>]; "
    "2000000000000: << billioner[ >r>]"
)
_NORWEGIAN_NUMBERS = NumberWords(_NORWEGIAN, r="1: og =b=; 100: =b=", b=_NORWEGIAN)


def norwegian() -> Normalizer:
    """The rules for Norwegian (Bokmål)."""
    return _scandinavian(
        "no",
        _NORWEGIAN_NUMBERS,
        "første andre tredje fjerde femte sjette sjuende åttende niende tiende ellevte tolvte "
        "trettende fjortende femtende sekstende syttende attende nittende tjuende tjueførste "
        "tjueandre tjuetredje tjuefjerde tjuefemte tjuesjette tjuesjuende tjueåttende tjueniende "
        "trettiende trettiførste",
        _hundreds(_NORWEGIAN_NUMBERS, " hundre", " og "),
        words="minus: minus, comma: komma, point: punktum, to: til",
        months=(
            "januar februar mars april mai juni juli august september oktober november desember"
        ),
        currencies=(
            "kr kr. NOK: krone/kroner, € EUR: euro, $ US$ USD: dollar, £ GBP: pund, ¥: yen, R$: "
            "real"
        ),
        hundredths="kr kr. NOK: øre, € EUR: cent, $ US$ USD: cent, £ GBP: pence",
        money="{units} og {cents} {cent}",
        units=(
            "%: prosent, ‰: promille, °C: grader Celsius, °: grad/grader, km: kilometer, m: meter, "
            "cm: centimeter, mm: millimeter, kg: kilo, g: gram n, l: liter, ml: milliliter, "
            "km/t: kilometer i timen, m²: kvadratmeter, km²: kvadratkilometer, "
            "min: minutt/minutter n, GB: gigabyte, MB: megabyte"
        ),
        oclock="klokken",
    )


_SWEDISH = (
    "0: noll|ett|två|tre|fyra|fem|sex|sju|åtta|nio|tio|elva|tolv|tretton|fjorton|femton|sexton|"
    "sjutton|arton|nitton; 20: tjugo[>>]; 30: trettio[>>]; 40: fyrtio[>>]; 50: femtio[>>]; "
    "60: sextio[>>]; 70: sjuttio[>>]; 80: åttio[>>]; 90: nittio[>>]; 100: etthundra[>>]; "
    "200: <<hundra[>>]; 1000: ettusen[ >>]; 2000: <<tusen[ >>]; 1000000: en miljon[ >>]; "
    "2000000: << miljoner[ >>]; 1000000000: en miljard[ >>]; 2000000000: << miljarder[ >>]; "
    "1000000000000: en biljon[ >>]; 2000000000000: << biljoner[ >>]"
)
_SWEDISH_NUMBERS = NumberWords(_SWEDISH, b=_SWEDISH, m="0: =b=; 1: en; 2: =b=")


def swedish() -> Normalizer:
    """The rules for Swedish."""
    return _scandinavian(
        "sv",
        _SWEDISH_NUMBERS,
        "första andra tredje fjärde femte sjätte sjunde åttonde nionde tionde elfte tolfte "
        "trettonde "
        "fjortonde femtonde sextonde sjuttonde artonde nittonde tjugonde tjugoförsta tjugoandra "
        "tjugotredje tjugofjärde tjugofemte tjugosjätte tjugosjunde tjugoåttonde tjugonionde "
        "trettionde trettioförsta",
        _hundreds(_SWEDISH_NUMBERS, "hundra"),
        words="minus: minus, comma: komma, point: punkt, to: till",
        months=(
            "januari februari mars april maj juni juli augusti september oktober november december"
        ),
        currencies=(
            "kr kr. SEK: krona/kronor, € EUR: euro, $ US$ USD: dollar, £ GBP: pund n, ¥: yen, "
            "R$: real"
        ),
        hundredths="kr kr. SEK: öre, € EUR: cent, $ US$ USD: cent, £ GBP: pence",
        money="{units} och {cents} {cent}",
        units=(
            "%: procent n, ‰: promille n, °C: grader Celsius, °: grad/grader, km: kilometer, "
            "m: meter, cm: centimeter, mm: millimeter, kg: kilo n, g: gram n, l: liter, "
            "ml: milliliter, km/h: kilometer i timmen, m²: kvadratmeter, km²: kvadratkilometer, "
            "min: minut/minuter, GB: gigabyte, MB: megabyte"
        ),
        oclock="klockan",
    )
