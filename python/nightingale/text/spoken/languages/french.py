"""French, as it is spoken in France."""

import re

from ..acronyms import Letters
from ..engine import Normalizer, Rules
from ..language import Language
from ..number_words import NumberWords, by_hundreds
from ..roman import numeral, roman_rules
from ..romance import SHORT_YEARS, SPACED_DEGREES, Agreement, normalizer
from .french_abbreviations import ABBREVIATIONS, AT_END
from .french_nouns import FEMININE, MASCULINE

_TENS = (
    "0: zéro|un|deux|trois|quatre|cinq|six|sept|huit|neuf|dix|onze|douze|treize|quatorze|quinze|"
    "seize|dix-sept|dix-huit|dix-neuf|vingt|vingt et un; 22: vingt->>; 30: trente|trente et un; "
    "32: trente->>; 40: quarante|quarante et un; 42: quarante->>; 50: cinquante|cinquante et un; "
    "52: cinquante->>; 60/20: soixante|soixante et un; 62/20: soixante->>; "
    "71: soixante et onze; 72/20: soixante->>; 80: quatre-vingts; 81/20: quatre-vingt->>; "
    "100: cent[ >>]; "
)
_LARGE = (
    "1000: mille[ >>]; 2000: <k< mille[ >>]; 1000000: un million[ >>]; "
    "2000000: <m< millions[ >>]; 1000000000: un milliard[ >>]; 2000000000: <m< milliards[ >>]; "
    "1000000000000: un billion[ >>]; 2000000000000: <m< billions[ >>]"
)
_MASCULINE = (
    _TENS
    + by_hundreds(lambda n, rest: f"{n}: <m< cent {rest}; " if rest else f"{n}: <m< cents; ")
    + _LARGE
)
_FEMININE = re.sub(r"\bet un\b", "et une", _MASCULINE).replace("zéro|un|", "zéro|une|")
NUMBERS = NumberWords(
    _MASCULINE,
    10**15,
    m=_MASCULINE,
    f=_FEMININE,
    # Before "mille", where "vingts" and "cents" have no s.
    k=_MASCULINE.replace("cents;", "cent;").replace("vingts;", "vingt;"),
)


def _ordinal(number: int, gender: str) -> str:
    if number == 1:
        return "première" if gender == "f" else "premier"
    words = NUMBERS.spell(number)
    words = re.sub(r"(?<=vingt|.cent|llion)s\Z|e\Z", "", words)
    words = re.sub(r"cinq\Z", "cinqu", words)
    return re.sub(r"neuf\Z", "neuv", words) + "ième"


def _fraction(over: int, under: int) -> str:
    name = {2: "demi", 3: "tiers", 4: "quart"}.get(under) or _ordinal(under, "m")
    plural = "" if over == 1 or name.endswith("s") else "s"
    return f"{_LANGUAGE.cardinal(over)} {name}{plural}"


def _date(language: Language, day: int, month: int, year: int | None) -> str:
    words = f"{'premier' if day == 1 else language.cardinal(day)} {language.month_names[month - 1]}"
    return words if year is None else f"{words} {language.cardinal(year)}"


def _clock(language: Language, hour: int, minute: int) -> str:
    words = language.count(language.unit_nouns["h"], str(hour))
    return f"{words} {language.cardinal(minute, 'f')}" if minute else words


def _of_millions(noun: str) -> str:
    return f" d'{noun}" if noun[0] in "aeiouyéêh" else f" de {noun}"


_AGREEMENT = Agreement(
    feminine=FEMININE,
    masculine=MASCULINE,
    adjectives=frozenset(
        "autre autres petit petite petits petites grand grande grands grandes jeune jeunes même "
        "mêmes seul seule nouveau nouvelle nouveaux nouvelles autre premier première premiers "
        "premières dernier dernière derniers dernières bon bonne bons bonnes vieux vieille "
        "simple simples vrai vraie".split()
    ),
    function_words=frozenset(
        "et ou à au aux de du des en dans par pour que qui est sont a ont sur sous avec sans le la "
        "les un une ne se ce il elle on y mais donc si plus moins virgule point".split()
    ),
    labels=frozenset(
        "page pages années chapitre numéro article figure tableau étape version option niveau "
        "phase tome "
        "volume section ligne colonne canal groupe type classe étage chambre porte salle rue "
        "siècle "
        "note annexe exemple leçon unité partie place code bus vol quai voie piste catégorie route "
        "zone table case équipe".split()
    ),
    plural=re.compile(r"[sx]\Z"),
    label_form="k",
    thousand="mille",
    millions=frozenset("million millions milliard milliards".split()),
)

