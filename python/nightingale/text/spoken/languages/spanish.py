"""Spanish."""

import re

from ..acronyms import Letters
from ..engine import Normalizer, Rules
from ..language import Language
from ..number_words import NumberWords
from ..roman import numeral, roman_rules
from ..romance import ANY_SHORT_YEARS, ORDINAL_DEGREES, WEATHER_DEGREES, Agreement, normalizer
from .spanish_abbreviations import ABBREVIATIONS, AT_END

_MASCULINE = (
    "0: cero|uno|dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez|once|doce|trece|catorce|quince|"
    "dieciséis|diecisiete|dieciocho|diecinueve|veinte|veintiuno|veintidós|veintitrés|veinticuatro|"
    "veinticinco|veintiséis|veintisiete|veintiocho|veintinueve; 30: treinta[ y >>]; "
    "40: cuarenta[ y >>]; 50: cincuenta[ y >>]; 60: sesenta[ y >>]; 70: setenta[ y >>]; "
    "80: ochenta[ y >>]; 90: noventa[ y >>]; 100: cien; 101: ciento >>; 200: doscientos[ >>]; "
    "300: trescientos[ >>]; 400: cuatrocientos[ >>]; 500: quinientos[ >>]; 600: seiscientos[ >>]; "
    "700: setecientos[ >>]; 800: ochocientos[ >>]; 900: novecientos[ >>]; 1000: mil[ >>]; "
    "2000: <m< mil[ >>]; 1000000: un millón[ >>]; 2000000: <m< millones[ >>]; "
    "1000000000000: un billón[ >>]; 2000000000000: <m< billones[ >>]"
)
_BEFORE_NOUN = _MASCULINE.replace("|uno|", "|un|").replace("veintiuno", "veintiún")
_FEMININE = re.sub(
    "(?<=ient)os(?=\\[)",
    "as",
    _MASCULINE.replace("|uno|", "|una|").replace("veintiuno", "veintiuna"),
).replace("<m< mil[", "<fm< mil[")
NUMBERS = NumberWords(
    _MASCULINE,
    10**15,
    m=_BEFORE_NOUN,
    f=_FEMININE,
    # Before "mil": "doscientas mil", but "veintiún mil".
    fm=_FEMININE.replace("|una|", "|un|").replace("veintiuna", "veintiún"),
)
_ORDINALS = NumberWords(
    "0: cero|primero|segundo|tercero|cuarto|quinto|sexto|séptimo|octavo|noveno|décimo|undécimo|"
    "duodécimo|decimotercero|decimocuarto|decimoquinto|decimosexto|decimoséptimo|decimoctavo|"
    "decimonoveno; 20: vigésimo[ >>]; 30: trigésimo[ >>]; 40: cuadragésimo[ >>]; "
    "50: quincuagésimo[ >>]; 60: sexagésimo[ >>]; 70: septuagésimo[ >>]; 80: octogésimo[ >>]; "
    "90: nonagésimo[ >>]; 100: centésimo[ >>]; 200: ducentésimo[ >>]; 300: tricentésimo[ >>]; "
    "400: cuadringentésimo[ >>]; 500: quingentésimo[ >>]; 600: sexcentésimo[ >>]; "
    "700: septingentésimo[ >>]; 800: octingentésimo[ >>]; 900: noningentésimo[ >>]; "
    "1000: milésimo[ >>]",
    2000,
)


def _ordinal(number: int, gender: str) -> str:
    if number >= _ORDINALS.end:
        return _LANGUAGE.cardinal(number, gender)
    words = _ORDINALS.spell(number)
    if gender == "f":
        return re.sub(r"o\b", "a", words)
    if gender == "short":  # before a masculine noun
        return re.sub(r"(?<=primer|tercer)o\b", "", words)
    return words


def _fraction(over: int, under: int) -> str:
    if under <= 10:
        name = {2: "medio", 3: "tercio"}.get(under) or _ordinal(under, "m")
    else:
        name = _LANGUAGE.cardinal(under).replace(" ", "").removesuffix("a")
        name = {100: "centésimo", 1000: "milésimo"}.get(under, f"{name}avo")
    return f"{_LANGUAGE.cardinal(over, 'm')} {name}{'' if over == 1 else 's'}"


