"""Italian."""

import re

from ..acronyms import Letters
from ..engine import Normalizer, Rules
from ..language import Language
from ..number_words import NumberWords
from ..roman import numeral, roman_rules
from ..romance import SHORT_YEARS, SPACED_DEGREES, Agreement, normalizer
from ..tables import kept_stop
from .italian_abbreviations import ABBREVIATIONS, AT_END
from .italian_ranges import calendar_ranges, number_ranges

_TENS = "venti trenta quaranta cinquanta sessanta settanta ottanta novanta".split()
_UNITS = "uno due tre quattro cinque sei sette otto nove".split()


def _ten(ten: str) -> str:
    """ "venti|ventuno|ventidue|ventitré|...": the vowel goes before "uno" and "otto"."""
    joined = [(ten[:-1] if unit[0] in "uo" else ten) + unit for unit in _UNITS]
    joined[2] = f"{ten}tré"
    return "|".join([ten, *joined])


_MASCULINE = (
    "0: zero|uno|due|tre|quattro|cinque|sei|sette|otto|nove|dieci|undici|dodici|tredici|"
    "quattordici|quindici|sedici|diciassette|diciotto|diciannove; "
    + "".join(f"{10 * i}: {_ten(ten)}; " for i, ten in enumerate(_TENS, 2))
    + "".join(
        f"{100 * i}: {unit}cento[>joined>]; {100 * i + 8}: {unit}cent>>; "
        f"{100 * i + 9}: {unit}cento>joined>; {100 * i + 80}: {unit}cent>>; "
        f"{100 * i + 90}: {unit}cento>>; "
        for i, unit in enumerate(["", *_UNITS[1:]], 1)
    )
    + "1000: mille[>joined>]; 2000: <unaccented<mila[>joined>]; 1000000: un milione[ e >>]; "
    "2000000: <<_milioni[ e >>]; 1000000000: un miliardo[ >>]; 2000000000: <<_miliardi[ >>]; "
    "1000000000000: un bilione[ >>]; 2000000000000: <<_bilioni[ >>]"
)
NUMBERS = NumberWords(
    _MASCULINE,
    10**15,
    # Inside a word "tre" has an accent.
    joined="0: =base=; 3: tré; 4: =base=",
    base=_MASCULINE,
    unaccented=_MASCULINE.replace("tré", "tre").replace(">joined>", ">unaccented>"),
    m="0: =base=; 1: un; 2: =base=",
    f="0: =base=; 1: una; 2: =base=",
)
_FIRST_ORDINALS = "primo secondo terzo quarto quinto sesto settimo ottavo nono decimo".split()


def _ordinal(number: int, gender: str) -> str:
    if 1 <= number <= 10:
        words = _FIRST_ORDINALS[number - 1]
    else:
        words = NUMBERS.spell(number)
        words = re.sub(r"mila\Z", "mille", words).removesuffix("é") + "é" * words.endswith("é")
        if words.endswith(("tré", "sei")):
            words = words.replace("tré", "tre") + "esimo"
        else:
            words = words[:-1] + "esimo"
    return words[:-1] + "a" if gender == "f" else words


def _fraction(over: int, under: int) -> str:
    name = "mezzo" if under == 2 else _ordinal(under, "m")
    if over != 1:
        name = name[:-1] + "i"
    return f"{_LANGUAGE.cardinal(over, 'm')} {name}"


def _date(language: Language, day: int, month: int, year: int | None) -> str:
    words = f"{'primo' if day == 1 else language.cardinal(day)} {language.month_names[month - 1]}"
    return words if year is None else f"{words} {language.cardinal(year)}"


def _clock(language: Language, hour: int, minute: int) -> str:
    words = language.cardinal(hour, "f")
    return f"{words} e {language.cardinal(minute)}" if minute else words


