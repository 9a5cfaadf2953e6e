"""Polish and Russian."""

import re

from ..basic import basic_normalizer
from ..engine import Normalizer
from ..language import Language
from ..number_words import NumberWords
from ..tables import kept_stop


def _three_forms(whole: int, has_decimals: bool) -> int:
    """One, few, many; a number with decimals takes the form of few."""
    if has_decimals:
        return 1
    tens, ones = whole % 100 // 10, whole % 10
    if tens != 1 and 2 <= ones <= 4:
        return 1
    return 0 if ones == 1 and tens != 1 else 2


def _polish_plural(whole: int, has_decimals: bool) -> int:
    if has_decimals:
        return 3
    return 2 if whole % 10 == 1 and whole != 1 else _three_forms(whole, False)


_POLISH_ONES = (
    "0: zero|jeden|dwa|trzy|cztery|pięć|sześć|siedem|osiem|dziewięć|dziesięć|jedenaście|dwanaście|"
    "trzynaście|czternaście|piętnaście|szesnaście|siedemnaście|osiemnaście|dziewiętnaście; "
    "20: dwadzieścia[ >>]; 30: trzydzieści[ >>]; 40: czterdzieści[ >>]; 50: pięćdziesiąt[ >>]; "
    "60: sześćdziesiąt[ >>]; 70: siedemdziesiąt[ >>]; 80: osiemdziesiąt[ >>]; "
    "90: dziewięćdziesiąt[ >>]; 100: sto[ >>]; 200: dwieście[ >>]; 300: trzysta[ >>]; "
    "400: czterysta[ >>]; 500: pięćset[ >>]; 600: sześćset[ >>]; 700: siedemset[ >>]; "
    "800: osiemset[ >>]; 900: dziewięćset[ >>]; "
)
_RUSSIAN_ONES = (
    "0: ноль|один|два|три|четыре|пять|шесть|семь|восемь|девять|десять|одиннадцать|двенадцать|"
    "тринадцать|четырнадцать|пятнадцать|шестнадцать|семнадцать|восемнадцать|девятнадцать; "
    "20: двадцать[ >>]; 30: тридцать[ >>]; 40: сорок[ >>]; 50: пятьдесят[ >>]; "
    "60: шестьдесят[ >>]; 70: семьдесят[ >>]; 80: восемьдесят[ >>]; 90: девяносто[ >>]; "
    "100: сто[ >>]; 200: двести[ >>]; 300: триста[ >>]; 400: четыреста[ >>]; 500: пятьсот[ >>]; "
    "600: шестьсот[ >>]; 700: семьсот[ >>]; 800: восемьсот[ >>]; 900: девятьсот[ >>]; "
)


class _SlavicNumbers(NumberWords):
    """Scale words agree with the last digits of their count, which rules by base cannot say."""

    def __init__(self, ones: str, scales: tuple[tuple[str, str, str, str], ...], **forms: str):
        super().__init__(ones, 1000 ** (len(scales) + 1), **forms)
        self._scales = scales

    def spell(self, number: int, form: str = "") -> str:
        if number < 1000:
            return super().spell(number, form)
        groups = []
        for level, (gender, *words) in enumerate(self._scales, 1):
            count = number // 1000**level % 1000
            if count:
                counted = self.spell(count, gender)
                name = words[self._form(count)]
                groups.append(name if count == 1 else f"{counted} {name}")
        rest = number % 1000
        return " ".join([*reversed(groups), *([super().spell(rest, form)] if rest else [])])

    def _form(self, count: int) -> int:
        return _three_forms(count, False)


class _PolishNumbers(_SlavicNumbers):
    def _form(self, count: int) -> int:
        return _polish_plural(count, False)


_POLISH_NUMBERS = _PolishNumbers(
    _POLISH_ONES,
    (
        ("", "tysiąc", "tysiące", "tysięcy"),
        ("", "milion", "miliony", "milionów"),
        ("", "miliard", "miliardy", "miliardów"),
        ("", "bilion", "biliony", "bilionów"),
    ),
    f=_POLISH_ONES.replace("|jeden|dwa|", "|jedna|dwie|").replace("[ >>]", "[ >last>]"),
    last=_POLISH_ONES.replace("|dwa|", "|dwie|"),
)
# Genitive, as days and years are said: "dwunastego maja dwa tysiące dwudziestego czwartego roku".
_POLISH_GENITIVE = NumberWords(
    "0: zerowego|pierwszego|drugiego|trzeciego|czwartego|piątego|szóstego|siódmego|ósmego|"
    "dziewiątego|dziesiątego|jedenastego|dwunastego|trzynastego|czternastego|piętnastego|"
    "szesnastego|siedemnastego|osiemnastego|dziewiętnastego; 20: dwudziestego[ >>]; "
    "30: trzydziestego[ >>]; 40: czterdziestego[ >>]; 50: pięćdziesiątego[ >>]; "
    "60: sześćdziesiątego[ >>]; 70: siedemdziesiątego[ >>]; 80: osiemdziesiątego[ >>]; "
    "90: dziewięćdziesiątego[ >>]; 100: setnego; 200: dwusetnego; 300: trzysetnego; "
    "400: czterysetnego; 500: pięćsetnego; 600: sześćsetnego; 700: siedemsetnego; "
    "800: osiemsetnego; 900: dziewięćsetnego",
    1000,
)
_POLISH_HOURS = (
    "zero pierwsza druga trzecia czwarta piąta szósta siódma ósma dziewiąta dziesiąta jedenasta "
    "dwunasta trzynasta czternasta piętnasta szesnasta siedemnasta osiemnasta dziewiętnasta "
    "dwudziesta"
).split()