def _in_parts(match: re.Match[str]) -> str:
    over, under = int(match[1]), int(match[2])
    if not (0 < over < under and 3 <= under <= 10):
        return match[0]
    name = {3: "tercera"}.get(under) or _ordinal(under, "f")
    return f"{_LANGUAGE.cardinal(over, 'f')} {name}{'' if over == 1 else 's'}"


# "tres cuartas partes"
_PARTS: Rules = {r"(?<![\w/.,])([1-9])/([1-9]|10)(?=\s(?:\w+\s)?partes?\b)": _in_parts}


def _date(language: Language, day: int, month: int, year: int | None) -> str:
    words = f"{language.cardinal(day)} de {language.month_names[month - 1]}"
    return words if year is None else f"{words} de {language.cardinal(year)}"


def _clock(language: Language, hour: int, minute: int) -> str:
    words = language.cardinal(hour, "f")
    return f"{words} y {language.cardinal(minute)}" if minute else words


_AGREEMENT = Agreement(
    feminine=re.compile(
        r"(?!.*gramas?\Z).*(?:as?|ci[óo]n(?:es)?|si[óo]n(?:es)?|xi[óo]n(?:es)?|dad(?:es)?|tad(?:es)?|tud(?:es)?|"
        r"umbres?)|ve(?:z|ces)|mujer(?:es)?|noches?|tardes?|clases?|calles?|partes?|flor(?:es)?|"
        r"im[áa]gen(?:es)?|claves?|red(?:es)?|ley(?:es)?|llaves?|nubes?|señal(?:es)?|fases?|bases?|"
        r"series?|tesis|crisis|manos?|fotos?|motos?|radios?|sedes?|naves?|aves?|madres?|torres?|"
        r"frases?|luz|luces|voz|voces|cruz|cruces|hojas?|raíz|raíces|actriz|actrices|canción|leches?|"
        r"libras?|superficies?|especies?|variables?|llave|sangres?|piel(?:es)?|raz[óo]n(?:es)?|gentes?|"
        r"muertes?|reuni[óo]n(?:es)?|uni[óo]n(?:es)?|opini[óo]n(?:es)?|webs?|corrientes?|carnes?|"
        r"nieves?|fuentes?|pelis?|v[íi]rgen(?:es)?|sartén|sartenes|cárcel(?:es)?|mentes?|"
        r"[óo]rdenes|nueces|perdices|veces|suites?|pymes?|bicis?|"
        r"regi[óo]n(?:es)?|legi[óo]n(?:es)?|sienes?|cumbres?|costumbres?|legumbres?|serpientes?"
    ),
    masculine=frozenset(
        "día días mapa mapas problema problemas sistema sistemas programa programas tema temas "
        "idioma idiomas planeta planetas clima climas poema poemas drama dramas esquema esquemas "
        "síntoma síntomas diagrama diagramas telegrama gramas teorema teoremas dilema dilemas "
        "lema lemas emblema cometas cometa atletas policías guardias artistas turistas tranvía "
        "tranvías sofá sofás papá papás kilograma panorama fantasma fantasmas crucigramas "
        "dálmatas políglotas además más atrás quizás jamás detrás entradas y a la las una para "
        "hasta esta esa era agua alma hambre águila arma aula área pirata piratas superventas "
        "cura curas colega colegas euros ascensoristas periodistas taxistas dentistas "
        "ciudadana aroma aromas axioma axiomas carisma enigma enigmas trauma traumas gas "
        "gases".split()
    )
    - {"entradas", "ciudadana"},
    function_words=frozenset(
        "y e o u a al de del en con sin por para que es son fue era será hay está están ha han se "
        "le la las el los lo un una su sus si no como cuando donde más menos desde hasta entre "
        "sobre según contra ante tras pero ni también ya muy coma punto además hasta antes después "
        "durante mediante igual dividido ayer hoy mañana anoche".split()
    ),
    labels=frozenset(
        "página páginas capítulo número números artículo figura tabla paso versión opción nivel "
        "fase tomo volumen sección línea fila columna canal grupo tipo clase planta piso "
        "habitación "
        "puerta sala calle siglo año día nota anexo apartado ejemplo ejercicio lección tema unidad "
        "parte puesto posición código bus autobús vuelo andén vía pista categoría ruta área".split()
    ),
    plural=re.compile(r"s\Z"),
    adjectives=frozenset(
        "grandes gran mejores peores diferentes principales importantes posibles "
        "mayores menores jóvenes interesantes simples".split()
    ),
    thousand="mil",
    feminine_articles=frozenset(("las",)),
    feminine_part="de (?:las|ellas|estas|esas)",
    millions=frozenset("millón millones billón billones".split()),
)

