"""Portuguese, as it is spoken in Brazil."""

import re

from ..acronyms import Letters
from ..engine import Normalizer, Rules
from ..language import Language
from ..number_words import NumberWords
from ..roman import roman_rules
from ..romance import ANY_SHORT_YEARS, ORDINAL_DEGREES, WEATHER_DEGREES, Agreement, normalizer
from .portuguese_abbreviations import ABBREVIATIONS, AT_END

_MASCULINE = (
    "0: zero|um|dois|três|quatro|cinco|seis|sete|oito|nove|dez|onze|doze|treze|quatorze|quinze|"
    "dezesseis|dezessete|dezoito|dezenove; 20: vinte[ e >>]; 30: trinta[ e >>]; "
    "40: quarenta[ e >>]; 50: cinquenta[ e >>]; 60: sessenta[ e >>]; 70: setenta[ e >>]; "
    "80: oitenta[ e >>]; 90: noventa[ e >>]; 100: cem; 101: cento e >>; 200: duzentos[ e >>]; "
    "300: trezentos[ e >>]; 400: quatrocentos[ e >>]; 500: quinhentos[ e >>]; "
    "600: seiscentos[ e >>]; 700: setecentos[ e >>]; 800: oitocentos[ e >>]; "
    "900: novecentos[ e >>]; 1000: mil[ >rest>]; 2000: << mil[ >rest>]; "
    "1000000: um milhão[ >rest>]; 2000000: <m< milhões[ >rest>]; "
    "1000000000: um bilhão[ >rest>]; 2000000000: <m< bilhões[ >rest>]; "
    "1000000000000: um trilhão[ >rest>]; 2000000000000: <m< trilhões[ >rest>]"
)


def _rest(form: str) -> str:
    """After thousands and millions: with "e" before a number that is one word or below 100."""
    entries = ["1: e =form=; 101: =form="]
    for scale in (1, 1000, 1000000, 1000000000):
        if scale > 1:
            entries.append(f"{scale}: e =form=; {101 * scale}: =form=")
        entries += [
            f"{n * 100 * scale}: e =form=; {n * 100 * scale + 1}: =form=" for n in range(2, 10)
        ]
    return "; ".join(entries).replace("=form=", f"={form}=")


_FEMININE = (
    _MASCULINE.replace("|um|dois|", "|uma|duas|")
    .replace("ntos[", "ntas[")
    .replace(">rest>", ">restf>")
)
NUMBERS = NumberWords(
    _MASCULINE, 10**15, m=_MASCULINE, f=_FEMININE, rest=_rest("m"), restf=_rest("f")
)
_ORDINALS = NumberWords(
    "0: zero|primeiro|segundo|terceiro|quarto|quinto|sexto|sétimo|oitavo|nono; "
    "10: décimo[ >>]; 20: vigésimo[ >>]; 30: trigésimo[ >>]; 40: quadragésimo[ >>]; "
    "50: quinquagésimo[ >>]; 60: sexagésimo[ >>]; 70: septuagésimo[ >>]; 80: octogésimo[ >>]; "
    "90: nonagésimo[ >>]; 100: centésimo[ >>]; 200: ducentésimo[ >>]; 300: trecentésimo[ >>]; "
    "400: quadringentésimo[ >>]; 500: quingentésimo[ >>]; 600: sexcentésimo[ >>]; "
    "700: septingentésimo[ >>]; 800: octingentésimo[ >>]; 900: noningentésimo[ >>]; "
    "1000: milésimo[ >>]",
    2000,
)


def _ordinal(number: int, gender: str) -> str:
    if number >= _ORDINALS.end:
        return _LANGUAGE.cardinal(number, gender)
    words = _ORDINALS.spell(number)
    return re.sub(r"o\b", "a", words) if gender == "f" else words


def _fraction(over: int, under: int) -> str:
    if under > 10 and under not in (100, 1000):
        return f"{_LANGUAGE.cardinal(over)} {_LANGUAGE.cardinal(under)} avos"
    name = {2: "meio", 3: "terço"}.get(under) or _ordinal(under, "m")
    return f"{_LANGUAGE.cardinal(over)} {name}{'' if over == 1 else 's'}"