# "plus d'un million"; not "de 1 à 10"
_ELISION: Rules = {
    r"\b([dD])e (?=1(?:[0-9]{6}|[ \u00a0\u202f.][0-9]{3}[ \u00a0\u202f.][0-9]{3}|,[0-9]+)?"
    r"(?:[ \u00a0\u202f](?!(?:à|et|ou|-) |[0-9])|[,.;] |\.?\Z))": r"\1'",
}

_LANGUAGE = Language(
    code="fr",
    numbers=NUMBERS,
    words=(
        "every: aux, per_unit: par, "
        "minus: moins, comma: virgule, point: point, dot: point, to: à, and: et, "
        "and_half: et demi, and_half_f: et demie, half_m: un demi, half_f: une demi, over: sur, "
        "power: puissance, "
        "squared: au carré, cubed: au cube, slash: barre oblique, hyphen: tiret, "
        "underscore: tiret bas, at: arobase, question: point d'interrogation, equals: égale, "
        "hash: dièse, colon: deux-points, plus: plus, percent: pour cent, tilde: tilde, "
        "hashtag: hashtag, version: version, times: fois, by: par, divided: divisé par, "
        "less: inférieur à, greater: supérieur à, at_most: inférieur ou égal à, "
        "at_least: supérieur ou égal à, unequal: différent de, almost: environ, about: environ, "
        "number: numéro, plus_minus: plus ou moins, root: racine carrée de, infinity: infini, "
        "section: paragraphe, and_or: et ou, so_often: fois, www: trois double vé, of: d[e'], "
        "am: du matin, pm: de l'après-midi, "
        "late: du soir, millions: million/millions/milliard/milliards/billion/billions"
    ),
    months="janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    month_forms={
        **{"janv": 1, "jan": 1, "févr": 2, "fév": 2, "avr": 4, "juil": 7, "sept": 9},
        **{"oct": 10, "nov": 11, "déc": 12, "aout": 8, "fevrier": 2, "decembre": 12},
    },
    date=_date,
    clock=_clock,
    plural=lambda whole, _: 0 if whole < 2 else 1,
    currencies=(
        "€ EUR: euro/euros, $ US$ USD: dollar/dollars, £ GBP: livre/livres f, R$ BRL: réal/réaux, "
        "¥ JPY: yen/yens, CHF: franc suisse/francs suisses, FF F: franc/francs, "
        "CAD C$ $CA: dollar canadien/dollars canadiens, ₹ INR: roupie/roupies f, "
        "₽ RUB: rouble/roubles, CNY: yuan/yuans, ₿: bitcoin/bitcoins, FCFA: franc CFA/francs CFA, "
        "₩: won/wons, ₺: livre turque/livres turques f, AUD: dollar australien/dollars australiens"
    ),
    hundredths=(
        "€ EUR CHF F FF: centime/centimes, $ US$ USD CAD C$ $CA: cent/cents, £ GBP: penny/pence, "
        "R$ BRL: centavo/centavos"
    ),
    money="{units} {cents}",
    of_millions=_of_millions,
    per=(
        "kWh: le kilowattheure, m³ m3: le mètre cube, km: du kilomètre, m: le mètre, t: "
        "la tonne, ha: l'hectare, Go: le gigaoctet, "
        "h heure: de l'heure, jour: par jour, j: par jour, mois: par mois, an: par an, "
        "kg kilo: le kilo, m²: le mètre carré, l litre: le litre, "
        "personne pers: par personne, nuit: par nuit, min: par minute, s sec: par seconde, "
        "sem semaine: par semaine"
    ),
    scales="k K: mille, M: million/millions, Md Mds: milliard/milliards",
    units=(
        "ppm: partie par million/parties par million f, bar: bar/bars, atm: "
        "atmosphère/atmosphères f, mmHg: millimètre de mercure/millimètres de mercure, "
        "m/s2: mètre par seconde au carré/mètres par seconde au carré, "
        "km Km KM kms: kilomètre/kilomètres, m: mètre/mètres, cm: centimètre/centimètres, "
        "dm: décimètre/décimètres, mm: millimètre/millimètres, µm μm: micromètre/micromètres, "
        "nm: nanomètre/nanomètres, ft: pied/pieds, "
        "″: pouce/pouces, m² m2: mètre carré/mètres carrés, "
        "km² km2: kilomètre carré/kilomètres carrés, "
        "cm² cm2: centimètre carré/centimètres carrés, ha: hectare/hectares, "
        "m³ m3: mètre cube/mètres cubes, cm³ cm3: centimètre cube/centimètres cubes, "
        "kg Kg kgs: kilogramme/kilogrammes, g gr: gramme/grammes, mg: milligramme/milligrammes, "
        "µg μg: microgramme/microgrammes, t: tonne/tonnes f, lb: livre/livres f, oz: once/onces f, "
        "l L: litre/litres, ml mL: millilitre/millilitres, cl cL: centilitre/centilitres, "
        "dl dL: décilitre/décilitres, hl: hectolitre/hectolitres, "
        "km/h kmh Km/h: kilomètre par heure/kilomètres par heure, "
        "m/s: mètre par seconde/mètres par seconde, "
        "m/s²: mètre par seconde au carré/mètres par seconde au carré, mph: mile par heure/miles "
        "par heure, "
        "s sec: seconde/secondes f, ms: milliseconde/millisecondes f, "
        "µs μs: microseconde/microsecondes f, ns: nanoseconde/nanosecondes f, "
        "min mn: minute/minutes f, h H hrs: heure/heures f, j: jour/jours, "
        "Hz: hertz, kHz: kilohertz, MHz: mégahertz, GHz: gigahertz, "
        "ko Ko kB KB: kilooctet/kilooctets, Mo MB: mégaoctet/mégaoctets, Go GB: "
        "gigaoctet/gigaoctets, "
        "To TB: téraoctet/téraoctets, Kio KiB: kibioctet/kibioctets, Mio MiB: "
        "mébioctet/mébioctets, "
        "Gio GiB: gibioctet/gibioctets, "
        "bps bit/s b/s: bit par seconde/bits par seconde, kb Kb: kilobit/kilobits, "
        "Mb: mégabit/mégabits, Gb: gigabit/gigabits, "
        "kbit/s kb/s kbps: kilobit par seconde/kilobits par seconde, "
        "Mbit/s Mb/s Mbps: mégabit par seconde/mégabits par seconde, "
        "Gbit/s Gb/s Gbps: gigabit par seconde/gigabits par seconde, ko/s kB/s: kilooctet par "
        "seconde/kilooctets par seconde, "
        "Mo/s MB/s: mégaoctet par seconde/mégaoctets par seconde, W: watt/watts, "
        "kW: kilowatt/kilowatts, MW: mégawatt/mégawatts, GW: gigawatt/gigawatts, "
        "kWh: kilowattheure/kilowattheures, V: volt/volts, kV: kilovolt/kilovolts, "
        "mA: milliampère/milliampères, mAh: milliampère-heure/milliampères-heures, Ω: ohm/ohms, "
        "Pa: pascal/pascals, hPa: hectopascal/hectopascals, kPa: kilopascal/kilopascals, "
        "dB: décibel/décibels, cal: calorie/calories f, kcal: kilocalorie/kilocalories f, "
        "kJ: kilojoule/kilojoules, J: joule/joules, N: newton/newtons, ch: cheval/chevaux, "
        "px: pixel/pixels, ppp: point par pouce/points par pouce, tr/min: tour par minute/tours "
        "par minute, "
        "hab/km² hab./km²: habitant par kilomètre carré/habitants par kilomètre carré, "
        "g/l: gramme par litre/grammes par litre, mg/l: milligramme par litre/milligrammes par "
        "litre, "
        "pt pts: point/points, fr: franc/francs, ct cts: centime/centimes, %: pour cent, "
        "‰: pour mille, "
        "°: degré/degrés, "
        "°C ºC ℃: degré Celsius/degrés Celsius, °F ºF: degré Fahrenheit/degrés Fahrenheit, "
        "K: kelvin/kelvins"
    ),
    patterns={
        "one_of": "un|le|du|au|par|chaque|premier|dernier|ce",
        "day_lead": "le|les|du|au|chaque|et|de",
        "between": "entre",
        "measures": r"tasses?|verres?|cuillères?|litres?|kilos?|heures?|sachets?|"
        r"oignons?|citrons?|paquets?|bouteilles?|pommes?",
        "hours": "[hH]",
        "day_end": "(?:er|ᵉʳ)?",
        "scale_words": "millions?|milliards?|mille",
        "with_stop": "min|sec|kg|km|fr",
        "dated": "le|du|au|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche",
        "days": "lun: lundi, mar: mardi, mer: mercredi, jeu: jeudi, ven: vendredi, sam: samedi, "
        "dim: "
        "dimanche",
        "height": "{metres} {rest}",
        "called": r"tél\.|tél|téléphone|portable|fax|numéro|au|appelez le",
    },
    agreement=_AGREEMENT,
    ordinal=_ordinal,
    fraction=_fraction,
    extra={
        "numbers": {
            r"\b[kK]m\s(?=[0-9])": "kilomètre ",
            r"(?<=\bin-)([0-9]{1,2})[º°]": r"\1",  # the size of a book
            **_ELISION,
        },
        "signs": {
            r"(?<=[0-9][hH])/(?=[0-9]{1,2}[hH])": " et ",
            r"\b([0-9]+)\s?[hH]/24\b": r"\1 heures sur 24",
            r"\b7\s?[jJ](?:ours)?/7\b": "7 jours sur 7",
        },
        "dates": {
            r"(?<=guerre de )(14|39)-(18|45)\b|(?<=guerre )(14|39)-(18|45)\b": r"\1\3 \2\4",
            # The number of a law: "no 78-17".
            r"(?<=\bno )([0-9]+)-(?=[0-9])|(?<=\bn° )([0-9]+)-(?=[0-9])": r"\1\2 ",
            r"(?<=\b[LRD]\. )([0-9]+)-(?=[0-9])|(?<=\b[LRD])([0-9]+)-(?=[0-9])": r"\1\2 ",
            r"(?<=\bart\. )([0-9]+)-(?=[0-9])|(?<=\barticle )([0-9]+)-(?=[0-9])": r"\1\2 ",
        },
        "units": _ELISION | SPACED_DEGREES | SHORT_YEARS,
    },
)