_LETTERS = Letters(
    "a be ce de e efe ge hache i jota ka ele eme ene o pe cu erre ese te u uve uve_doble equis "
    "i_griega zeta",
    "UE IBM USB URL IP PC TV SMS EEUU UGT DNI OCU ADN ARN URSS UCI IA API CPU GPU HTML "
    "SQL ATM UHF CEO ISBN UTC GMT PDF DVD CD BBC CNN FBI UAM UE OMS IPC ITV",
    said_words="PSOE",
    short_words="ah al ay da de di eh el en es fe ha he id ir ja je la le lo me mi ni no oh "
    "os se si su te tu uf un va ve vi ya yo",
)

_LANGUAGE = Language(
    code="es",
    numbers=NUMBERS,
    words=(
        "every: cada, "
        "minus: menos, comma: coma, point: punto, dot: punto, to: a, and: y, and_half: y medio, "
        "and_half_f: y media, "
        "half_m: medio, half_f: media, over: sobre, power: elevado a, squared: al cuadrado, "
        "cubed: al cubo, slash: barra, hyphen: guion, underscore: guion bajo, at: arroba, "
        "question: interrogación, equals: igual a, hash: almohadilla, colon: dos puntos, "
        "plus: más, percent: por ciento, tilde: virgulilla, hashtag: almohadilla, "
        "version: versión, times: por, by: por, divided: dividido entre, less: menor que, "
        "greater: mayor que, at_most: menor o igual que, at_least: mayor o igual que, "
        "unequal: distinto de, almost: aproximadamente, about: aproximadamente, number: número, "
        "plus_minus: más menos, root: raíz cuadrada de, infinity: infinito, section: párrafo, "
        "and_or: y o, and_minutes: y, so_often: veces, www: uve doble uve doble uve doble, "
        "of: de, am: de la mañana, pm: de la tarde, late: de la noche, "
        "millions: millón/millones/billón/billones"
    ),
    months=(
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre"
    ),
    month_forms={
        **{"ene": 1, "feb": 2, "mar": 3, "abr": 4, "jun": 6, "jul": 7, "ago": 8},
        **{"sep": 9, "sept": 9, "set": 9, "oct": 10, "nov": 11, "dic": 12},
    },
    date=_date,
    clock=_clock,
    currencies=(
        "€ EUR: euro/euros, $ US$ USD U$S: dólar/dólares, £ GBP: libra/libras f, "
        "R$ BRL: real/reales, ¥ JPY: yen/yenes, MX$ MXN: peso mexicano/pesos mexicanos, "
        "ARS: peso argentino/pesos argentinos, CLP: peso chileno/pesos chilenos, "
        "COP: peso colombiano/pesos colombianos, CHF: franco suizo/francos suizos, "
        "₹ INR: rupia/rupias f, ₽ RUB: rublo/rublos, CNY: yuan/yuanes, ₿: bitcoin/bitcoins, "
        "¢: centavo/centavos, S/: sol/soles, ₩: won/wones, ₺: lira/liras f, ₲: guaraní/guaraníes, "
        "CAD C$: dólar canadiense/dólares canadienses, AUD: dólar australiano/dólares australianos"
    ),
    hundredths=(
        "€ EUR: céntimo/céntimos, $ US$ USD U$S MX$ MXN R$ BRL: centavo/centavos, "
        "£ GBP: penique/peniques, S/: céntimo/céntimos"
    ),
    money="{units} con {cents} {cent}",
    of_millions=lambda noun: f" de {noun}",
    per=(
        "kWh: por kilovatio hora, m³ m3: por metro cúbico, km: por kilómetro, m: por "
        "metro, t: por tonelada, ha: por hectárea, GB: por gigabyte, "
        "h hora: por hora, día: al día, mes: al mes, año: al año, kg kilo: por kilo, "
        "m²: por metro cuadrado, l litro: por litro, persona: por persona, "
        "noche: por noche, min: por minuto, s seg: por segundo, sem semana: por semana, "
        "unidad: por unidad, ud: por unidad"
    ),
    scales="k K: mil, M: millón/millones, mill: millón/millones, MM: mil millones",
    units=(
        "ppm: parte por millón/partes por millón f, bar: bar/bares, atm: "
        "atmósfera/atmósferas f, mmHg: milímetro de mercurio/milímetros de mercurio, "
        "m/s2: metro por segundo al cuadrado/metros por segundo al cuadrado, "
        "km Km KM kms: kilómetro/kilómetros, m mts: metro/metros, cm: centímetro/centímetros, "
        "dm: decímetro/decímetros, mm: milímetro/milímetros, µm μm: micrómetro/micrómetros, "
        "nm: nanómetro/nanómetros, ft: pie/pies, "
        "″: pulgada/pulgadas f, m² m2: metro cuadrado/metros cuadrados, "
        "km² km2: kilómetro cuadrado/kilómetros cuadrados, "
        "cm² cm2: centímetro cuadrado/centímetros cuadrados, ha: hectárea/hectáreas f, "
        "m³ m3: metro cúbico/metros cúbicos, cm³ cm3 cc: centímetro cúbico/centímetros cúbicos, "
        "kg Kg kgs: kilogramo/kilogramos, g gr grs: gramo/gramos, mg: miligramo/miligramos, "
        "µg μg mcg: microgramo/microgramos, t: tonelada/toneladas f, lb lbs: libra/libras f, "
        "oz: onza/onzas f, l L lt lts: litro/litros, ml mL: mililitro/mililitros, "
        "cl cL: centilitro/centilitros, dl: decilitro/decilitros, hl: hectolitro/hectolitros, "
        "km/h kmh Km/h: kilómetro por hora/kilómetros por hora, "
        "m/s: metro por segundo/metros por segundo, "
        "m/s²: metro por segundo al cuadrado/metros por segundo al cuadrado, "
        "mph: milla por hora/millas por hora f, s seg: segundo/segundos, "
        "ms: milisegundo/milisegundos, µs μs: microsegundo/microsegundos, "
        "ns: nanosegundo/nanosegundos, min: minuto/minutos, h hs hrs: hora/horas f, "
        "Hz: hercio/hercios, kHz: kilohercio/kilohercios, MHz: megahercio/megahercios, "
        "GHz: gigahercio/gigahercios, kB KB: kilobyte/kilobytes, MB: megabyte/megabytes, "
        "GB: gigabyte/gigabytes, TB: terabyte/terabytes, KiB: kibibyte/kibibytes, "
        "MiB: mebibyte/mebibytes, GiB: gibibyte/gibibytes, kB/s: kilobyte por segundo/kilobytes "
        "por segundo, "
        "bps bit/s b/s: bit por segundo/bits por segundo, kb Kb: kilobit/kilobits, "
        "Mb: megabit/megabits, Gb: gigabit/gigabits, "
        "kbps kbit/s: kilobit por segundo/kilobits por segundo, "
        "Mbps Mbit/s: megabit por segundo/megabits por segundo, "
        "Gbps: gigabit por segundo/gigabits por segundo, "
        "MB/s: megabyte por segundo/megabytes por segundo, W: vatio/vatios, "
        "kW: kilovatio/kilovatios, MW: megavatio/megavatios, GW: gigavatio/gigavatios, "
        "kWh: kilovatio hora/kilovatios hora, V: voltio/voltios, kV: kilovoltio/kilovoltios, "
        "mA: miliamperio/miliamperios, mAh: miliamperio hora/miliamperios hora, Ω: ohmio/ohmios, "
        "Pa: pascal/pascales, hPa: hectopascal/hectopascales, kPa: kilopascal/kilopascales, "
        "dB: decibelio/decibelios, cal: caloría/calorías f, kcal: kilocaloría/kilocalorías f, "
        "kJ: kilojulio/kilojulios, J: julio/julios, N: newton/newtons, CV cv: caballo/caballos, "
        "px: píxel/píxeles, ppp dpi: punto por pulgada/puntos por pulgada, "
        "rpm: revolución por minuto/revoluciones por minuto f, "
        "hab/km² hab./km²: habitante por kilómetro cuadrado/habitantes por kilómetro cuadrado, "
        "g/l: gramo por litro/gramos por litro, mg/l: miligramo por litro/miligramos por litro, "
        "g/cm³: gramo por centímetro cúbico/gramos por centímetro cúbico, "
        "msnm: metro sobre el nivel del mar/metros sobre el nivel del mar, "
        "pts: punto/puntos, pta ptas: peseta/pesetas f, %: por ciento n, ‰: por mil n, "
        "°: grado/grados, "
        "°C ºC ℃: grado Celsius/grados Celsius, °F ºF: grado Fahrenheit/grados Fahrenheit, "
        "K: kelvin/kelvins"
    ),
    patterns={
        "one_of": "un|el|del|al|por|cada|este|ese|primer|último",
        "day_lead": "el|los|del|al|cada|de|y|a",
        "between": "entre",
        "measures": r"tazas?|vasos?|cucharad(?:it)?as?|litros?|kilos?|horas?|copas?|"
        r"barras?|cebollas?|limón|pizzas?|paquetes?|botellas?|manzanas?",
        "hours": "h|hs|hrs",
        "time_span": "de {first} a ",
        "time_lead": "de|desde|entre|las",
        "dotted_hour": r"(?:(?<=\b[lL]as )|(?<=\bde )(?=[0-9]{1,2}\.[0-9]{2}\sa\s"
        r"[0-9.:]{1,5}\s?h\b))",
        "days": "lun: lunes, mar: martes, mié: miércoles, jue: jueves, vie: viernes, "
        "sáb: sábado, dom: "
        "domingo",
        "date_link": "del?",
        "scale_words": "mil millones|millones|millón|mil|billones",
        "with_stop": "min|seg|hrs|kgs|kg|kms|km|cm|grs|gr|mts|lts|lt",
        "dated": "el|del|al|día|lunes|martes|miércoles|jueves|viernes|sábado|domingo",
        "called": r"tel\.|tel|tfno\.|teléfono|teléfonos|móvil|fax|llam[ae]r? al",
    },
    agreement=_AGREEMENT,
    ordinal=_ordinal,
    fraction=_fraction,
    extra={
        "numbers": {
            r"\b[kK]m\s(?=[0-9])": "kilómetro ",
            r"(?<=\b[aA] la )1(?!\w|[.,:/-][0-9])": "una",  # o'clock
            r"(?<![\w.,])([0-9]+)['’]([0-9]{1,2})(?![\w'’\"])": r"\1,\2",  # a decimal
            # "el 23-F"
            r"(?<=[0-9])-([A-Z])(?!\w)": lambda match: f" {_LETTERS.spelled(match[1])}",
        },
        "fractions": _PARTS,
        # The sign of the peso.
        "signs": {r"\$\s?(?=[0-9.,]+\s(?:pesos|soles|bolívares|quetzales|córdobas)\b)": ""},
        "units": {
            r"\b(?P<article>[Ee]l|[Aa]l|[Dd]el|[Uu]n)\s(?P<number>[1-9][0-9]?)\.?°"
            r"(?!\s?[CF]\b|[0-9])": (lambda match: f"{match['article']} {match['number']}.º"),
            r"(?<![\w.,])([0-9]+)['’]([0-9]{1,2})(?=\s?(?:[ckm]?m|kg|km/h|millones)\b)": r"\1,\2",
            r"(?<![\w.,])([1-9])([ºª])(?=[ABDEGH]\b)": r"\1\2 ",  # a class: "2ºB"
            **WEATHER_DEGREES,
            **_AGREEMENT.degree_ordinals(_ordinal),
            **ORDINAL_DEGREES,
            **ANY_SHORT_YEARS,
        },
    },
)