def _in_parts(match: re.Match[str]) -> str:
    over, under = int(match[1]), int(match[2])
    if not (0 < over < under and 3 <= under <= 10):
        return match[0]
    name = {3: "terça"}.get(under) or _ordinal(under, "f")
    return f"{_LANGUAGE.cardinal(over, 'f')} {name}{'' if over == 1 else 's'}"


# "três quartas partes"
_PARTS: Rules = {r"(?<![\w/.,])([1-9])/([1-9]|10)(?=\s(?:\w+\s)?partes?\b)": _in_parts}
_GAME = re.compile(
    r"\b(?i:placar|jogo|partida|final|gols?|goleou|goleada|time|seleção|empat|termin|venc|ganh|perd|"
    r"derrot|bateu)|[A-ZÀ-Ý]\w+ [0-9]{1,2}\s?[xX×]\s?[0-9]{1,2} [A-ZÀ-Ý]"
)
_SETS = re.compile(r"\bsets?\b")
# "ganhou de 2x1"; in sets "25/20"
_SCORES: Rules = {
    r"(?<![\w.,])([0-9]{1,2})\s?[xX×]\s?([0-9]{1,2})(?!\w|[.,][0-9]|\s?(?:[cmk]?m|px|=)\b)": (
        lambda match: f"{match[1]} a {match[2]}" if _GAME.search(match.string) else match[0]
    ),
    r"(?<![\w.,/])([1-3][0-9])/([0-3]?[0-9])(?![\w/]|[.,][0-9])": (
        lambda match: f"{match[1]} a {match[2]}" if _SETS.search(match.string) else match[0]
    ),
}


# "maio/2020"
_SLASHED_MONTHS: Rules = {
    r"(?i:\b(janeiro|fevereiro|março|abril|maio|junho|julho|agosto|setembro|outubro|novembro|"
    r"dezembro))/(?=[12][0-9]{3}\b)": r"\1 de ",
}


def _date(language: Language, day: int, month: int, year: int | None) -> str:
    first = "primeiro" if day == 1 else language.cardinal(day)
    words = f"{first} de {language.month_names[month - 1]}"
    return words if year is None else f"{words} de {language.cardinal(year)}"


def _clock(language: Language, hour: int, minute: int) -> str:
    if minute:
        return f"{language.cardinal(hour, 'f')} e {language.cardinal(minute)}"
    return language.count(language.unit_nouns["h"], str(hour))


_AGREEMENT = Agreement(
    feminine=re.compile(
        r"(?!.*gramas?\Z).*(?:as?|(?:ç|s|x|gi|ni|st|id)(?:ão|ões)|dades?|tudes?|gem|gens?|ices?)|vez(?:es)?|"
        r"frentes?|paredes?|neves?|árvores?|mortes?|internet|ordens?|equipes?|superfícies?|dor(?:es)?|"
        r"cor(?:es)?|metades?|sortes?|artes?|peles?|correntes?|colher(?:es)?|carnes?|vontades?|"
        r"tempestades?|webs?|selfies?|avós?|chances?|mulheres|fomes?|sedes?|febres?|mães|telhas?|"
        r"interfaces?|performances?|bikes?|hashtags?|fraudes?|greves?|pestes?|"
        r"mulher(?:es)?|noites?|tardes?|classes?|partes?|flor(?:es)?|chaves?|redes?|leis?|nuvens?|"
        r"fases?|bases?|séries?|teses?|crises?|mãos?|fotos?|motos?|rádios?|aves?|mães?|torres?|"
        r"frases?|luz(?:es)?|voz(?:es)?|cruz(?:es)?|raiz(?:es)?|atriz(?:es)?|espécies?|irmãs?|"
        r"manhãs?|maçãs?|lãs?|variáveis|gentes?|mentes?|pontes?|fontes?|cidades?|unidades?|tribos?"
    ),
    masculine=frozenset(
        "dia dias mapa mapas problema problemas sistema sistemas programa programas tema temas "
        "idioma idiomas planeta planetas clima climas poema poemas drama dramas esquema esquemas "
        "sintoma sintomas diagrama diagramas telegrama gramas teorema teoremas dilema dilemas lema "
        "lemas emblema cometa cometas atletas artistas turistas sofá sofás papa papas panorama "
        "fantasma fantasmas mas mais apenas aroma aromas gás pijama pijamas grama quilogramas "
        "dálmatas poliglotas para até esta essa era uma guia guias coração corações quiosque "
        "jovens homens homem "
        "motorista motoristas guarda guardas cara caras cinema ciclista ciclistas cientista "
        "cientistas artista jornalista jornalistas alquimista colega colegas surfista "
        "jardins avião personagem trem trens bem bens item itens viajem".split()
    ),
    function_words=frozenset(
        "e ou a à ao às aos de do da dos das em no na nos nas com sem por para que é são foi era "
        "será há está estão tem têm se o os as um uma seu sua não como quando onde mais menos "
        "desde "
        "até entre sobre contra mas nem também já muito vírgula ponto antes "
        "depois durante por".split()
    ),
    labels=frozenset(
        "página páginas capítulo número números artigo figura tabela passo versão opção nível fase "
        "tomo volume seção linha coluna canal grupo tipo classe andar quarto porta sala rua século "
        "ano nota anexo exemplo lição unidade parte lugar posição código ônibus voo plataforma "
        "pista "
        "categoria área dia item etapa".split()
    ),
    plural=re.compile(r"s\Z"),
    adjectives=frozenset(
        "grandes grande melhores piores diferentes principais importantes possíveis maiores "
        "menores jovens simples".split()
    ),
    thousand="mil",
    feminine_articles=frozenset(("às", "das", "as", "à")),
    feminine_part="das|delas|destas|dessas",
    millions=frozenset("milhão milhões bilhão bilhões trilhão trilhões".split()),
)