def _ordinals(match: re.Match[str]) -> str:
    number = int(re.sub(r"\D", "", match[1]))
    feminine = match["ending"] in ("re", "ère", "ere", "nde", "ʳᵉ")
    if match["ending"] in ("nd", "nde"):
        words = "seconde" if feminine else "second"
    else:
        words = _ordinal(number, "f" if feminine else "m")
    return words + ("s" if match["plural"] else "")


_ORDINAL_RULES: Rules = {
    r"(?<![\w.,])([0-9]{1,3}(?:[ \u00a0\u202f][0-9]{3})*|[0-9]+)"
    r"(?P<ending>er|ᵉʳ|re|ʳᵉ|ère|ere|nde?|e|ᵉ|è|ème|eme|ième)(?P<plural>s)?(?!\w)": _ordinals,
    r"(?<![\w.,])2(?P<feminine>de|d)(?P<plural>s)?(?!\w)": lambda match: (
        ("seconde" if match["feminine"] == "de" else "second") + (match["plural"] or "")
    ),
    # In an enumeration: "1º", "2°".
    r"(?<![\w.,])([0-9]{1,2})[º°](?=\s[A-ZÀ-Ý]|\s[a-zà-ÿ]{2})": lambda match: (
        f"{_ordinal(int(match[1]), 'f')}ment"
    ),
}