def _before_noun(match: re.Match[str]) -> bool:
    """ "el 3º piso", not "3º B"."""
    return match.string[match.end() + 1 : match.end() + 2].islower()


_ORDINAL_RULES: Rules = {
    r"(?<![\w.,])([0-9]{1,4})(?:\.?[ºo°]|\.º)(?!\w)(?<!0o)(?=\s(?!C\b))": lambda match: _ordinal(
        int(match[1]), "short" if _AGREEMENT(match, 1) == "m" and _before_noun(match) else "m"
    ),
    r"(?<![\w.,])([0-9]{1,4})\.?[ºo](?!\w)": lambda match: _ordinal(int(match[1]), "m"),
    r"(?<![\w.,])([0-9]{1,4})\.?ª(?!\w)": lambda match: _ordinal(int(match[1]), "f"),
    r"(?<![\w.,])([0-9]{1,4})(?:\.?(?:er|ᵉʳ))(?!\w)": lambda match: _ordinal(
        int(match[1]), "short"
    ),
    r"(?<![\w.,])([0-9]{1,4})(?:ro|do|to|mo|vo|no)(?!\w)": lambda match: _ordinal(
        int(match[1]), "m"
    ),
    r"(?<![\w.,])([0-9]{1,4})(?:ra|da|ta|ma|va|na)(?!\w)": lambda match: _ordinal(
        int(match[1]), "f"
    ),
}