_LANGUAGE = Language(
    code="pt",
    numbers=NUMBERS,
    words=(
        "every: por, "
        "minus: menos, comma: vírgula, point: ponto, dot: ponto, to: a, and: e, and_half: e "
        "meio, and_half_f: e meia, "
        "half_m: meio, half_f: meia, over: sobre, power: elevado a, squared: ao quadrado, "
        "cubed: ao cubo, slash: barra, hyphen: hífen, underscore: sublinhado, at: arroba, "
        "question: interrogação, equals: igual a, hash: cerquilha, colon: dois pontos, "
        "plus: mais, percent: por cento, tilde: til, hashtag: hashtag, version: versão, "
        "times: vezes, by: por, divided: dividido por, less: menor que, greater: maior que, "
        "at_most: menor ou igual a, at_least: maior ou igual a, unequal: diferente de, "
        "almost: aproximadamente, about: aproximadamente, number: número, "
        "plus_minus: mais ou menos, root: raiz quadrada de, infinity: infinito, section: "
        "parágrafo, "
        "and_or: e ou, and_minutes: e, so_often: vezes, www: dáblio dáblio dáblio, "
        "of: de, am: da manhã, pm: da tarde, late: da noite, "
        "millions: milhão/milhões/bilhão/bilhões/trilhão/trilhões"
    ),
    months=(
        "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro"
    ),
    month_forms={
        **{"jan": 1, "fev": 2, "mar": 3, "abr": 4, "mai": 5, "jun": 6, "jul": 7, "ago": 8},
        **{"set": 9, "out": 10, "nov": 11, "dez": 12},
    },
    date=_date,
    clock=_clock,
    plural=lambda whole, decimals: 0 if whole == (0 if decimals else 1) else 1,
    currencies=(
        "R$ BRL: real/reais, € EUR: euro/euros, $ US$ USD: dólar/dólares, £ GBP: libra/libras f, "
        "¥ JPY: iene/ienes, CHF: franco suíço/francos suíços, ₹ INR: rupia/rupias f, "
        "₽ RUB: rublo/rublos, CNY: yuan/yuans, ₿: bitcoin/bitcoins, ¢: centavo/centavos, "
        "ARS: peso argentino/pesos argentinos, ₩: won/wons, ₺: lira/liras f, "
        "CAD C$: dólar canadense/dólares canadenses, AUD: dólar australiano/dólares australianos, "
        "MXN: peso mexicano/pesos mexicanos"
    ),
    hundredths=(
        "R$ BRL $ US$ USD CAD C$: centavo/centavos, € EUR: centavo/centavos, £ GBP: pêni/pence"
    ),
    money="{units} e {cents} {cent}",
    of_millions=lambda noun: f" de {noun}",
    per=(
        "kWh: por quilowatt-hora, m³ m3: por metro cúbico, km: por quilômetro, m: por "
        "metro, t: por tonelada, ha: por hectare, GB: por gigabyte, "
        "h hora: por hora, dia: por dia, mês: por mês, ano: por ano, kg quilo: por quilo, "
        "m²: por metro quadrado, l litro: por litro, pessoa: por pessoa, noite: por noite, "
        "min: por minuto, s seg: por segundo, semana: por semana"
    ),
    scales="k K: mil, M: milhão/milhões, mi: milhão/milhões, bi: bilhão/bilhões, B: bilhão/bilhões",
    units=(
        "ppm: parte por milhão/partes por milhão f, bar: bar/bars, atm: "
        "atmosfera/atmosferas f, mmHg: milímetro de mercúrio/milímetros de mercúrio, "
        "m/s2: metro por segundo ao quadrado/metros por segundo ao quadrado, "
        "km Km KM kms: quilômetro/quilômetros, m mts: metro/metros, cm: centímetro/centímetros, "
        "dm: decímetro/decímetros, mm: milímetro/milímetros, µm μm: micrômetro/micrômetros, "
        "nm: nanômetro/nanômetros, ft: pé/pés, ″: polegada/polegadas f, "
        "m² m2: metro quadrado/metros quadrados, km² km2: quilômetro quadrado/quilômetros "
        "quadrados, "
        "cm² cm2: centímetro quadrado/centímetros quadrados, ha: hectare/hectares, "
        "m³ m3: metro cúbico/metros cúbicos, cm³ cm3 cc: centímetro cúbico/centímetros cúbicos, "
        "kg Kg kgs: quilograma/quilogramas, g gr grs: grama/gramas, mg: miligrama/miligramas, "
        "µg μg: micrograma/microgramas, t: tonelada/toneladas f, lb: libra/libras f, "
        "oz: onça/onças f, l L lt lts: litro/litros, ml mL: mililitro/mililitros, "
        "cl: centilitro/centilitros, dl: decilitro/decilitros, hl: hectolitro/hectolitros, "
        "km/h kmh Km/h: quilômetro por hora/quilômetros por hora, "
        "m/s: metro por segundo/metros por segundo, "
        "m/s²: metro por segundo ao quadrado/metros por segundo ao quadrado, "
        "mph: milha por hora/milhas por hora f, s seg: segundo/segundos, "
        "ms: milissegundo/milissegundos, µs μs: microssegundo/microssegundos, "
        "ns: nanossegundo/nanossegundos, min: minuto/minutos, h hs hrs: hora/horas f, "
        "Hz: hertz, kHz: quilohertz, MHz: mega-hertz, GHz: giga-hertz, "
        "kB KB: quilobyte/quilobytes, MB: megabyte/megabytes, GB: gigabyte/gigabytes, "
        "TB: terabyte/terabytes, KiB: kibibyte/kibibytes, MiB: mebibyte/mebibytes, "
        "GiB: gibibyte/gibibytes, bps bit/s Bit/s b/s: bit por segundo/bits por segundo, "
        "kb Kb: quilobit/quilobits, "
        "Mb: megabit/megabits, Gb: gigabit/gigabits, "
        "kbps kbit/s: quilobit por segundo/quilobits por segundo, "
        "Mbps Mbit/s: megabit por segundo/megabits por segundo, "
        "Gbps: gigabit por segundo/gigabits por segundo, "
        "kB/s: quilobyte por segundo/quilobytes por segundo, "
        "MB/s: megabyte por segundo/megabytes por segundo, W: watt/watts, "
        "kW: quilowatt/quilowatts, MW: megawatt/megawatts, GW: gigawatt/gigawatts, "
        "kWh: quilowatt-hora/quilowatts-hora, V: volt/volts, kV: quilovolt/quilovolts, "
        "mA: miliampere/miliamperes, mAh: miliampere-hora/miliamperes-hora, Ω: ohm/ohms, "
        "Pa: pascal/pascals, hPa: hectopascal/hectopascals, kPa: quilopascal/quilopascals, "
        "dB: decibel/decibéis, cal: caloria/calorias f, kcal: quilocaloria/quilocalorias f, "
        "kJ: quilojoule/quilojoules, J: joule/joules, N: newton/newtons, cv CV: cavalo/cavalos, "
        "px: pixel/pixels, rpm: rotação por minuto/rotações por minuto f, "
        "hab/km² hab./km²: habitante por quilômetro quadrado/habitantes por quilômetro quadrado, "
        "g/l: grama por litro/gramas por litro, mg/l: miligrama por litro/miligramas por litro, "
        "pts: ponto/pontos, %: por cento n, ‰: por mil n, °: grau/graus, "
        "°C ºC ℃: grau Celsius/graus Celsius, "
        "°F ºF: grau Fahrenheit/graus Fahrenheit, K: kelvin/kelvins"
    ),
    patterns={
        "one_of": "um|o|do|ao|no|por|cada|primeiro|último",
        "day_lead": "ao|aos|na|no|nas|nos|às|de|e|a|toda",
        "between": "entre",
        "measures": r"xícaras?|copos?|colher(?:es)?|litros?|quilos?|horas?|cebolas?|"
        r"limão|pacotes?|garrafas?|latas?|maçãs?",
        "hours": "h|hs|hrs",
        "time_span": "das {first} às ",
        "time_lead": "das|desde as|entre as|às",
        "day_end": "(?:(?<=1)[º°])?",
        "date_link": "de",
        "scale_words": "milhões|milhão|bilhões|bilhão|mil|trilhões|trilhão",
        "with_stop": "min|seg|hrs|kgs|kg|kms|km|cm|grs|gr|mts|lts|lt",
        "dated": "(?<=[0-9] )[ae]|dia|dias|em|até|segunda|terça|quarta|quinta|sexta|sábado|"
        "domingo|[a-z]+-feira",
        "days": "seg: segunda, ter: terça, qua: quarta, qui: quinta, sex: sexta, sáb: sábado, dom: "
        "domingo",
        "free_calls": "0[38]00",
        "height": "{metres} e {rest}",
        "called": r"tel\.|tel|telefone|telefones|celular|fax|ligue(?: para)?",
    },
    agreement=_AGREEMENT,
    ordinal=_ordinal,
    fraction=_fraction,
    extra={
        "fractions": _PARTS,
        "signs": _SCORES | _SLASHED_MONTHS,
        "numbers": {r"\b[kK]m\s(?=[0-9])": "quilômetro "},
        "units": {
            r"\b(?P<article>[Oo]|[Aa]o|[Dd]o|[Nn]o|[Pp]elo)\s(?P<number>[1-9][0-9]?)°"
            r"(?!\s?[CF]\b|[0-9])": (lambda match: f"{match['article']} {match['number']}º"),
            r"(?<![\w.,])([1-9])([ºª])(?=[ABDEGH]\b)": r"\1\2 ",  # a class: "2ºB"
            **WEATHER_DEGREES,
            **_AGREEMENT.degree_ordinals(_ordinal),
            **ORDINAL_DEGREES,
            **ANY_SHORT_YEARS,
        },
    },
)