_AGREEMENT = Agreement(
    feminine=re.compile(
        r".*(?:a|zione|sione|gione|tà|tù|trice|tudine|agine|igine)|volta|notte|parte|classe|chiave|"
        r"rete|legge|mano|foto|auto|moto|radio|serie|specie|tesi|crisi|base|fase|madre|moglie|"
        r"stazione|chiesa|gente|carne|neve|nave|torre|frase|luce|voce|croce|radice|immagine|arte|"
        r"fonte|mente|morte|fine|pelle|valle|canzone|ragione|regione|prigione|opzione|email|mail|sede|"
        r"cattedrale|finale|semifinale|corte|superficie|diocesi|capitale|band|questione|gestione|"
        r"cornice|parete|vergine|fede|variante|ribellione|riunione|unione|opinione|corrente|salute|"
        r"volpe|febbre|polvere|veste|stirpe|sorte|fame|chat|app|password|partita|bici|notte|"
        r"azione|lezione|carte|siepe|mente|quiete|estate|crociere|dose|tosse|bibite|bibita"
    ),
    masculine=frozenset(
        "problema sistema programma tema clima poema dramma schema sintomo diagramma teorema "
        "dilemma pianeta cinema papa poeta artista turista atleta panorama fantasma trauma "
        "stemma pilota regista giornalista duca monarca specialista chitarrista pianista "
        "farmacista "
        "autista dentista ciclista diploma coma collega "
        "aroma enigma emblema telegramma chilogramma crucigramma delta boia gorilla cobra".split()
    ),
    function_words=frozenset(
        "esso essa essi esse egli ella lui lei loro noi voi questo questa quello quella viene "
        "vengono può possono deve devono oppure quindi perché mentre poi allora ogni "
        "e ed o a al alla ai alle di del della dei delle da dal in nel nella con su sul per che è "
        "sono era fu ha hanno si il lo la i gli le un una se non sulla sulle sullo sui sugli nello "
        "nelle nei negli dalla dalle dallo dai dagli allo agli dello degli circa oggi domani "
        "come quando dove più meno ma né "
        "anche già molto virgola punto tra fra".split()
    ),
    labels=frozenset(
        "pagina pagine capitolo numero articolo figura tabella passo versione opzione livello fase "
        "tomo volume sezione riga colonna canale gruppo tipo classe piano stanza camera porta sala "
        "via secolo anno nota allegato esempio lezione unità parte posto posizione codice autobus "
        "volo binario pista categoria area giorno linea".split()
    ),
    plural=re.compile(r"[aeiuàù]\Z"),
    adjectives=frozenset("grande gran semplice breve importante giovane forte veloce".split()),
    thousand="mila",
    millions=frozenset("milione milioni miliardo miliardi".split()),
    only_one=True,
)


def _thousands(match: re.Match[str]) -> str:
    return _LANGUAGE.cardinal(1000 * int(match[1]))


def _aged(match: re.Match[str]) -> str:
    """ "ventenne", "ventitreenne"."""
    words = _LANGUAGE.cardinal(int(match[1]))
    return (f"{words[:-1]}e" if words.endswith("é") else words[:-1]) + "enn"


def _after_article(match: re.Match[str]) -> str:
    gender = "f" if match["article"].lower().endswith("la") else "m"
    return f"{match['article']} {_ordinal(int(match['number']), gender)}"


def _elided(match: re.Match[str]) -> str:
    """ "un'arancia"."""
    noun = match["noun"].lower()
    masculine = noun in _AGREEMENT.masculine | _AGREEMENT.function_words
    return match[0] if masculine or not _AGREEMENT.feminine.fullmatch(noun) else "un'"


