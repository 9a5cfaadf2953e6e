"""Rules for dates and times of day."""

import re

from .engine import Rules
from .language import DASH, SPACES, Language
from .tables import either, kept_stop, word_table

_ISO = (
    r"(?<![\w-])(?P<year>[0-9]{4})(?P<separator>[-/])(?P<month>[0-9]{1,2})(?P=separator)"
    r"(?P<day>[0-9]{1,2})"
    r"(?:(?:T|,?\s)(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})(?::[0-9]{2}(?:[.,][0-9]+)?)?"
    r"(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?(?![0-9A-Za-z/-])"
)
_NUMERIC = (
    r"(?<![0-9A-Za-z./-])(?P<first>[0-9]{1,2})[º°]?(?P<separator>[/.-])\s?(?P<second>[0-9]{1,2})"
    r"(?P=separator)\s?(?P<year>[0-9]{4}|[0-9]{2}(?<=/..)|[4-9][0-9](?<=-..))(?![0-9A-Za-z/-]|\.[0-9])"
)


def date_rules(language: Language) -> Rules:
    """Dates in digits, and those with the name of a month."""

    def iso(match: re.Match[str]) -> str:
        words = _date(language, int(match["day"]), int(match["month"]), int(match["year"]))
        if words is None or match["hour"] is None:
            return words or match[0]
        return f"{words}, {language.clock(language, int(match['hour']), int(match['minute']))}"

    def numeric(match: re.Match[str]) -> str:
        first, second = int(match["first"]), int(match["second"])
        day, month = (first, second) if language.day_first or first > 12 else (second, first)
        written = match["year"]
        century = 0 if len(written) == 4 else 2000 if written < "50" else 1900
        words = _date(language, day, month, century + int(written))
        return match[0] if words is None else words + kept_stop(match, language.code)

    def short(match: re.Match[str]) -> str:
        return _date(language, int(match["day"]), int(match["month"]), None) or match[0]

    def seasons(match: re.Match[str]) -> str:
        """ "2023/24": two years in a row."""
        first, last = int(match["first"]), int(match["last"])
        if last not in (first + 1, (first + 1) % 100):
            return match[0]
        return f"{language.cardinal(first)} {language.cardinal(last)}"

    # The word for year after it, which the date says.
    year_end = language.patterns.get("year_end", "")
    after = f"(?:{year_end})?" if year_end else ""
    rules: Rules = {
        _ISO + after: iso,
        _NUMERIC + after: numeric,
        # Without a year it could be a fraction; a month with a zero before it is none.
        r"(?<![0-9A-Za-z./-])(?P<day>0?[1-9]|[12][0-9]|3[01])/(?P<month>0[1-9])"
        r"(?![0-9A-Za-z/])": short,
        # Nor is one of the last months after a late day.
        r"(?<![0-9A-Za-z./-])(?P<day>1[3-9]|2[0-9]|3[01])/(?P<month>1[0-2])(?![0-9A-Za-z/])": short,
    }
    if language.joint:
        rules[
            r"(?<![\w/.,-])(?P<first>(?:19|20)[0-9]{2})[/-](?P<last>(?:19|20)?[0-9]{2})(?![\w/-])"
        ] = seasons
        rules[
            r"(?i:(?<=temporada )|(?<=curso )|(?<=campaña )|(?<=saison )|(?<=stagione )"
            r"|(?<=safra ))"
            r"(?P<first>[0-9]{2})[/-](?P<last>[0-9]{2})(?![\w/-])"
        ] = seasons
    if "dated" in language.patterns:
        rules[
            rf"(?i:\b(?P<before>{language.patterns['dated']}))\s(?P<day>[0-9]{{1,2}})/"
            r"(?P<month>1[0-2]|[1-9])(?![\w/]|[.,][0-9]|\s(?:de|d['’]|dei|delle|do|da|dos|das)\b)"
        ] = lambda match: (
            f"{match['before']} {words}" if (words := short(match)) != match[0] else words
        )
    return rules | (_named_month_rules(language) if language.joint else {})