def _genitive_year(numbers: NumberWords, genitive: NumberWords, year: int, thousand: str) -> str:
    """Only the last part of a year is an ordinal."""
    if year == 2000:
        return thousand
    last = year % 100 or year % 1000
    head = numbers.spell(year - last) + " " if year > last else ""
    return head + genitive.spell(last)


def _polish_date(language: Language, day: int, month: int, year: int | None) -> str:
    words = f"{_POLISH_GENITIVE.spell(day)} {language.month_names[month - 1]}"
    if year is None or not 1000 <= year < 3000:
        return words if year is None else f"{words} {language.cardinal(year)}"
    spoken = _genitive_year(_POLISH_NUMBERS, _POLISH_GENITIVE, year, "dwutysięcznego")
    return f"{words} {spoken} roku"


def _polish_year(match: re.Match[str]) -> str:
    words = _genitive_year(_POLISH_NUMBERS, _POLISH_GENITIVE, int(match[2]), "dwutysięcznego")
    if match[1]:  # the locative: "w osiemdziesiątym dziewiątym roku"
        words = re.sub(r"(?<=[gc])iego\b", "im", words)
        words = re.sub(r"ego\b", "ym", words)
    return f"{match[1] or ''}{words} roku{kept_stop(match, 'pl')}"


def _polish_clock(language: Language, hour: int, minute: int) -> str:
    words = _POLISH_HOURS[hour] if hour <= 20 else f"dwudziesta {_POLISH_HOURS[hour - 20]}"
    if not minute:
        return words
    zero = "zero " if minute < 10 else ""
    return f"{words} {zero}{language.cardinal(minute)}"


def polish() -> Normalizer:
    """The rules for Polish."""
    return basic_normalizer(
        Language(
            code="pl",
            numbers=_POLISH_NUMBERS,
            words="minus: minus, comma: przecinek, point: kropka, to: do",
            months=(
                "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października "
                "listopada grudnia"
            ),
            date=_polish_date,
            clock=_polish_clock,
            patterns={"year_end": r"\s(?:r\.|roku\b)"},
            plural=_polish_plural,
            currencies=(
                "zł PLN: złoty/złote/złotych/złotego, € EUR: euro n, "
                "$ US$ USD: dolar/dolary/dolarów/dolara, "
                "£ GBP: funt/funty/funtów/funta, ¥: jen/jeny/jenów, R$: real/reale/reali"
            ),
            hundredths=(
                "zł PLN: grosz/grosze/groszy, € EUR: cent/centy/centów, "
                "$ US$ USD: cent/centy/centów, £ GBP: pens/pensy/pensów"
            ),
            money="{units} {cents} {cent}",
            units="%: procent, ‰: promil/promile/promili/promila, "
            "°C: stopień Celsjusza/stopnie Celsjusza/stopni Celsjusza/stopnia Celsjusza, "
            "°: stopień/stopnie/stopni/stopnia, "
            "km: kilometr/kilometry/kilometrów/kilometra, m: metr/metry/metrów/metra, "
            "cm: centymetr/centymetry/centymetrów/centymetra, "
            "kg: kilogram/kilogramy/kilogramów/kilograma, "
            "g: gram/gramy/gramów/grama, l: litr/litry/litrów/litra",
            extra={
                "numbers": {
                    # "w tysiąc dziewięćset osiemdziesiątym dziewiątym roku"
                    r"(?<![\w.,])([Ww]e?\s)?([12][0-9]{3})\s(?:r\.|roku\b)(?!\w)": _polish_year,
                },
                "words": {
                    # "o dziesiątej trzydzieści"
                    rf"(?<=\b[oO] )({'|'.join(_POLISH_HOURS[1:])})\b": lambda match: (
                        match[1][:-1] + ("iej" if match[1].endswith("ga") else "ej")
                        if not match[1].endswith("ia")
                        else match[1][:-1] + "ej"
                    ),
                },
            },
        )
    )