_DAYS = "segunda terça quarta quinta sexta".split()
_ORDINAL_RULES: Rules = {
    # Days of the week: "às 3as e 5as", "2ª-feira"
    r"(?<![\w.,])([2-6])[ªa]s?(?=-feira|\sfeira)": lambda match: _DAYS[int(match[1]) - 2],
    r"(?<=\b[àn]s )([2-6])(?:ªs|as)\b(?:\se\s([2-6])(?:ªs|as)\b)?|(?<=\bnas )([2-6])(?:ªs|as)\b"
    r"(?:\se\s([2-6])(?:ªs|as)\b)?": lambda match: " e ".join(
        f"{_DAYS[int(day) - 2]}s" for day in match.groups() if day
    ),
    r"(?<![\w.,])([0-9]{1,3})(?P<gender>[ºoªa])s(?!\w)": lambda match: (
        _ordinal(int(match[1]), "f" if match["gender"] in "ªa" else "m") + "s"
    ),
    r"(?<![\w.,])([0-9]{1,4})\.?[º°](?!\w)(?=\s[a-zA-Z])(?!\s[CF]\b)": lambda match: _ordinal(
        int(match[1]), "m"
    ),
    r"(?<![\w.,])([0-9]{1,4})\.?[ºo](?!\w)(?P<plural>s)?": lambda match: _ordinal(
        int(match[1]), "m"
    ),
    r"(?<![\w.,])([0-9]{1,4})\.?(?:ª|a)(?!\w)": lambda match: _ordinal(int(match[1]), "f"),
}