_roman_ordinal = numeral(lambda number, _: _ordinal(number, "m"))
_ROMAN_FIRST: Rules = {
    # "XXe siècle", "Ve République", "François Ier"
    r"\b(?![LC]e)(?P<numeral>[IVXLC]+)(?:ème|eme|e|ᵉ|è)(?P<plural>s)?(?!\w)": lambda match: (
        _roman_ordinal(match) + ("s" if match["plural"] else "")
    ),
    r"\b(?P<numeral>I)(?:er|ᵉʳ)(?!\w)": "premier",
    r"\b(?P<numeral>I)(?:re|ère|ʳᵉ)(?!\w)": "première",
}


def _counting(number: int, _: str) -> str:
    return _LANGUAGE.cardinal(number)


def _ruler(number: int, _: str) -> str:
    return "premier" if number == 1 else _LANGUAGE.cardinal(number)


_ROMAN = _ROMAN_FIRST | roman_rules(
    centuries="siècles?",
    rulers=(
        "Louis|Henri|Charles|François|Philippe|Napoléon|Jean|Jean-Paul|Pie|Léon|Benoît|Paul|"
        "Grégoire|Clément|Urbain|Innocent|Édouard|Edouard|George|Georges|Guillaume|Richard|Jacques|"
        "Élisabeth|Elisabeth|Élizabeth|Elizabeth|Catherine|Pierre|Nicolas|Alexandre|Frédéric|"
        "Ramsès|Ptolémée|Léopold|Albert|Baudouin|Gustave|Christian|Ivan|Marie|Juan Carlos|"
        "Ferdinand|Isabelle|Robert|Hugues|Othon|Constantin|Mehmed|Rainier|Carol|Michel|Hassan|Mohammed"
    ),
    headings=(
        "chapitre|tome|volume|livre|partie|acte|scène|article|titre|annexe|appendice|phase|type|"
        "classe|niveau|section|chant|figure|tableau|catégorie|grade|groupe|unité|paris"
    ),
    counted="(?!)",
    century=_counting,
    ruler=_ruler,
    heading=lambda number, head: (
        "premier"
        if number == 1 and head.lower() in ("chapitre", "tome", "livre", "acte", "article", "titre")
        else _LANGUAGE.cardinal(number)
    ),
    ranked=_counting,
    alone=_counting,
)

