"""The stages that Spanish, French, Italian and Portuguese share."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from . import symbols
from .acronyms import Letters
from .calendar import date_rules, time_rules
from .engine import Normalizer, Rules
from .identifiers import WEB_NEEDED, model_rules, number_rules, web_rules
from .language import Language
from .numbers import VULGAR, fraction_rules, leftover_rules, plain_rules
from .quantities import PER_NEEDED, money_rules, per_rules, unit_rules
from .roman import NEEDED as ROMAN_NEEDED
from .tables import either, word_table

_WORD_AFTER = re.compile(r"[ \u00a0\u202f\u2009]([^\W\d_]+)(?!['’\w])")
_WORD_BEFORE = re.compile(r"([^\W\d_]+)[ \u00a0\u202f\u2009]\Z")

_SECOND_NUMBER = re.compile(
    r" (?:o|u|ou|y|e|et|a|à|(?:de|em) cada) [0-9]{1,3}(?! ?(?:[0-9%€$:]|h\b)|[.,/-][0-9])"
)

_FOREIGN_NOUNS = frozenset("byte file frame mouse release share cache".split())
# "3 a 1 fuera de casa", "2 por 1": what follows is not counted.
_SCORE_BEFORE = re.compile(r"[0-9]\s(?:a|à|por|per|par|vezes|fois)\s\Z")

_OF = "de |del "  # before the name of a month
# Hyphens between words and numbers: "ISO-8859-1", "UTF-8", "32-bit".
_HYPHEN_RULES: Rules = {
    r"(?<=[^\W\d_]-)([0-9]+)-(?=[0-9])": r"\1 ",
    r"(?<=[^\W\d_])-(?=[0-9])|(?<=[0-9])-(?=[^\W\d_])": " ",
}

# "20° C" is written "20 °C"; so is "20 ºC", where the sign of an ordinal often stands for a degree.
_SPACED = r"(?<=[0-9])\s°\s?(?=[CF]\b)|(?<=[0-9])°\s(?=[CF]\b)"
SPACED_DEGREES: Rules = {_SPACED: " °"}
ORDINAL_DEGREES: Rules = {
    r"(?<=[0-9],[0-9])º(?!\w)(?!\s?[CF]\b)": "°",
    rf"(?<=[0-9])\s?º\s?(?=[CF]\b)|{_SPACED}": " °",
}
SHORT_YEARS: Rules = {r"(?<![\w.,])[’']([0-9]{2})(?!\w)": r"\1"}  # '99
# Where no word loses a vowel to an apostrophe: "Win'95".
ANY_SHORT_YEARS: Rules = SHORT_YEARS | {r"(?<=[^\W\d_])[’'](?=[0-9]{2}(?!\w))": " "}
_PRIME = r"(?<![\w.,'’])(?P<number>[0-9]{1,3})[′'’](?=[\s,.;:)]|\Z)"


def _minutes(language: Language) -> Rules:
    """ "35'": minutes, where no quotation ends."""

    def spoken(match: re.Match[str]) -> str:
        if re.search(r"(?<!\w)['‘’](?=\w)", match.string[: match.start()]):
            return match[0]
        return language.count(language.unit_nouns["min"], match["number"])

    def inches(match: re.Match[str]) -> str:
        if match.string.count('"', 0, match.start()) % 2:
            return match[0]
        return language.count(language.unit_nouns["″"], match["number"])

    def with_seconds(match: re.Match[str]) -> str:
        if int(match[2]) > 59:
            return match[0]
        counts = (
            language.count(language.unit_nouns["min"], str(int(match[1]))),
            language.count(language.unit_nouns["s"], str(int(match[2]))),
        )
        link = language.word.get("and_minutes")
        return (f" {link} " if link else " ").join(counts)

    return {
        r"(?<![\w.,'’])([0-9]{1,3})[′'’]\s?([0-9]{1,2})(?:[″\"”]|''"
        r"|(?!\w|['’]|\s?[ckm]?m\b))": with_seconds,
        r"(?<![\w.,'’])([0-9]{1,3})\s?min\s?([0-9]{1,2})\s?(?:s|seg|sec)\b": with_seconds,
        _PRIME: spoken,
        r"(?<![\w.,'’])(?P<number>[0-9]{1,3}(?:[.,][0-9])?)[\"”](?=[\s,.;:)]|\Z)": inches,
    }


# "1m75" is 1,75 m.
_METRES: Rules = {r"(?<![\w.,])([0-9])\s?m\s?([0-9]{2})(?!\w|[.,][0-9])": r"\1,\2 m"}
_POWERS: Rules = {r"(?<=[a-z])\^2(?![0-9])": "²", r"(?<=[a-z])\^3(?![0-9])": "³"}

_WEATHER = re.compile(r"(?i)temperat|máx|mín|grados|graus|term[óô]metro|calor|fr[íi]o|horno|forno")
# "do 1º ao 5º ano" is no temperature.
_ARTICLE_BEFORE = re.compile(r"(?i:\b(?:do|o|ao|no|pelo|el|al|del))\s\Z")


def _weather_degrees(match: re.Match[str]) -> str:
    if _ARTICLE_BEFORE.search(match.string, max(0, match.start() - 6), match.start()):
        return match[0]
    cold = match[0][0] in "-−"
    return f"{match[1]}°" if cold or _WEATHER.search(match.string) else match[0]


# "31º" for "31°", where the text is about temperatures.
WEATHER_DEGREES: Rules = {
    r"(?<![\w.,])([-−]?[0-9]{1,3})\s?º(?=[\s,.;:)]|\Z)(?!\s[CF]\b)": _weather_degrees
}


@dataclass(frozen=True)
class Agreement:
    """Decides by the noun after a number which gender the number takes."""

    feminine: re.Pattern[str]  # singular and plural nouns
    masculine: frozenset[str]  # those that only look feminine
    function_words: frozenset[str]  # what follows a number that stands by itself
    labels: frozenset[str]  # nouns that a number names: "page 1"
    plural: re.Pattern[str]
    adjectives: frozenset[str]  # those that may stand before a noun and tell no gender of it
    thousand: str  # what is counted may follow it
    millions: frozenset[str]  # masculine nouns themselves
    label_form: str = ""
    feminine_part: str = "(?!)"  # after a number: "200 de las casas"
    only_one: bool = False  # no number but one has a gender
    feminine_articles: frozenset[str] = frozenset()  # "a las 21", "às 2 da tarde"

    def __call__(self, match: re.Match[str], number: int) -> str:
        before = _WORD_BEFORE.search(match.string, max(0, match.start() - 24), match.start())
        if before is not None and before[1].lower() in self.labels:
            return self.label_form
        if _SCORE_BEFORE.search(match.string, max(0, match.start() - 12), match.start()):
            return ""
        if (second := _SECOND_NUMBER.match(match.string, match.end())) is not None:
            return self._with_second(match.string, second.end())
        if self.only_one and number != 1:
            return ""
        found = _WORD_AFTER.match(match.string, match.end())
        thousands = found is not None and found[1] == self.thousand
        if found is not None and thousands:
            found = _WORD_AFTER.match(match.string, found.end())
        if found is not None and found[1].lower() in self.millions:
            return "m"
        if found is not None and found[1].lower() in self.adjectives:
            noun = _WORD_AFTER.match(match.string, found.end())
            if noun is not None and noun[1].lower() not in self.function_words:
                found = noun
        if re.match(rf"\s(?:{self.feminine_part})\b", match.string[match.end() : match.end() + 12]):
            return "f"
        form = self._form(match, number, found)
        if not form and before is not None and before[1].lower() in self.feminine_articles:
            return "f"
        return form or ("m" if thousands else "")

    def _with_second(self, text: str, end: int) -> str:
        """ "una o dos veces", but "uno o dos años"."""
        found = _WORD_AFTER.match(text, end)
        if found is None or found[1].lower() in self.function_words | self.masculine:
            return ""
        noun = found[1].lower()
        if self.only_one:  # whose pattern is of singular nouns
            if noun in _FOREIGN_NOUNS:
                return ""
            noun = re.sub("e\\Z", "a", noun)
        return "f" if self.feminine.fullmatch(noun) else ""

    def _form(self, match: re.Match[str], number: int, found: re.Match[str] | None) -> str:
        if found is None or found[1].lower() in self.function_words:
            return ""
        noun = found[1].lower()
        if number != 1 and not self.plural.search(noun):
            return ""
        if self.feminine.fullmatch(noun) and noun not in self.masculine:
            return "f"
        return "m"

    def degree_ordinals(self, ordinal: Callable[[int, str], str]) -> Rules:
        """ "3° piano": a degree sign that is written for the sign of an ordinal."""

        def spoken(match: re.Match[str]) -> str:
            noun = match["noun"].lower()
            if noun in self.function_words or noun in _DIRECTIONS:
                return match[0]
            return ordinal(int(match["number"]), "m")

        return {
            r"(?<![\w.,°-])(?P<number>[1-9][0-9]?)\.?°(?=[ "
            r"\u00a0](?P<noun>[^\W\d_]{2,})(?!['’\w]))": spoken
        }


def _counted_rules(language: Language) -> Rules:
    """What stands between a number and what it counts: "3/4 taza", "1.000.000 habitantes"."""
    agreement = language.agreement
    function_words = agreement.function_words if isinstance(agreement, Agreement) else frozenset()

    def part(match: re.Match[str]) -> str:
        over, under = int(match["over"]), int(match["under"])
        if not 0 < over < under or language.fraction is None:
            return match[0]
        return language.fraction(over, under) + language.of_millions(match["noun"])

    def millions(match: re.Match[str]) -> str:
        if match["noun"] in function_words:
            return match[0]
        return language.in_words(match["number"], "m") + language.of_millions(match["noun"])

    def and_half(match: re.Match[str]) -> str:
        noun = match["noun"].lower()
        feminine = language.code == "it" and noun.endswith("e")
        if isinstance(agreement, Agreement):
            feminine = feminine or agreement.feminine.fullmatch(noun) is not None
        return f"{match['noun']} {language.word['and_half_f' if feminine else 'and_half']}"

    between = language.patterns["between"]
    return {
        rf"(?P<noun>[^\W\d_]{{3,}})\s{language.word['and']}\s(?:1/2(?![/\w])|½)"
        r"(?=[,.;:)]|\s*\Z|\s(?:de|di|d['’]|en|in|em|para|per|pour)\b)": and_half,
        rf"(?<=\s{language.word['and']}\s)\+(?!\S*[0-9])": language.word["plus"],
        rf"\b(?P<lead>{between})\s(?P<first>[0-9][0-9.,]*)(?:-|\s?–\s?)(?=[0-9])": (
            rf"\g<lead> \g<first> {language.word['and']} "
        ),
        r"(?<![\w/.,])(?P<over>[1-9])/(?P<under>[3-9]|10)\s"
        rf"(?P<noun>{language.patterns['measures']})\b": part,
        r"(?<![\w.,])(?P<number>[1-9][0-9]{0,2}(?:[ .\u00a0\u202f]000){2,3})\s"
        r"(?P<noun>[a-zà-ÿ]{3,})(?!\w)": millions,
    }


# After degrees of temperature, latitude and longitude.
_DIRECTIONS = frozenset(
    "norte sur sul este leste oeste nord sud est ovest bajo sotto sopra abaixo acima centígrados "
    "celsius fahrenheit centigradi oggi hoy hoje ieri ayer ontem".split()
)


def normalizer(
    language: Language,
    letters: Letters,
    *,
    abbreviations: Rules,
    ordinals: Rules,
    roman: Rules,
    phones: tuple[str, ...],
    phones_by_groups: bool = False,
    abbreviated: str,
) -> Normalizer:
    """All rules of a Romance language in their order, each set with what a text must hold.

    abbreviated: a pattern of abbreviations that are written without a stop, or end a sentence.
    """
    months = either([*language.month_names, *language.month_forms])
    days = either(word_table(language.patterns["days"]))
    date = rf"(?i:\b(?:{days}))\S{{0,5}}\s?[-–]\s?[^\W\d_]"
    date += rf"|\b(?i:{language.patterns['day_lead']})\s(?:{days})\."
    date += rf"|[0-9][-/](?i:{months})"
    date += rf"|[0-9][-/.]\s?[0-9]|[0-9]\S{{0,2}}\s(?:{_OF})?(?i:{months})|(?i:{months})\.?\s[12]"
    hours = language.patterns["hours"]
    marks = either(name for name in language.currency_nouns if not name.isalpha())
    currency = rf"{marks}|\b(?:{either(filter(str.isalpha, language.currency_nouns))})\b"
    units = either(language.unit_nouns)
    # "N-340"
    road: Rules = {r"(?<![\w.-])([A-Z])-(?=[0-9])": lambda match: f"{letters.spelled(match[1])} "}
    return Normalizer(
        (
            (WEB_NEEDED, web_rules(language, letters)),
            (
                r"[0-9][ .()\u00a0\u202f/-]*[0-9][ "
                r".()\u00a0\u202f/-]*[0-9]|[0-9][eE.]|v\.?\s?[0-9]",
                number_rules(language, letters, phones, phones_by_groups),
            ),
            (
                r"[-−–<>#№±~≈∼+xX×:/$](?=.?[-−0-9$£€])|[0-9]\s?[xX×]|\w\s\w{1,2}\s[½+]|"
                r"000[ .\u00a0\u202f]000",
                language.extra.get("signs", {})
                | _counted_rules(language)
                | {r"(?<![A-Za-z])\$\s?(?=[0-9.,]*[0-9]\s(?:MXN|ARS|CLP|COP|USD|CAD|AUD)\b)": ""}
                | {r"(?<=[lL])\s?/\s?(?=100\s?km\b)": f" {language.word['every']} "}
                | symbols.before_number_rules(language),
            ),
            (date, language.extra.get("dates", {}) | date_rules(language)),
            (rf"[0-9]\s?(?::|{hours}|[aApP]\.?\s?[mM])|[0-9]\.[0-9]", time_rules(language)),
            (
                rf"\.\s?[\w,;:)ªº-]|[º°ªᵒ/]|[0-9]\s(?:págs?|pagg?|pp?)\.|{abbreviated}",
                abbreviations,
            ),
            (PER_NEEDED, per_rules(language)),
            (currency, money_rules(language)),
            (
                rf"[^\W\d_]\s(?:[ckm]?m|[km]g|ml|[kM]W|[GMT]B)|[0-9{VULGAR}]\S?\s?(?:(?:{units})(?!\w)|[°º])|[’'][0-9]|[0-9][′'’\"”]|[0-9]\s?m|[0-9]\s?[kKMBmb]",
                _POWERS
                | _METRES
                | language.extra.get("units", {})
                | _minutes(language)
                | unit_rules(language),
            ),
            (ROMAN_NEEDED, roman),
            (r"[0-9]\s?[^\W\d_]|[0-9][.º°]", ordinals),
            (
                rf"[{VULGAR}²³⁰¹⁴-⁹⁻^⁄/]",
                language.extra.get("fractions", {}) | fraction_rules(language),
            ),
            (
                "[0-9]",
                language.extra.get("numbers", {}) | road | _HYPHEN_RULES | plain_rules(language),
            ),
            ("[0-9]", model_rules(language, letters) | leftover_rules(language)),
            (symbols.NEEDED, symbols.rules(language)),
            ("[A-Z]{2}|[A-Z][.]", letters.rules()),
        )
    )