_MONTHS = (
    "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre"
)
_LANGUAGE = Language(
    code="it",
    numbers=NUMBERS,
    words=(
        "every: ogni, "
        "minus: meno, comma: virgola, point: punto, dot: punto, to: a, and: e, and_half: e "
        "mezzo, and_half_f: e mezza, "
        "half_m: mezzo, half_f: mezza, over: su, power: elevato a, squared: al quadrato, "
        "cubed: al cubo, slash: barra, hyphen: trattino, underscore: trattino basso, "
        "at: chiocciola, question: punto interrogativo, equals: uguale a, hash: cancelletto, "
        "colon: due punti, plus: più, percent: per cento, tilde: tilde, hashtag: hashtag, "
        "version: versione, times: per, by: per, divided: diviso, less: minore di, "
        "greater: maggiore di, at_most: minore o uguale a, at_least: maggiore o uguale a, "
        "unequal: diverso da, almost: circa, about: circa, number: numero, "
        "plus_minus: più o meno, root: radice quadrata di, infinity: infinito, section: paragrafo, "
        "and_or: e o, and_minutes: e, so_often: volte, www: vu vu vu, of: di, am: di mattina, "
        "pm: del pomeriggio, late: di sera, "
        "millions: milione/milioni/miliardo/miliardi/bilione/bilioni"
    ),
    months=_MONTHS,
    month_forms={
        **{"gen": 1, "genn": 1, "feb": 2, "febbr": 2, "mar": 3, "apr": 4, "mag": 5, "giu": 6},
        **{"lug": 7, "ago": 8, "set": 9, "sett": 9, "ott": 10, "nov": 11, "dic": 12},
    },
    date=_date,
    clock=_clock,
    currencies=(
        "€ EUR: euro, $ US$ USD: dollaro/dollari, £ GBP: sterlina/sterline f, R$ BRL: real/reais, "
        "¥ JPY: yen, CHF: franco svizzero/franchi svizzeri, ₹ INR: rupia/rupie f, "
        "₽ RUB: rublo/rubli, CNY: yuan, ₿: bitcoin, ₤ ITL: lira/lire f, ₩: won, "
        "₺: lira turca/lire turche f, CAD: dollaro canadese/dollari canadesi, "
        "AUD: dollaro australiano/dollari australiani"
    ),
    hundredths=(
        "€ EUR CHF: centesimo/centesimi, $ US$ USD R$ CAD: centesimo/centesimi, £ GBP: penny/pence"
    ),
    money="{units} e {cents} {cent}",
    of_millions=lambda noun: f" di {noun}",
    contracted=lambda words: words.replace("una ora", "un'ora"),
    per=(
        "kWh: al chilowattora, m³ m3 mc: al metro cubo, km: al chilometro, m: al metro, "
        "t: alla tonnellata, ha: all'ettaro, GB: al gigabyte, "
        "h ora: all'ora, giorno: al giorno, mese: al mese, anno: all'anno, "
        "kg chilo: al chilo, m² mq: al metro quadrato, l litro: al litro, "
        "persona: a persona, notte: a notte, min: al minuto, s sec: al secondo, "
        "settimana: a settimana"
    ),
    scales="k K: mila, M: milione/milioni, Mln mln: milione/milioni, Mld mld: miliardo/miliardi",
    units=(
        "ppm: parte per milione/parti per milione f, bar: bar, atm: atmosfera/atmosfere "
        "f, mmHg: millimetro di mercurio/millimetri di mercurio, m/s2: metro al secondo "
        "quadrato/metri al secondo quadrato, "
        "km Km KM: chilometro/chilometri, m: metro/metri, cm: centimetro/centimetri, "
        "dm: decimetro/decimetri, mm: millimetro/millimetri, µm μm: micrometro/micrometri, "
        "nm: nanometro/nanometri, ft: piede/piedi, "
        "″: pollice/pollici, m² m2 mq: metro quadrato/metri quadrati, "
        "km² km2 kmq: chilometro quadrato/chilometri quadrati, "
        "cm² cm2: centimetro quadrato/centimetri quadrati, ha: ettaro/ettari, "
        "m³ m3 mc: metro cubo/metri cubi, cm³ cm3 cc: centimetro cubo/centimetri cubi, "
        "kg Kg: chilogrammo/chilogrammi, hg: ettogrammo/ettogrammi, g gr: grammo/grammi, "
        "mg: milligrammo/milligrammi, µg μg: microgrammo/microgrammi, t: tonnellata/tonnellate f, "
        "q: quintale/quintali, lb: libbra/libbre f, oz: oncia/once f, l L: litro/litri, "
        "ml mL: millilitro/millilitri, cl cL: centilitro/centilitri, dl: decilitro/decilitri, "
        "hl: ettolitro/ettolitri, km/h kmh Km/h: chilometro orario/chilometri orari, "
        "m/s: metro al secondo/metri al secondo, "
        "m/s²: metro al secondo quadrato/metri al secondo quadrato, "
        "mph: miglio orario/miglia orarie, s sec: secondo/secondi, ms: millisecondo/millisecondi, "
        "µs μs: microsecondo/microsecondi, ns: nanosecondo/nanosecondi, min: minuto/minuti, "
        "h: ora/ore f, Hz: hertz, kHz: chilohertz, MHz: megahertz, GHz: gigahertz, "
        "kB KB: kilobyte, MB: megabyte, GB: gigabyte, TB: terabyte, KiB: kibibyte, MiB: mebibyte, "
        "GiB: gibibyte, bps bit/s b/s: bit al secondo, kb Kb: kilobit, Mb: megabit, Gb: gigabit, "
        "kbps kbit/s: kilobit al secondo, Mbps Mbit/s: megabit al secondo, "
        "Gbps: gigabit al secondo, kB/s: kilobyte al secondo, MB/s: megabyte al secondo, "
        "W: watt, kW: chilowatt, MW: megawatt, GW: gigawatt, kWh: chilowattora, V: volt, "
        "kV: chilovolt, mA: milliampere, mAh: milliamperora, Ω: ohm, Pa: pascal, hPa: ettopascal, "
        "kPa: chilopascal, dB: decibel, cal: caloria/calorie f, kcal: chilocaloria/chilocalorie f, "
        "kJ: chilojoule, J: joule, N: newton, CV cv: cavallo/cavalli, px: pixel, "
        "dpi: punto per pollice/punti per pollice, giri/min: giro al minuto/giri al minuto, "
        "ab/km²: abitante per chilometro quadrato/abitanti per chilometro quadrato, "
        "ab./km²: abitante per chilometro quadrato/abitanti per chilometro quadrato, "
        "g/l: grammo per litro/grammi per litro, "
        "mg/l: milligrammo per litro/milligrammi per litro, pt pti: punto/punti, %: per cento n, "
        "‰: per mille n, "
        "°: grado/gradi, °C ºC ℃: grado Celsius/gradi Celsius, "
        "°F ºF: grado Fahrenheit/gradi Fahrenheit, K: kelvin"
    ),
    patterns={
        "one_of": "un|il|del|al|per|ogni|primo|ultimo",
        "day_lead": "la|alla|della|il|ogni|di|dal|al|e|del",
        "between": "tra|fra",
        "measures": r"tazz[ae]|tazzin[ae]|bicchier[ei]|cucchiai(?:o|ni|no)?|litr[oi]|"
        r"chil[oi]|or[ae]|bustin[ae]|cipoll[ae]|limon[ei]|pacchett[oi]|"
        r"bottigli[ae]|mel[ae]",
        "hours": "h",
        "day_end": "[°º]?",
        "scale_words": "milioni|milione|miliardi|miliardo|mila",
        "with_stop": "min|sec|h|kg|km|gr|q",
        "dated": "il|del|dal|al|lunedì|martedì|mercoledì|giovedì|venerdì|sabato|domenica",
        "days": "lun: lunedì, mar: martedì, mer: mercoledì, gio: giovedì, ven: venerdì, "
        "sab: sabato, "
        "dom: domenica",
        "free_calls": "800",
        "height": "{metres} e {rest}",
        "called": r"tel\.|tel|telefono|cell\.|cellulare|fax|chiam\w+ (?:il|lo|al)"
        "|numero verde|al numero",
        "dotted_hour": r"(?:(?<=\b[Oo]re )(?<!\w)|(?<=\bh )|(?<=\b[Aa]lle )|(?<=\b[Dd]alle )"
        r"|(?<=\b[Dd]elle )|(?<=\b[Ll]e ))",
    },
    agreement=_AGREEMENT,
    ordinal=_ordinal,
    fraction=_fraction,
    extra={
        "dates": {
            r"\b([Ll]['’]|[Dd]all['’]|[Aa]ll['’]|[Dd]ell['’])(8|11)/(1[0-2]|[1-9])(?![\w/])": (
                lambda match: f"{match[1]}{match[2]} {_MONTHS.split()[int(match[3]) - 1]}"
            )
        },
        "signs": {
            r"(?<![\w.])h\.?\s(?=[0-9]{1,2}[.:][0-9]{2}\b)": "ore ",
            # "l'1/10/2019" is the first
            r"\b([Ll])['’](?=1(?:[/.-][0-9]{1,2}[/.-][0-9]{2}|\s[a-z]+\s(?:19|20)))": (
                lambda match: "il " if match[1] == "l" else "Il "
            ),
            r"\b([Dd]a|[Aa]|[Dd]e)ll['’](?=1[/.-][0-9]{1,2}[/.-][0-9]{2})": r"\1l ",
            # "L. 104/92", "D.Lgs. 81/08"
            r"\b[Ll]\.\s(?=(?:n\.\s)?[0-9]+/[0-9]{2})": "legge ",
            r"(?P<law>\b(?:[Ll]egge|[Dd]ecreto|[Ll]gs\.|[Dd]\.?[Pp]\.?[Rr]\.?|[Dd]\.?[Ll]\.)"
            r"(?:\sn\.)?\s[0-9]+)/(?=[0-9]{2,4}\b)": r"\g<law> barra ",
            **calendar_ranges(_MONTHS.replace(" ", "|")),
        },
        "units": {
            # "al 45' del primo tempo"
            r"\b(?P<article>(?i:al|del|dal|nel|il)\s|(?i:all|dell|dall|nell|l)['’])"
            r"(?P<number>[1-9][0-9]{0,2})['’′](?!\w|['’])(?:\sminuto\b)?": lambda match: (
                f"{match['article']}{_ordinal(int(match['number']), 'm')} minuto"
            ),
            r"(?<![\w.,/:-])1\s?h\.?(?!\w)": lambda match: f"un'ora{kept_stop(match, 'it')}",
            # "1° e 2° piano", "la 2°B"
            r"(?<![\w.,°-])1°\se\s([2-9])°(?!\s?[CF]\b)": lambda match: (
                f"primo e {_ordinal(int(match[1]), 'm')}"
            ),
            r"(?<![\w.,°-])([1-9])°(?=[ABDEGH]\b)": lambda match: (
                f"{_ordinal(int(match[1]), 'm')} "
            ),
            # "il 2° di tre", "la 3° fila"
            r"\b(?P<article>[Ii]l|[Ll]o|[Aa]l|[Dd]el|[Nn]el|[Dd]al|[Ss]ul|[Uu]n|[Ll]a|[Aa]lla|[Dd]ella|"
            r"[Nn]ella|[Dd]alla)\s(?P<number>[1-9][0-9]?)°(?!\s?[CF]\b|[0-9])": _after_article,
            # "arrivato 2°", "il 1° nella gara"
            r"(?<![\w.,°/-])(1)°(?=\s(?![CF]\b)\w|[,;.!?)]|\Z)|(?<=(?:vat|cat|unt|zat)[oaie] )"
            r"([1-9][0-9]?)°": lambda match: _ordinal(int(match[1] or match[2]), "m"),
            **_AGREEMENT.degree_ordinals(_ordinal),
            **SPACED_DEGREES,
            **SHORT_YEARS,
            r"(?<![\w.,])[’']([3-9]00)(?!\w)": r"\1",  # the '500
        },
        "numbers": {
            r"\b[kK]m\s(?=[0-9])": "chilometro ",
            r"(?<![\w.])h\.?\s(?=[0-9]{1,2}(?!\w|[.,:][0-9]))": "ore ",
            r"(?<=\b[Aa]ll['’])1(?![\w°ª]|[.,:/-][0-9]|\s?%|\sper\b)|"
            r"(?<=\b[Dd]all['’])1(?![\w°ª]|[.,:/-][0-9]|\s?%|\sper\b)": "una",
            r"(?<![\w.,])([1-9][0-9]{0,2})\s?mila\b": _thousands,
            r"\bmezza ora\b": "mezz'ora",
            r"(?<![\w.,])([1-9][0-9])enn(?=[ei]\b)": _aged,
            # "un'ora", "uno studente"
            r"(?<![\w.,/:-])1\s(?=(?P<noun>[aeiouàèéìòù]\w+)\b)": _elided,
            r"(?<![\w.,/:-])1\s(?=(?:ora|unità|idea|opera|isola|email|auto|amica|altra|area|anima|"
            r"applicazione|immagine|opzione|istanza|azione|icona|estensione|ulteriore|"
            r"etichetta)\b)": ("un'"),
            r"(?<![\w.,/:-])1(?=\s(?:s[bcdfghlmnpqrtvz]|z|gn|ps|x|y)\w*[oe]\b)": "uno",
        },
    },
)
_CLASS = re.compile(r"\s[A-Z]\b")  # of a school: "5^ B"
_ORDINAL_RULES: Rules = {
    r"(?<![\w.,])([0-9]{1,4})\.?[º°](?!\w)(?=\s[a-zA-Z])(?!\s[CF]\b)": lambda match: _ordinal(
        int(match[1]), "m"
    ),
    r"(?<![\w.,])([0-9]{1,4})\.?[ºo](?!\w)": lambda match: _ordinal(int(match[1]), "m"),
    r"(?<![\w.,])([0-9]{1,4})\^(?!\w|[-−])": lambda match: _ordinal(
        int(match[1]),
        "m" if _AGREEMENT(match, 1) == "m" and not _CLASS.match(match.string, match.end()) else "f",
    ),
    r"(?<![\w.,])([0-9]{1,2})ª(?=[A-Z]\b)": lambda match: f"{_ordinal(int(match[1]), 'f')} ",
    r"(?<![\w.,])([0-9]{1,4})\.?(?:ª|\^?a)(?!\w)": lambda match: _ordinal(int(match[1]), "f"),
}