def _ruler(number: int, name: str) -> str:
    if number > 10:
        return _LANGUAGE.cardinal(number)
    return _ordinal(
        number, "f" if re.search(r"a\Z|Isabel\Z|Beatriz\Z|Elizabeth\Z|Elisabete\Z", name) else "m"
    )


def _century(number: int, _: str) -> str:
    return _ordinal(number, "m") if number <= 10 else _LANGUAGE.cardinal(number)


def _ranked(number: int, noun: str) -> str:
    return _ordinal(number, "f" if _AGREEMENT.feminine.fullmatch(noun.lower()) else "m")


_ROMAN = roman_rules(
    centuries="séculos?|séc\\.",
    rulers=(
        "Pedro|João|Luís|Luis|Carlos|Henrique|Filipe|Afonso|Manuel|Maria|José|Sebastião|Sancho|"
        "Dinis|Fernando|João Paulo|Pio|Leão|Bento|Gregório|Clemente|Urbano|Inocêncio|Paulo|"
        "Francisco|Napoleão|Guilherme|Jorge|Eduardo|Ricardo|Jaime|Elizabeth|Elisabete|Isabel|"
        "Catarina|Alexandre|Nicolau|Ivan|Frederico|Ramsés|Ptolomeu|Leopoldo|Alberto|Balduíno|"
        "Constantino|Oto|Duarte|Miguel|Juan Carlos|Bonifácio|Sisto|Júlio|Adriano|Dario|Xerxes"
    ),
    headings=(
        "capítulo|tomo|volume|livro|parte|ato|cena|artigo|título|anexo|apêndice|fase|tipo|classe|"
        "nível|seção|canto|figura|tabela|categoria|grau|grupo|unidade|região|inciso"
    ),
    counted=(
        "Guerra|República|Congresso|Concílio|Edição|edição|Jornada|Prêmio|Feira|Festival|"
        "Encontro|Simpósio|Aniversário|aniversário|Centenário|centenário|Semana|Conferência|"
        "Assembleia|Campeonato|Copa|Jogos|Dinastia|dinastia|Internacional|Região|Reinado|Cruzada|"
        "Exército|Fórum|Seminário|Mostra|Bienal|Reich|Império|Olimpíada|[Mm]ilênio"
    ),
    century=_century,
    ruler=_ruler,
    heading=lambda number, _: _LANGUAGE.cardinal(number),
    ranked=_ranked,
    alone=lambda number, _: _LANGUAGE.cardinal(number),
    ordinal=_ordinal,
)

