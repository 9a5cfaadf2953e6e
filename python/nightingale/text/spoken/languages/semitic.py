"""Arabic and Hebrew."""

from ..basic import basic_normalizer
from ..engine import Normalizer
from ..language import Language
from ..number_words import NumberWords

_LATIN = "[A-Za-z]"


class _ArabicNumbers(NumberWords):
    """Thousands and millions have a dual, and a plural from three to ten."""

    _SCALES = (
        (10**12, "تريليون", "تريليونان", "تريليونات"),
        (10**9, "مليار", "ملياران", "مليارات"),
        (10**6, "مليون", "مليونان", "ملايين"),
        (10**3, "ألف", "ألفان", "آلاف"),
    )

    def spell(self, number: int, form: str = "") -> str:
        if number < 1000:
            return super().spell(number, form)
        parts = []
        for scale, one, two, several in self._SCALES:
            count, number = divmod(number, scale)
            if count == 1:
                parts.append(one)
            elif count == 2:
                parts.append(two)
            elif count:
                parts.append(f"{self.spell(count)} {several if 3 <= count % 100 <= 10 else one}")
        if number:
            parts.append(super().spell(number, form))
        return " و".join(parts)


_ARABIC_NUMBERS = _ArabicNumbers(
    "0: صفر|واحد|اثنان|ثلاثة|أربعة|خمسة|ستة|سبعة|ثمانية|تسعة|عشرة|أحد عشر|اثنا عشر|ثلاثة عشر|"
    "أربعة عشر|خمسة عشر|ستة عشر|سبعة عشر|ثمانية عشر|تسعة عشر; 20: [>> و]عشرون; 30: [>> و]ثلاثون; "
    "40: [>> و]أربعون; 50: [>> و]خمسون; 60: [>> و]ستون; 70: [>> و]سبعون; 80: [>> و]ثمانون; "
    "90: [>> و]تسعون; 100: مئة[ و>>]; 200: مئتان[ و>>]; 300: ثلاثمئة[ و>>]; 400: أربعمئة[ و>>]; "
    "500: خمسمئة[ و>>]; 600: ستمئة[ و>>]; 700: سبعمئة[ و>>]; 800: ثمانمئة[ و>>]; 900: تسعمئة[ و>>]"
)
_ARABIC_HOURS = (
    "الواحدة الثانية الثالثة الرابعة الخامسة السادسة السابعة الثامنة التاسعة العاشرة "
    "الحادية_عشرة الثانية_عشرة"
).split()
# The number takes the other gender's form up to ten.
_ARABIC_MINUTES = (
    "دقيقة دقيقتان ثلاث_دقائق أربع_دقائق خمس_دقائق ست_دقائق سبع_دقائق ثماني_دقائق تسع_دقائق "
    "عشر_دقائق"
).split()


def _arabic_date(language: Language, day: int, month: int, year: int | None) -> str:
    words = f"{language.cardinal(day)} {language.month_names[month - 1]}"
    return words if year is None else f"{words} {language.cardinal(year)}"


def _arabic_clock(language: Language, hour: int, minute: int) -> str:
    words = _ARABIC_HOURS[(hour - 1) % 12].replace("_", " ")
    if not minute:
        return words
    if minute <= 10:
        return f"{words} و{_ARABIC_MINUTES[minute - 1].replace('_', ' ')}"
    return f"{words} و{language.cardinal(minute)} دقيقة"


def arabic() -> Normalizer:
    """The rules for Arabic."""
    return basic_normalizer(
        Language(
            code="ar",
            numbers=_ARABIC_NUMBERS,
            words="minus: سالب, comma: فاصلة, point: فاصلة, to: إلى",
            months="يناير فبراير مارس أبريل مايو يونيو يوليو أغسطس سبتمبر أكتوبر نوفمبر ديسمبر",
            date=_arabic_date,
            clock=_arabic_clock,
            decimal=".",
            letter_boundary=_LATIN,
            plural=lambda whole, decimals: 1 if 3 <= whole % 100 <= 10 and not decimals else 0,
            currencies=(
                "€ EUR: يورو, $ US$ USD: دولار/دولارات, £ GBP: جنيه/جنيهات, ¥: ين, "
                "SAR: ريال/ريالات, R$: ريال/ريالات"
            ),
            hundredths="€ EUR: سنت/سنتات, $ US$ USD: سنت/سنتات",
            money="{units} و{cents} {cent}",
            units="% ٪: بالمئة, °C: درجة مئوية/درجات مئوية, °: درجة/درجات",
        )
    )