def _ruler(number: int, name: str) -> str:
    """ "segundo", "trece"."""
    if number > 10:
        return _LANGUAGE.cardinal(number)
    return _ordinal(number, "f" if re.search(r"a\Z|Isabel\Z|Beatriz\Z", name) else "m")


def _century(number: int, _: str) -> str:
    return _ordinal(number, "m") if number <= 10 else _LANGUAGE.cardinal(number)


def _ranked(number: int, noun: str) -> str:
    gender = _AGREEMENT.feminine.fullmatch(noun.lower()) and "f"
    return _ordinal(number, gender or "short")


_ROMAN = roman_rules(
    centuries="siglos?|s\\.",
    rulers=(
        "Felipe|Carlos|Fernando|Alfonso|Juan|Juan Carlos|Luis|Enrique|Jaime|Pedro|Sancho|Ramiro|"
        "Isabel|Juana|Pío|León|Benedicto|Gregorio|Clemente|Urbano|Inocencio|Pablo|Juan Pablo|"
        "Francisco|Napoleón|Guillermo|Jorge|Eduardo|Ricardo|Jacobo|Catalina|Alejandro|Nicolás|"
        "Iván|María|Manuel|José|Amadeo|Ramsés|Ptolomeo|Constantino|Otón|Federico|Leopoldo|Alberto|"
        "Balduino|Gustavo|Cristián|Harald|Moctezuma|Darío|Jerjes|Bonifacio|Sixto|Julio|Adriano"
    ),
    headings=(
        "capítulo|tomo|volumen|libro|parte|acto|escena|artículo|título|anexo|apéndice|fase|tipo|"
        "clase|nivel|sección|canto|figura|tabla|categoría|grado|grupo|unidad|región"
    ),
    counted=(
        "Guerra|República|Congreso|Concilio|Edición|edición|Jornadas?|Premios?|Feria|Festival|"
        "Cumbre|Certamen|Encuentro|Simposio|Aniversario|aniversario|Centenario|centenario|Semana|"
        "Conferencia|Asamblea|Campeonato|Copa|Juegos|Dinastía|dinastía|Internacional|Región|"
        "Legislatura|legislatura|[Mm]ilenio|Convenio|Plan|Concurso|Torneo|Maratón|Reich|Cruzada|Batallón|Olimpiada"
    ),
    century=_century,
    ruler=_ruler,
    heading=lambda number, _: _LANGUAGE.cardinal(number),
    ranked=_ranked,
    alone=lambda number, _: _LANGUAGE.cardinal(number),
    ordinal=_ordinal,
)


