"""Finnish, Greek, Hindi, Malay, Swahili and Turkish."""

from collections.abc import Callable

from ..basic import basic_normalizer
from ..engine import Normalizer
from ..language import Language
from ..number_words import NumberWords


def _day_month_year(language: Language, day: int, month: int, year: int | None) -> str:
    words = f"{language.cardinal(day)} {language.month_names[month - 1]}"
    return words if year is None else f"{words} {language.cardinal(year)}"


def _hour_minute(zero: bool, form: str = "") -> Callable[[Language, int, int], str]:
    def clock(language: Language, hour: int, minute: int) -> str:
        words = language.cardinal(hour, form)
        if not minute:
            return words
        lead = f"{language.cardinal(0)} " if zero and minute < 10 else ""
        return f"{words} {lead}{language.cardinal(minute)}"

    return clock


_FINNISH_NUMBERS = NumberWords(
    "0: nolla|yksi|kaksi|kolme|neljä|viisi|kuusi|seitsemän|kahdeksan|yhdeksän|kymmenen|yksitoista|"
    "kaksitoista|kolmetoista|neljätoista|viisitoista|kuusitoista|seitsemäntoista|kahdeksantoista|"
    "yhdeksäntoista; 20: <<kymmentä[>>]; 100: sata[>>]; 200: <<sataa[>>]; 1000: tuhat[>>]; "
    "2000: <<tuhatta[>>]; 1000000: miljoona[ >>]; 2000000: << miljoonaa[ >>]; "
    "1000000000: miljardi[ >>]; 2000000000: << miljardia[ >>]; 1000000000000: biljoona[ >>]; "
    "2000000000000: << biljoonaa[ >>]"
)
_FINNISH_DAYS = (
    "ensimmäinen toinen kolmas neljäs viides kuudes seitsemäs kahdeksas yhdeksäs kymmenes "
    "yhdestoista kahdestoista kolmastoista neljästoista viidestoista kuudestoista seitsemästoista "
    "kahdeksastoista yhdeksästoista kahdeskymmenes kahdeskymmenesensimmäinen kahdeskymmenestoinen "
    "kahdeskymmeneskolmas kahdeskymmenesneljäs kahdeskymmenesviides kahdeskymmeneskuudes "
    "kahdeskymmenesseitsemäs kahdeskymmeneskahdeksas kahdeskymmenesyhdeksäs kolmaskymmenes "
    "kolmaskymmenesensimmäinen"
).split()


def _finnish_date(language: Language, day: int, month: int, year: int | None) -> str:
    words = f"{_FINNISH_DAYS[day - 1]} {language.month_names[month - 1]}"
    return words if year is None else f"{words} {language.cardinal(year)}"


def finnish() -> Normalizer:
    """The rules for Finnish."""
    return basic_normalizer(
        Language(
            code="fi",
            numbers=_FINNISH_NUMBERS,
            words="minus: miinus, comma: pilkku, point: piste, to: viiva",
            months=(
                "tammikuuta helmikuuta maaliskuuta huhtikuuta toukokuuta kesäkuuta heinäkuuta "
                "elokuuta syyskuuta lokakuuta marraskuuta joulukuuta"
            ),
            date=_finnish_date,
            clock=_hour_minute(zero=True),
            patterns={"day_end": r"\."},
            spelled_decimals=True,
            currencies=(
                "€ EUR: euro/euroa, $ US$ USD: dollari/dollaria, £ GBP: punta/puntaa, ¥: "
                "jeni/jeniä, "
                "R$: real/realia"
            ),
            hundredths="€ EUR: sentti/senttiä, $ US$ USD: sentti/senttiä, £ GBP: penny/pennyä",
            money="{units} {cents} {cent}",
            units=(
                "%: prosentti/prosenttia, °C: celsiusaste/celsiusastetta, °: aste/astetta, "
                "km: kilometri/kilometriä, m: metri/metriä, cm: senttimetri/senttimetriä, "
                "kg: kilogramma/kilogrammaa, g: gramma/grammaa, l: litra/litraa"
            ),
            extra={"dates": {r"(?<=\b[Kk]lo )([0-9]{1,2})\.(?=[0-5][0-9](?!\w|\.[0-9]))": r"\1:"}},
        )
    )


_GREEK_HUNDREDS = "διακόσι τριακόσι τετρακόσι πεντακόσι εξακόσι επτακόσι οκτακόσι εννιακόσι".split()