def _date(language: Language, day: int, month: int, year: int | None) -> str | None:
    """None if there is no such month or day."""
    if 1 <= month <= 12 and 1 <= day <= 31:
        return language.date(language, day, month, year)
    return None


def _named_month_rules(language: Language) -> Rules:
    """ "1er janvier", "12 mar. 2024", "12 de mayo de 2024"."""
    numbers = {name.lower(): i for i, name in enumerate(language.month_names, 1)}
    names = f"(?:(?P<full>{either(numbers)})"
    if language.month_forms:
        names += rf"|(?P<short>{either(language.month_forms)})\b\.?"
    names += ")"
    of = language.patterns.get("date_link", "")
    days = word_table(language.patterns["days"]) if "days" in language.patterns else {}
    link = rf"(?:(?P<month_link>{of})\s)?" if of else "(?P<month_link>)"
    year_end = f"(?:{language.patterns['year_end']})?" if "year_end" in language.patterns else ""
    year_link = rf"(?:(?P<link>{of})\s)?" if of else "(?P<link>)"
    # Without the link, a number of 1000 may be one of a street: "Av. 9 de Julio 1000".
    unlinked = r"(?:(?<=de\s)|(?<=del\s)|(?=1[89]|20))" if of else ""
    year = rf"(?:,?\s{year_link}{unlinked}(?P<year>[12][0-9]{{3}})"
    year += rf"(?![\w]|[.,][0-9]|-[0-9]){year_end})?"

    def month_of(match: re.Match[str]) -> int:
        groups = match.groupdict()
        if groups.get("short"):
            return language.month_forms[groups["short"].lower()]
        return numbers[groups["full"].lower()]

    def date(match: re.Match[str]) -> str:
        if not all(1 <= int(day or 1) <= 31 for day in match.group("first", "day")):
            return match[0]
        written = int(match["year"]) if match["year"] else None
        words = language.date(language, int(match["day"]), month_of(match), written)
        if match["first"]:
            first = language.date(language, int(match["first"]), month_of(match), None)
            words = f"{_shared(first, words)} {language.word['to']} {words}"
        if match["month_link"] == "del":
            words = words.replace(" de ", " del ", 1)
        if written and match["link"] == "del":
            before, _, after = words.rpartition(" de ")
            words = f"{before} del {after}"
        return words + kept_stop(match, language.code)

    def digits_and_name(match: re.Match[str]) -> str:
        return language.date(language, int(match["day"]), month_of(match), int(match["year"]))

    def named_days(match: re.Match[str]) -> str:
        return f"{days[match['day'].lower()]} "

    def slashed(match: re.Match[str]) -> str:
        return f"{language.month_names[month_of(match) - 1]} de "

    def month_in_digits(match: re.Match[str]) -> str:
        """ "03/2024"."""
        joint = " de " if of else " "
        month = language.month_names[int(match["month"]) - 1]
        return f"{month}{joint}{language.cardinal(int(match['year']))}"

    def month_and_year(match: re.Match[str]) -> str:
        return f"{language.month_names[month_of(match) - 1]} "

    def day_span(match: re.Match[str]) -> str:
        """ "lun-ven"."""
        first, last = (days.get(match[end].lower(), match[end]) for end in ("first", "last"))
        before = "da " if language.code == "it" else ""
        return f"{before}{first} {language.word['to']} {last}"

    def lone_day(match: re.Match[str]) -> str:
        day = days[match["day"].lower()]
        several = match["lead"].strip().lower() in ("los", "aos", "nos", "nas", "às")
        plural = "s" if several and not day.endswith("s") else ""
        return f"{match['lead']}{day}{plural}" + kept_stop(match, language.code)

    day_end = language.patterns.get("day_end", "")
    rules: Rules = {}
    if language.month_forms:
        rules[r"(?<![\w/.,-])(?P<month>0[1-9])/(?P<year>(?:19|20)[0-9]{2})(?![\w/])"] = (
            month_in_digits
        )
    if days:
        lead = rf"(?P<lead>\b(?i:{language.patterns['day_lead']})\s)"
        rules[rf"{lead}(?P<day>{either(days)})\.(?!\s?[0-9])"] = lone_day
        weekday = rf"(?i:{either([*days, *days.values()])})"
        rules[rf"(?<![\w-])(?P<first>{weekday})\.?\s?[-–]\s?(?P<last>{weekday})\b\.?(?!-)"] = (
            day_span
        )
        rules[rf"(?i:\b(?P<day>{either(days)}))\.,?\s(?=[0-9])"] = named_days
    rules[
        rf"(?<![\w.,:/-])(?:(?P<first>[0-9]{{1,2}}){DASH})?0?(?P<day>[0-9]{{1,2}}){day_end}"
        rf"[{SPACES}]{link}(?i:{names})(?!\w){year}"
    ] = date
    if language.month_forms:
        # "12-feb-2023"
        rules[
            rf"(?<![\w/.-])(?P<day>[0-9]{{1,2}})(?P<mark>[-/])(?i:{names})(?P=mark)"
            r"(?P<year>[12][0-9]{3})(?![\w/-])"
        ] = digits_and_name
        rules[
            rf"(?i:\b(?P<short>{either(language.month_forms)}))\b(?:\.?\s(?=[12][0-9]{{3}}\b)"
            rf"|\.\s(?={of or '(?!)'}\s[12][0-9]{{3}}\b))"
        ] = month_and_year
        if of:  # "jan/2024"
            rules[rf"(?i:\b(?P<short>{either(language.month_forms)}))/(?=[12][0-9]{{3}}\b)"] = (
                slashed
            )
    return rules