_LETTERS = Letters(
    "a bé cé dé e effe gé hache i ji ka elle emme enne o pé ku erre esse té u vé double_vé iks "
    "i_grec zède",
    "TVA PIB UE USB IBM URL IP PDG RATP CEE USA UMP EDF RER BNF IUT ADN ARN URSS API CPU GPU "
    "SQL ONG OGM IRM ISBN BCE FMI IA CIA FBI UHT HLM UTC RTE AFP ANPE "
    "CDI PME PMI JO DUT HEC GIGN ADSL SAV SUV TER VIP CIO OM OL RSA APL SMS GPS IVG IGN BD CD "
    "DVD TV PC CV SA AOC AOP OPA OMS OMC IUFM USTL UFC",
    short_words="ah ai an as au ce ci de du eh en es et eu fi ha he if il je la le lu ma me "
    "mi ne ni nu oh on or os ou pi pu ri sa se si su ta te tu un us va vu",
)


def french() -> Normalizer:
    """The rules for French."""
    return normalizer(
        _LANGUAGE,
        _LETTERS,
        abbreviations=ABBREVIATIONS,
        ordinals=_ORDINAL_RULES,
        roman=_ROMAN,
        abbreviated=r"\b[Mm](?:ax|in)\s[0-9]|\b(?:etc|Mme|Mmes|Mlle|Mlles|Mgr|Drs?|Prs?|Mes?|Ste?|Cie|[bB]d|appt|[rR]dv|RDV|Sté|Ets|Melle|[rR]te|[Tt]él|[0-9]\sp|[0-9]\spp|[IVX]e\ss|no|nos|SVP|svp|env)\b"
        + AT_END,
        phones=(
            r"0[1-9](?:[ .\u00a0\u202f-][0-9]{2}){4}",
            r"0[1-9][0-9]{8}",
            r"0 ?8[0-9]{2}(?:[ .\u00a0\u202f][0-9]{2,3}){2,3}",
            r"3[0-9]{3}(?<=3[0-9]{3})(?=\s\(numéro)",
        ),
        phones_by_groups=True,
    )