def _greek(one: str, three: str, four: str, ending: str, thousand: str) -> str:
    return (
        f"0: μηδέν|{one}|δύο|{three}|{four}|πέντε|έξι|επτά|οκτώ|εννέα|δέκα|έντεκα|δώδεκα; "
        f"13: δεκα{three}|δεκα{'τέσσερις' if four == 'τέσσερις' else 'τέσσερα'}|δεκαπέντε|δεκαέξι|"
        "δεκαεπτά|δεκαοκτώ|δεκαεννέα; 20: είκοσι[ >>]; 30: τριάντα[ >>]; 40: σαράντα[ >>]; "
        "50: πενήντα[ >>]; 60: εξήντα[ >>]; 70: εβδομήντα[ >>]; 80: ογδόντα[ >>]; "
        "90: ενενήντα[ >>]; 100: εκατό; 101: εκατόν >>; "
        + "".join(f"{100 * i}: {stem}{ending}[ >>]; " for i, stem in enumerate(_GREEK_HUNDREDS, 2))
        + f"1000: {thousand}[ >>]; 2000: <f< χιλιάδες[ >>]; 1000000: ένα εκατομμύριο[ >>]; "
        "2000000: <n< εκατομμύρια[ >>]; 1000000000: ένα δισεκατομμύριο[ >>]; "
        "2000000000: <n< δισεκατομμύρια[ >>]; 1000000000000: ένα τρισεκατομμύριο[ >>]; "
        "2000000000000: <n< τρισεκατομμύρια[ >>]"
    )


_NEUTER = _greek("ένα", "τρία", "τέσσερα", "α", "χίλια")
_GREEK_NUMBERS = NumberWords(
    _NEUTER,
    n=_NEUTER,
    m=_greek("ένας", "τρεις", "τέσσερις", "οι", "χίλιοι"),
    f=_greek("μία", "τρεις", "τέσσερις", "ες", "χίλιες"),
)


def _greek_date(language: Language, day: int, month: int, year: int | None) -> str:
    words = (
        f"{'πρώτη' if day == 1 else language.cardinal(day, 'f')} {language.month_names[month - 1]}"
    )
    return words if year is None else f"{words} {language.cardinal(year)}"


def _greek_clock(language: Language, hour: int, minute: int) -> str:
    words = language.cardinal(hour, "f")
    return f"{words} και {language.cardinal(minute)}" if minute else words


def greek() -> Normalizer:
    """The rules for Greek."""
    return basic_normalizer(
        Language(
            code="el",
            numbers=_GREEK_NUMBERS,
            words="minus: μείον, comma: κόμμα, point: τελεία, to: έως",
            months=(
                "Ιανουαρίου Φεβρουαρίου Μαρτίου Απριλίου Μαΐου Ιουνίου Ιουλίου Αυγούστου "
                "Σεπτεμβρίου Οκτωβρίου Νοεμβρίου Δεκεμβρίου"
            ),
            date=_greek_date,
            clock=_greek_clock,
            currencies=(
                "€ EUR: ευρώ n, $ US$ USD: δολάριο/δολάρια n, £ GBP: λίρα/λίρες f, ¥: γιεν n, "
                "R$: ρεάλ n"
            ),
            hundredths=("€ EUR: λεπτό/λεπτά n, $ US$ USD: σεντ n, £ GBP: πένα/πένες f"),
            money="{units} και {cents} {cent}",
            units=(
                "%: τοις εκατό n, °C: βαθμός Κελσίου/βαθμοί Κελσίου, °: βαθμός/βαθμοί, "
                "km χλμ: χιλιόμετρο/χιλιόμετρα n, m: μέτρο/μέτρα n, cm: εκατοστό/εκατοστά n, "
                "kg: κιλό/κιλά n, g: γραμμάριο/γραμμάρια n, l: λίτρο/λίτρα n"
            ),
        )
    )


_HINDI_NUMBERS = NumberWords(
    "0: "
    "शून्य|एक|दो|तीन|चार|पाँच|छह|सात|आठ|नौ|दस|ग्यारह|बारह|तेरह|चौदह|पंद्रह|सोलह|सत्रह|अठारह|उन्नीस|"
    "बीस|इक्कीस|बाईस|तेईस|चौबीस|पच्चीस|छब्बीस|सत्ताईस|अट्ठाईस|उनतीस|तीस|इकतीस|बत्तीस|तैंतीस|चौंतीस|पैंतीस|"
    "छत्तीस|सैंतीस|अड़तीस|उनतालीस|चालीस|इकतालीस|बयालीस|तैंतालीस|चौवालीस|पैंतालीस|छियालीस|सैंतालीस|अड़तालीस|"
    "उनचास|पचास|इक्यावन|बावन|तिरपन|चौवन|पचपन|छप्पन|सत्तावन|अट्ठावन|उनसठ|साठ|इकसठ|बासठ|तिरसठ|चौंसठ|"
    "पैंसठ|छियासठ|सड़सठ|अड़सठ|उनहत्तर|सत्तर|इकहत्तर|बहत्तर|तिहत्तर|चौहत्तर|पचहत्तर|छिहत्तर|सतहत्तर|अठहत्तर|"
    "उन्यासी|अस्सी|इक्यासी|बयासी|तिरासी|चौरासी|पचासी|छियासी|सत्तासी|अट्ठासी|नवासी|नब्बे|इक्यानवे|बानवे|"
    "तिरानवे|चौरानवे|पचानवे|छियानवे|सत्तानवे|अट्ठानवे|निन्यानवे; 100: << सौ[ >>]; 1000: << "
    "हज़ार[ >>]; "
    "100000: << लाख[ >>]; 10000000: << करोड़[ >>]; 1000000000: << अरब[ >>]; "
    "100000000000: << खरब[ >>]",
    10**13,
)