def _shared(first: str, second: str) -> str:
    """The first of two dates without what the second says again."""
    words, others = first.split(" "), second.split(" ")
    while len(words) > 1 and words[-1] in others:
        words.pop()
    return " ".join(words)


# Before how long something takes: "en 2h48".
_LASTING = re.compile(
    r"\b(?i:en|em|in|por|per|dur\w+|lev\w+|demor\w+|tard\w+|impieg\w+|"
    r"después de|após|depois de|dopo|tras|tempo (?:de|di)|"
    r"tiempo de)\s\Z"
)


def time_rules(language: Language) -> Rules:
    """10:30, 15h30, 15.30 h, and ranges of them; the language knows the marks."""
    hours = language.patterns["hours"]  # after whole hours, a pattern
    halves = "|".join(
        filter(None, (r"(?P<am>[aA]\.?\s?[mM]\b\.?)", r"(?P<pm>[pP]\.?\s?[mM]\b\.?)"))
    )

    def duration(match: re.Match[str]) -> str:
        parts = zip(("h", "min", "s"), match.group("hour", "minute", "second"), strict=True)
        counts = [
            language.count(language.unit_nouns[unit], str(int(number)))
            for unit, number in parts
            if number
        ]
        link = language.word.get("and_minutes")
        last = (f" {link} " if link else " ").join(counts[-2:])
        return " ".join([*counts[:-2], last]) + kept_stop(match, language.code)

    def time(match: re.Match[str]) -> str:
        hour, minute = int(match["hour"]), int(match["minute"] or 0)
        if hour > 24 or minute > 59:
            return match[0]
        groups = match.groupdict()
        lasting = language.code != "fr" and _LASTING.search(
            match.string, max(0, match.start() - 24), match.start()
        )
        if groups.get("second") or groups.get("mark") or (lasting and ":" not in match[0]):
            return duration(match)
        words = language.clock(language, hour, minute)
        half = "am" if groups.get("am") else "pm" if groups.get("pm") else ""
        if half and hour <= 12:
            late = half == "pm" and 8 <= hour < 12
            words += f" {language.word['late' if late else half]}"
        return words + kept_stop(match, language.code)

    def from_to(match: re.Match[str]) -> str:
        """ "9.30 a 18.00"."""
        first, last = (
            language.clock(language, *map(int, time.split("."))) for time in match.group(1, 2)
        )
        hours = language.unit_nouns["h"].forms[-1]
        marked = match[3] and match[2].endswith("00") and not last.endswith(hours)
        return f"{first} {language.word['to']} {last}{f' {hours}' if marked else ''}"

    def span(match: re.Match[str]) -> str:
        lead = match["lead"] or ""
        framed = language.patterns.get("time_span", "{first} " + language.word["to"] + " ")
        if lead:
            framed = "{first}" + framed.partition("{first}")[2]
        return lead + framed.format(first=match["first"])

    digits = r"(?P<hour>[0-9]{1,2})"
    lead = rf"(?P<lead>\b(?:{language.patterns.get('time_lead', '(?!)')})\s)?"
    rules: Rules = {
        rf"(?<![0-9:]){lead}(?P<first>[0-9]{{1,2}}(?::|{hours})[0-9]{{2}})\s?[-–]\s?"
        rf"(?=[0-9]{{1,2}}(?::|{hours})[0-9]{{2}}(?![0-9:]))": span,
        rf"(?<![\w:]){lead}(?P<first>[0-9]{{1,2}}\s?(?:{hours})(?:[0-9]{{2}})?)\s?[-–]\s?"
        rf"(?=[0-9]{{1,2}}\s?(?:{hours})(?![^\W\d_]))": span,
        rf"(?<![\w:.,]){digits}:(?P<minute>[0-9]{{2}})(?::(?P<second>[0-9]{{2}}))?(?!:?[0-9]|[.,][0-9])"
        r"(?![ \u00a0\u202f][0-9]{3}(?![0-9:]))"
        rf"(?:\s?(?:{halves}|(?:{hours})(?![\w/])\.?))?": time,
        rf"(?<![\w:.,]){digits}\s?(?:{hours})\s?(?P<minute>[0-9]{{1,2}})\s?(?:min|mn)(?![^\W\d_])\.?"
        r"(?:\s?(?P<second>[0-9]{1,2})\s?(?:seg|sec|s)\b)?": duration,
        rf"(?<![\w:.,]){digits}\s?(?:{hours})\s?(?P<minute>[0-9]{{2}})"
        r"(?:['’′]\s?(?P<second>[0-9]{1,2})(?:[\"”″]|'')|(?P<mark>['’′](?!\w)))?"
        r"(?!\w|[.,][0-9])": time,
    }
    if "am" in language.word:
        rules[
            rf"(?<![\w:.,$£€]){digits}(?P<minute>)\s?"
            r"(?:(?P<am>[aA]\.\s?[mM]\.|[aA][mM]\b)|(?P<pm>[pP]\.\s?[mM]\.|[pP][mM]\b))"
        ] = time
    if "dotted_hour" in language.patterns:
        rules[
            rf"{language.patterns['dotted_hour']}{digits}[.,](?P<minute>[0-5][0-9])(?!\w|[.,][0-9])"
            rf"(?:\s?(?:{hours})(?![\w/]))?"
        ] = time
        whole = r"(?:[01]?[0-9]|2[0-4])\.[0-5][05]"
        rules[
            rf"(?<![\w.,])({whole})\s?(?:a|-|–)\s?({whole})(?!\w|[.,][0-9])(\s?(?:{hours})\b)?"
        ] = from_to
        rules[rf"(?<![\w.,]){digits}\.(?P<minute>[0-5][0-9])\s?(?:{hours}|horas|ore)(?![\w/])"] = (
            time
        )
    return rules