_RUSSIAN_NUMBERS = _SlavicNumbers(
    _RUSSIAN_ONES,
    (
        ("f", "тысяча", "тысячи", "тысяч"),
        ("", "миллион", "миллиона", "миллионов"),
        ("", "миллиард", "миллиарда", "миллиардов"),
        ("", "триллион", "триллиона", "триллионов"),
    ),
    f=_RUSSIAN_ONES.replace("|один|два|", "|одна|две|"),
    n=_RUSSIAN_ONES.replace("|один|", "|одно|"),
)
_RUSSIAN_GENITIVE = NumberWords(
    "0: нулевого|первого|второго|третьего|четвёртого|пятого|шестого|седьмого|восьмого|девятого|"
    "десятого|одиннадцатого|двенадцатого|тринадцатого|четырнадцатого|пятнадцатого|шестнадцатого|"
    "семнадцатого|восемнадцатого|девятнадцатого; 20: двадцатого; 21: двадцать >>; "
    "30: тридцатого; 31: тридцать >>; 40: сорокового; 41: сорок >>; 50: пятидесятого; "
    "51: пятьдесят >>; 60: шестидесятого; 61: шестьдесят >>; 70: семидесятого; "
    "71: семьдесят >>; 80: восьмидесятого; 81: восемьдесят >>; 90: девяностого; "
    "91: девяносто >>; 100: сотого; 200: двухсотого; 300: трёхсотого; 400: четырёхсотого; "
    "500: пятисотого; 600: шестисотого; 700: семисотого; 800: восьмисотого; 900: девятисотого",
    1000,
)
_DECIMAL_PARTS = {1: ("десятая", "десятых"), 2: ("сотая", "сотых"), 3: ("тысячная", "тысячных")}


def _russian_year(match: re.Match[str]) -> str:
    """ "в тысяча девятьсот восемьдесят девятом году"."""
    words = _genitive_year(_RUSSIAN_NUMBERS, _RUSSIAN_GENITIVE, int(match[1]), "двухтысячного")
    before = match.string[: match.start()].lower()
    name = match[2]
    if name == "г.":
        name = "году" if re.search(r"\b(?:в|во|о|об)\s\Z", before) else "года"
    if name == "году":
        words = re.sub(r"ьего\Z", "ьем", re.sub(r"ого\Z", "ом", words))
    elif name == "год":
        soft = "ой" if re.search(r"(?:втор|шест|седьм|восьм|сороков|нулев)ого\Z", words) else "ый"
        words = re.sub(r"ьего\Z", "ий", re.sub(r"ого\Z", soft, words))
    return f"{words} {name}{kept_stop(match, 'ru') if match[2] == 'г.' else ''}"


def _russian_date(language: Language, day: int, month: int, year: int | None) -> str:
    words = f"{_RUSSIAN_GENITIVE.spell(day)} {language.month_names[month - 1]}"
    if year is None or not 1000 <= year < 3000:
        return words if year is None else f"{words} {language.cardinal(year)}"
    spoken = _genitive_year(_RUSSIAN_NUMBERS, _RUSSIAN_GENITIVE, year, "двухтысячного")
    return f"{words} {spoken} года"


def _russian_clock(language: Language, hour: int, minute: int) -> str:
    words = language.cardinal(hour)
    zero = "ноль " if minute < 10 else ""
    return f"{words} {zero}{language.cardinal(minute) if minute else 'ноль'}"


def _russian_decimal(whole: int, decimals: str) -> str | None:
    """ "три целых пять десятых"."""
    if len(decimals) not in _DECIMAL_PARTS:
        return None
    number = int(decimals)
    part = _DECIMAL_PARTS[len(decimals)][0 if _three_forms(number, False) == 0 else 1]
    name = "целая" if _three_forms(whole, False) == 0 else "целых"
    first, last = (_RUSSIAN_NUMBERS.spell(count, "f") for count in (whole, number))
    return f"{first} {name} {last} {part}"


def russian() -> Normalizer:
    """The rules for Russian."""
    return basic_normalizer(
        Language(
            code="ru",
            numbers=_RUSSIAN_NUMBERS,
            words="minus: минус, comma: запятая, point: точка, to: тире",
            months=(
                "января февраля марта апреля мая июня июля августа сентября октября ноября декабря"
            ),
            date=_russian_date,
            patterns={"year_end": r"\s(?:г\.|года\b)"},
            clock=_russian_clock,
            plural=_three_forms,
            decimal_fraction=_russian_decimal,
            currencies=(
                "₽ RUB руб. руб: рубль/рубля/рублей, € EUR: евро, $ US$ USD: "
                "доллар/доллара/долларов, "
                "£ GBP: фунт/фунта/фунтов, ¥: иена/иены/иен f, R$: реал/реала/реалов"
            ),
            hundredths=(
                "₽ RUB руб. руб: копейка/копейки/копеек f, € EUR: цент/цента/центов, "
                "$ US$ USD: цент/цента/центов, £ GBP: пенс/пенса/пенсов"
            ),
            money="{units} {cents} {cent}",
            units="%: процент/процента/процентов, "
            "°C: градус Цельсия/градуса Цельсия/градусов Цельсия, °: градус/градуса/градусов, "
            "км: километр/километра/километров, м: метр/метра/метров, "
            "см: сантиметр/сантиметра/сантиметров, кг: килограмм/килограмма/килограммов, "
            "г: грамм/грамма/граммов, л: литр/литра/литров",
            extra={
                "numbers": {
                    r"(?<![\w.,])([12][0-9]{3})\s(году|года|год|г\.)(?!\w)": _russian_year,
                },
            },
        )
    )