def _feminine_name(name: str) -> bool:
    return bool(re.search(r"a\Z|Isabel\Z", name)) and name not in ("Luca", "Andrea", "Nicola")


def _ruler(number: int, name: str) -> str:
    return _ordinal(number, "f" if _feminine_name(name) else "m")


def _ranked(number: int, noun: str) -> str:
    return _ordinal(number, "f" if _AGREEMENT.feminine.fullmatch(noun.lower()) else "m")


_ROMAN = roman_rules(
    centuries="secol[oi]|sec\\.",
    rulers=(
        "Vittorio Emanuele|Umberto|Carlo|Carlo Alberto|Luigi|Enrico|Filippo|Giovanni|Giovanni "
        "Paolo|"
        "Pio|Leone|Benedetto|Gregorio|Clemente|Urbano|Innocenzo|Paolo|Francesco|Napoleone|Giorgio|"
        "Edoardo|Riccardo|Giacomo|Elisabetta|Caterina|Pietro|Nicola|Alessandro|Federico|Ramsete|"
        "Tolomeo|Leopoldo|Alberto|Guglielmo|Ferdinando|Isabella|Ottone|Costantino|Maria|Amedeo|"
        "Sisto|Giulio|Bonifacio|Adriano|Martino|Eugenio|Felipe|Dario|Serse|Cosimo|Lorenzo|Ivan"
    ),
    headings=(
        "capitolo|tomo|volume|libro|parte|atto|scena|articolo|titolo|allegato|appendice|fase|tipo|"
        "classe|livello|sezione|canto|figura|tabella|categoria|grado|gruppo|municipio|edizione"
    ),
    counted=(
        r"[Ss]ecolo|[Gg]uerra|[Rr]epubblica|[Cc]ongresso|[Cc]oncilio|[Ee]dizione|[Gg]iornata|"
        r"[Pp]remio|[Ff]estival|[Aa]nniversario|[Cc]entenario|[Cc]onferenza|[Aa]ssemblea|"
        r"[Cc]ampionato|[Dd]inastia|[Ll]egislatura|[Oo]limpiade|[Dd]istretto|[Mm]unicipio|"
        r"[Rr]eggimento|[Ll]egione|[Cc]ircoscrizione|[Cc]rociata|[Rr]eich|[Pp]iano|[Aa]rmata|"
        r"[Ii]nternazionale|[Cc]anto|[Cc]apitolo"
    ),
    century=lambda number, _: _ordinal(number, "m"),
    ruler=_ruler,
    heading=lambda number, head: _ranked(number, head),
    ranked=_ranked,
    alone=lambda number, _: _ordinal(number, "m"),
    ordinal=_ordinal,
)
# "via XX Settembre"
_ROMAN_DAYS: Rules = dict.fromkeys(
    (
        rf"\b(?P<numeral>[IVX]+)(?=\s(?i:{'|'.join(_LANGUAGE.month_names)})\b)",
        r"\b(?P<numeral>[IVXLC]{2,})(?=\s[a-z]{3,}i\b)",  # "XIV capitoli"
    ),
    numeral(lambda number, _: "primo" if number == 1 else _LANGUAGE.cardinal(number)),
)
# "la III A" is a class of a school.
_SCHOOL: Rules = {
    r"(?<=\b[Ll]a )(?P<numeral>[IV]+)(?=\s[A-H]\b)": numeral(
        lambda number, _: _ordinal(number, "f")
    )
}