_HEBREW_TENS = (
    "20: עשרים[ {0}]; 30: שלושים[ {0}]; 40: ארבעים[ {0}]; 50: חמישים[ {0}]; "
    "60: שישים[ {0}]; 70: שבעים[ {0}]; 80: שמונים[ {0}]; 90: תשעים[ {0}]; "
)
_HEBREW_HUNDREDS = (
    "100: מאה[ {0}]; 200: מאתיים[ {0}]; 300: שלוש מאות[ {0}]; 400: ארבע מאות[ {0}]; "
    "500: חמש מאות[ {0}]; 600: שש מאות[ {0}]; 700: שבע מאות[ {0}]; 800: שמונה מאות[ {0}]; "
    "900: תשע מאות[ {0}]; 1000: אלף[ {0}]; 2000: אלפיים[ {0}]; 3000: שלושת אלפים[ {0}]; "
    "4000: ארבעת אלפים[ {0}]; 5000: חמשת אלפים[ {0}]; 6000: ששת אלפים[ {0}]; "
    "7000: שבעת אלפים[ {0}]; 8000: שמונת אלפים[ {0}]; 9000: תשעת אלפים[ {0}]; "
    "10000: עשרת אלפים[ {0}]; 11000/1000: <m< אלף[ {0}]; 1000000: מיליון[ {0}]; "
    "2000000: שני מיליון[ {0}]; 3000000: <m< מיליון[ {0}]; 1000000000: מיליארד[ {0}]; "
    "2000000000: שני מיליארד[ {0}]; 3000000000: <m< מיליארד[ {0}]"
)
_HEBREW_FEMININE = (
    "0: אפס|אחת|שתיים|שלוש|ארבע|חמש|שש|שבע|שמונה|תשע|עשר|אחת עשרה|שתים עשרה|שלוש עשרה|ארבע עשרה|"
    "חמש עשרה|שש עשרה|שבע עשרה|שמונה עשרה|תשע עשרה; "
)
_HEBREW_MASCULINE = (
    "0: אפס|אחד|שניים|שלושה|ארבעה|חמישה|שישה|שבעה|שמונה|תשעה|עשרה|אחד עשר|שנים עשר|שלושה עשר|"
    "ארבעה עשר|חמישה עשר|שישה עשר|שבעה עשר|שמונה עשר|תשעה עשר; "
)
# "and" stands before the last part only.
_AND = "1: ו=x=; 21: =x=; " + "".join(f"{n}: ו=x=; {n + 1}: =x=; " for n in range(30, 100, 10))
_LARGE = "100: ו=x=; 101: =x=; " + "".join(
    f"{n}: ו=x=; {n + 1}: =x=; " for n in range(200, 1000, 100)
)
_HEBREW = (_HEBREW_TENS + _HEBREW_HUNDREDS).format
_HEBREW_NUMBERS = NumberWords(
    _HEBREW_FEMININE + _HEBREW(">and>"),
    10**12,
    f=_HEBREW_FEMININE + _HEBREW(">and>"),
    m=_HEBREW_MASCULINE + _HEBREW(">andm>"),
    **{"and": (_AND + _LARGE + "1000: =x=").replace("=x=", "=f=")},
    andm=(_AND + _LARGE + "1000: =x=").replace("=x=", "=m="),
)


_HEBREW_MONTHS = "ינואר פברואר מרץ אפריל מאי יוני יולי אוגוסט ספטמבר אוקטובר נובמבר דצמבר"


def _hebrew_date(language: Language, day: int, month: int, year: int | None) -> str:
    words = f"{language.cardinal(day, 'm')} ב{language.month_names[month - 1]}"
    return words if year is None else f"{words} {language.cardinal(year)}"


def _hebrew_clock(language: Language, hour: int, minute: int) -> str:
    words = language.cardinal(hour)
    return f"{words} ו{language.cardinal(minute)}" if minute else words


def hebrew() -> Normalizer:
    """The rules for Hebrew."""
    return basic_normalizer(
        Language(
            code="he",
            numbers=_HEBREW_NUMBERS,
            words="minus: מינוס, comma: נקודה, point: נקודה, to: עד",
            months=_HEBREW_MONTHS,
            date=_hebrew_date,
            clock=_hebrew_clock,
            decimal=".",
            letter_boundary=_LATIN,
            month_forms={f"ב{name}": i for i, name in enumerate(_HEBREW_MONTHS.split(), 1)},
            currencies=(
                '₪ ILS ש״ח ש"ח: שקל/שקלים, € EUR: אירו, $ US$ USD: דולר/דולרים, £ GBP: ליש״ט, '
                "¥: ין, "
                "R$: ריאל/ריאלים"
            ),
            hundredths="₪ ILS: אגורה/אגורות f, € EUR: סנט/סנטים, $ US$ USD: סנט/סנטים",
            money="{units} ו{cents} {cent}",
            extra={"dates": {r"(?<=[\u05d0-\u05ea])[-־](?=[0-9])": " "}},
            units="%: אחוז/אחוזים, °C: מעלה צלזיוס/מעלות צלזיוס f, °: מעלה/מעלות f",
        )
    )