_LETTERS = Letters(
    "á bê cê dê é efe gê agá i jota cá ele eme ene ó pê quê erre esse tê u vê dáblio xis ípsilon "
    "zê",
    "UE USB IBM URL IP FBI DNA API CPU GPU SQL OGM IA CEO ISBN BCE FMI TV PC CD DVD "
    "UTC ICMS IBGE OAB UFRJ UTI IPVA IPTU INSS BBC CNN HIV IPI OMC RG GPS SMS HTML OMS",
    said_words="PSOL USP UERJ",
    short_words="ah ai ao as da de do ei em eu ha ia ir ja la le me na no oh oi os ou se si "
    "su te tu um va ve vi",
)


def portuguese() -> Normalizer:
    """The rules for Brazilian Portuguese."""
    return normalizer(
        _LANGUAGE,
        _LETTERS,
        abbreviations=ABBREVIATIONS,
        ordinals=_ORDINAL_RULES,
        roman=_ROMAN,
        abbreviated=r"\b[Mm](?:áx|ín)\s[0-9]|\b(?:etc|EUA|Ltda|Cia|Jr|aprox|Srª|Drª)\b" + AT_END,
        phones=(
            r"\(0?[0-9]{2}\)\s?9?\s?[0-9]{4}[ -][0-9]{4}",
            r"[0-9]{2} 9?[0-9]{4}-[0-9]{4}",
            r"9?[0-9]{4}-[0-9]{4}(?<!-(?:19|20)[0-9]{2})",
            r"0[38]00[ -][0-9]{3}[ -][0-9]{4}",
            r"[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}",
            r"[0-9]{5}-[0-9]{3}",
            r"[0-9]{2}\.[0-9]{3}\.[0-9]{3}/[0-9]{4}-[0-9]{2}",
        ),
    )