def _hindi_clock(language: Language, hour: int, minute: int) -> str:
    words = language.cardinal(hour)
    return f"{words} बजकर {language.cardinal(minute)} मिनट" if minute else f"{words} बजे"


def hindi() -> Normalizer:
    """The rules for Hindi."""
    return basic_normalizer(
        Language(
            code="hi",
            numbers=_HINDI_NUMBERS,
            words="minus: ऋण, comma: दशमलव, point: दशमलव, to: से",
            months="जनवरी फ़रवरी मार्च अप्रैल मई जून जुलाई अगस्त सितंबर अक्टूबर नवंबर दिसंबर",
            date=_day_month_year,
            clock=_hindi_clock,
            patterns={"hours": "बजे"},
            decimal=".",
            spelled_decimals=True,
            currencies=(
                "₹ INR रु. रु: रुपया/रुपये, € EUR: यूरो, $ US$ USD: डॉलर, £ GBP: पाउंड, ¥: येन, R$: रियल"
            ),
            hundredths="₹ INR रु. रु: पैसा/पैसे, $ US$ USD: सेंट, € EUR: सेंट",
            money="{units} और {cents} {cent}",
            units="%: प्रतिशत, °C: डिग्री सेल्सियस, °: डिग्री",
            extra={
                "dates": {
                    r"(?<![\w:])([0-9]{1,2}:(?!00)[0-5][0-9])\s?बजे": r"\1 पर",
                    # Lakhs and crores: 1,00,000.
                    r"(?<![0-9.,])[0-9]{1,2}(?:,[0-9]{2}){1,4},[0-9]{3}(?!,?[0-9])": lambda match: (
                        match[0].replace(",", "")
                    ),
                },
                # Years are said in hundreds.
                "numbers": {
                    r"(?<![\w.,])1[1-9][0-9]{2}(?=\s(?:में|से|तक|ई)(?!\w))": lambda match: (
                        f"{_HINDI_NUMBERS.spell(int(match[0][:2]))} सौ "
                        f"{_HINDI_NUMBERS.spell(int(match[0][2:])) if match[0][2:] != '00' else ''}"
                    ).strip()
                },
            },
        )
    )


_MALAY_NUMBERS = NumberWords(
    "0: kosong|satu|dua|tiga|empat|lima|enam|tujuh|lapan|sembilan|sepuluh|sebelas; "
    "12/10: >> belas; 20: << puluh[ >>]; 100: seratus[ >>]; 200: << ratus[ >>]; "
    "1000: seribu[ >>]; 2000: << ribu[ >>]; 1000000: satu juta[ >>]; 2000000: << juta[ >>]; "
    "1000000000: << bilion[ >>]; 1000000000000: << trilion[ >>]"
)


def malay() -> Normalizer:
    """The rules for Malay."""
    return basic_normalizer(
        Language(
            code="ms",
            numbers=_MALAY_NUMBERS,
            words="minus: negatif, comma: perpuluhan, point: perpuluhan, to: hingga",
            months=(
                "Januari Februari Mac April Mei Jun Julai Ogos September Oktober November Disember"
            ),
            date=_day_month_year,
            clock=_hour_minute(zero=True),
            decimal=".",
            spelled_decimals=True,
            currencies=(
                "RM MYR: ringgit, € EUR: euro, $ US$ USD: dolar, £ GBP: paun, ¥: yen, R$: real"
            ),
            hundredths="RM MYR: sen, $ US$ USD: sen, € EUR: sen",
            money="{units} {cents} {cent}",
            units="%: peratus, °C: darjah Celsius, °: darjah",
        )
    )