def spanish() -> Normalizer:
    """The rules for Spanish."""
    return normalizer(
        _LANGUAGE,
        _LETTERS,
        abbreviations=ABBREVIATIONS,
        ordinals=_ORDINAL_RULES,
        roman=_ROMAN
        | {
            # "Carlos I de España y V de Alemania"
            r"(?<=\by\s)(?P<numeral>[IVX]+)(?=\sde\s[A-Z])": numeral(_century),
            r"\b(?P<before>años?)\s(?P<numeral>[IVX]{2,})\b": numeral(_century),
        },
        abbreviated=r"\b[LS]-[VD]\b|\bN-[IVX]|[0-9]\suds\b|\bcdt?as?\b|\b(?:etc|EE|UU|Ud|Uds|Vd|Vds|Cía|Ltda|EUA|AC|DC|[aApdD]C|aprox|min)\b"
        + AT_END,
        phones=(
            r"[6-9][0-9]{2}[ .-][0-9]{3}[ .-][0-9]{3}",
            r"[679][0-9]{8}",
            r"[6-9][0-9]{2}(?:[ .-][0-9]{2}){3}",
            r"[0-9]{2} [0-9]{4} [0-9]{4}",
            r"[89][0-9][ .-][0-9]{3}[ .-][0-9]{2}[ .-][0-9]{2}",
            r"\([0-9]{2,3}\)\s?[0-9]{3,4}[ -][0-9]{3,4}",
            r"90[0-2][ .][0-9]{2,3}[ .][0-9]{2,3}(?:[ .][0-9]{2})?",
        ),
    )