_LETTERS = Letters(
    "a bi ci di e effe gi acca i i_lunga cappa elle emme enne o pi cu erre esse ti u vu doppia_vu "
    "ics ipsilon zeta",
    "UE USB IBM URL IP FBI DNA API CPU GPU SQL OGM IA CEO ISBN BCE FMI TV PC "
    "CD DVD UTC ATM UHT USL UDC EU IT HTML XML OMS SUV",
    said_words="ASL INPS CNEL CRAL FTSE",
    short_words="ad ah ai al ci co da di do ed eh fa fu ha ho il in io la le li lo ma me mi "
    "ne no od oh po re sa se si so su te ti to tu un va ve vi",
)


def italian() -> Normalizer:
    """The rules for Italian."""
    return normalizer(
        _LANGUAGE,
        _LETTERS,
        abbreviations=ABBREVIATIONS | number_ranges(_LANGUAGE.in_words),
        ordinals=_ORDINAL_RULES,
        roman=_ROMAN_DAYS | _SCHOOL | _ROMAN,
        abbreviated=r"\b[Mm](?:ax|in)\s[0-9]|[0-9]\s?[-–]\s?[0-9]|\b(?:ecc|etc|SpA|Srl|ca|tel|ab|sec)\b"
        + AT_END,
        phones=(
            r"0[0-9]{1,3}[ ./-][0-9]{5,8}",
            r"(?![0-9]{2}[.-][0-9]{2}[.-][0-9]{4}\b)0[0-9]{1,3}(?:[ .-][0-9]{2,4}){2,3}",
            r"3[0-9]{2}[ ./-]?[0-9]{6,7}",
            r"3[0-9]{2}(?:[ .-][0-9]{2,4}){2,3}",
            r"800[ .-][0-9]{3}[ .-]?[0-9]{3}",
        ),
    )