_SWAHILI_NUMBERS = NumberWords(
    "0: sifuri|moja|mbili|tatu|nne|tano|sita|saba|nane|tisa; 10: kumi[ na >>]; "
    "20: ishirini[ na >>]; 30: thelathini[ na >>]; 40: arobaini[ na >>]; 50: hamsini[ na >>]; "
    "60: sitini[ na >>]; 70: sabini[ na >>]; 80: themanini[ na >>]; 90: tisini[ na >>]; "
    "100: mia <<[ na >>]; 1000: elfu <<[ >rest>]; 1000000: milioni <<[ >rest>]; "
    "1000000000: bilioni <<[ >rest>]; 1000000000000: trilioni <<[ >rest>]",
    rest="0: ; 1: na =all=; 100: =all=",
    all=(
        "0: sifuri|moja|mbili|tatu|nne|tano|sita|saba|nane|tisa; 10: kumi[ na >>]; "
        "20: ishirini[ na >>]; 30: thelathini[ na >>]; 40: arobaini[ na >>]; 50: hamsini[ na >>]; "
        "60: sitini[ na >>]; 70: sabini[ na >>]; 80: themanini[ na >>]; 90: tisini[ na >>]; "
        "100: mia <<[ na >>]; 1000: elfu <<[ >rest>]; 1000000: milioni <<[ >rest>]"
    ),
)


def _swahili_date(language: Language, day: int, month: int, year: int | None) -> str:
    words = f"{language.cardinal(day)} {language.month_names[month - 1]}"
    return words if year is None else f"{words}, {language.cardinal(year)}"


def _swahili_clock(language: Language, hour: int, minute: int) -> str:
    """As written: the hours of the day are not counted from sunrise."""
    words = language.cardinal(hour)
    return f"{words} na dakika {language.cardinal(minute)}" if minute else words


def swahili() -> Normalizer:
    """The rules for Swahili; units and currencies stand before their number."""
    language = Language(
        code="sw",
        numbers=_SWAHILI_NUMBERS,
        words="minus: hasi, comma: nukta, point: nukta, to: hadi",
        months=(
            "Januari Februari Machi Aprili Mei Juni Julai Agosti Septemba Oktoba Novemba Desemba"
        ),
        date=_swahili_date,
        clock=_swahili_clock,
        decimal=".",
        spelled_decimals=True,
        currencies="XAF: faranga",
    )
    names = {"KSh": "shilingi", "TSh": "shilingi", "Sh": "shilingi", "$": "dola", "€": "yuro"}
    names |= {"£": "pauni", "¥": "yeni", "US$": "dola", "R$": "riali"}
    marks = r"KSh\.?|TSh\.?|Sh\.?|US\$|R\$|[$€£¥]"
    amount = rf"{language.start}({language.numeral})"

    language.extra["dates"] = {
        rf"(?<!\w)(?P<mark>{marks})\s?(?P<number>{language.numeral}){language.end}": lambda match: (
            f"{names[match['mark'].rstrip('.')]} {language.in_words(match['number'])}"
        ),
        rf"{amount}\s?(?P<mark>{marks})(?!\w)": lambda match: (
            f"{names[match['mark'].rstrip('.')]} {language.in_words(match[1])}"
        ),
        rf"{amount}\s?%": lambda match: f"asilimia {language.in_words(match[1])}",
        rf"{amount}\s?°C": lambda match: f"nyuzi joto {language.in_words(match[1])}",
    }
    return basic_normalizer(language)


_TURKISH_NUMBERS = NumberWords(
    "0: sıfır|bir|iki|üç|dört|beş|altı|yedi|sekiz|dokuz; 10: on[ >>]; 20: yirmi[ >>]; "
    "30: otuz[ >>]; 40: kırk[ >>]; 50: elli[ >>]; 60: altmış[ >>]; 70: yetmiş[ >>]; "
    "80: seksen[ >>]; 90: doksan[ >>]; 100: yüz[ >>]; 200: << yüz[ >>]; 1000: bin[ >>]; "
    "2000: << bin[ >>]; 1000000: << milyon[ >>]; 1000000000: << milyar[ >>]; "
    "1000000000000: << trilyon[ >>]"
)


def turkish() -> Normalizer:
    """The rules for Turkish."""
    language = Language(
        code="tr",
        numbers=_TURKISH_NUMBERS,
        words="minus: eksi, comma: virgül, point: nokta, to: ila",
        months="Ocak Şubat Mart Nisan Mayıs Haziran Temmuz Ağustos Eylül Ekim Kasım Aralık",
        date=_day_month_year,
        clock=_hour_minute(zero=True),
        currencies=(
            "₺ TL TRY: lira, € EUR: avro, $ US$ USD: dolar, £ GBP: sterlin, ¥: yen, R$: real"
        ),
        hundredths="₺ TL TRY: kuruş, € EUR: sent, $ US$ USD: sent, £ GBP: peni",
        money="{units} {cents} {cent}",
        units=(
            "°C: santigrat derece, °: derece, km: kilometre, m: metre, cm: santimetre, "
            "kg: kilogram, g: gram, l: litre"
        ),
    )
    language.extra["dates"] = {
        rf"(?<![\w%])%\s?({language.numeral})|"
        rf"{language.start}({language.numeral})\s?%": lambda match: (
            f"yüzde {language.in_words(match[1] or match[2])}"
        )
    }
    return basic_normalizer(language)
