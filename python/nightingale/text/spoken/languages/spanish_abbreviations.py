"""Spanish abbreviations."""

from ..abbreviations import abbreviation_rules, at_end

_WORDS = (
    "etc: etcétera, aprox: aproximadamente, Av Avda Avd avda av: avenida, Pza Pl pza: plaza, "
    "Ctra ctra: carretera, dto: descuento, Hnos: hermanos, Ayto: ayuntamiento, "
    "Urb: urbanización, Edif: edificio, "
    "vto: vencimiento, Mtro: maestro, Gta: glorieta, Apdo apdo: apartado, "
    "Temp temp: temperatura, Expte expte: expediente, inc: inciso, incl: incluido, "
    "ss: siguientes, "
    "ibíd: ibídem, "
    "cf cfr: confróntese, Pdte pdte: presidente, Fdo fdo: firmado, cta: cuenta, "
    "tlf tlfno: teléfono, oct: octubre, nov: noviembre, dic: diciembre, feb: febrero, "
    "ago: agosto, "
    "sept: septiembre, abr: abril, esq: esquina, lun: lunes, mié: miércoles, jue: jueves, "
    "vie: viernes, sáb: sábado, min: mínimo, gob: gobierno, univ: universidad, "
    "Ud Vd: usted, Uds Vds: ustedes, tel tfno Tel Tfno: teléfono, máx: máximo, mín: mínimo, "
    "dpto depto: departamento, admón: administración, Cía: compañía, Ltda: limitada, "
    "izq izda: izquierda, dcha: derecha, esp: especialmente, vs: versus, pdo: pasado, "
    "ppal: principal, Jr: júnior, hab: habitantes, coord: coordinador, atte: atentamente, "
    "Depto Dpto: departamento, trad: traducción, pral: principal, ej: ejemplo"
)
ABBREVIATIONS = abbreviation_rules(
    "es",
    titles=(
        "Sr: señor, Sra: señora, Srta: señorita, Sres: señores, Sras: señoras, Dr: doctor, "
        "Dra: doctora, Dres: doctores, D: don, Dña Dª: doña, Prof: profesor, Profa: profesora, "
        "Lic: licenciado, Ing: ingeniero, Arq: arquitecto, Gral: general, Cnel: coronel, "
        "Cap: capitán, Tte: teniente, Mons: monseñor, Sto: santo, Sta: santa, S: san, Fr: fray, "
        "Hno: hermano, Hna: hermana, Excmo: excelentísimo, Excma: excelentísima, "
        "Ilmo: ilustrísimo, Ilma: ilustrísima, Rvdo: reverendo, "
        "Rvda: reverenda, Magfco: magnífico, Ntra: nuestra"
    ),
    words=_WORDS,
    numbered=(
        "n núm nro: número, núms nros: números, pág p: página, págs pp: páginas, art: artículo, "
        "arts: artículos, cap: capítulo, caps: capítulos, vol: volumen, vols: volúmenes, "
        "fig: figura, figs: figuras, t: tomo, ed: edición, párr: párrafo, sec: sección, "
        "ap: apartado, ref: referencia, ext: extensión, reg: reglamento, s: siglo, ss: siglos, "
        "km: kilómetro, c: circa, ca: circa"
    ),
    phrases={
        r"\bEE\.?\s?UU\b\.?": "Estados Unidos",
        r"\bE\.\s?U\.\s?A\.|\bEUA\b": "Estados Unidos",
        r"\bRR\.\s?HH\.": "recursos humanos",
        r"\bPol\.\s?Ind\.": "polígono industrial",
        r"(?<=[ad]\s)máx\.|(?<=emp\.\s)máx\.": "máxima",
        r"(?<=[ad]\s)mín\.|(?<=emp\.\s)mín\.": "mínima",
        r"\bc/u\b": "cada uno",
        r"\bNtra\.\s?Sra\.": "nuestra señora",
        r"\bV\.?\s?º\s?B\.?\s?º": "visto bueno",
        r"\bFco\.": "Francisco",
        r"(?<=\b[1-9]\s)hab\.": "habitaciones",
        r"\b[Vv]\.(?=\s(?:art|arts|pág|págs|p|pp|cap|fig|tabla|nota|también)\b)": "véase",
        r"\bDD\.\s?HH\.": "derechos humanos",
        r"\bSS\.\s?MM\.": "sus majestades",
        r"\bVV\.\s?AA\.|\bAA\.\s?VV\.": "varios autores",
        r"\bFF\.\s?CC\.": "ferrocarriles",
        r"\bN\.\s?B\.": "nota bene",
        r"\bC\.\s?P\.(?=\s?[0-9])": "código postal",
        r"(?<=[0-9][ªa]\s)ed\.": "edición",
        r"(?<=[0-9]\s)pers\.": "personas",
        r"(?<![\w-])L-V(?![\w-])": "lunes a viernes",
        r"(?<![\w-])L-D(?![\w-])": "lunes a domingo",
        r"(?<![\w-])S-D(?![\w-])": "sábado y domingo",
        r"\bN-(?=[IVX]+\b)": "nacional ",
        r"\bFF\.\s?AA\.": "fuerzas armadas",
        r"\bCC\.\s?AA\.": "comunidades autónomas",
        r"\bCC\.\s?OO\.": "comisiones obreras",
        r"\bJJ\.\s?OO\.": "juegos olímpicos",
        r"\bRR\.\s?CC\.": "reyes católicos",
        r"\b[pP]\.\s?ej\.": "por ejemplo",
        r"\bS\.\s?A\.\s?de\s?C\.\s?V\.": "ese a de ce uve",
        r"\ba\.\s?(?:de\s)?[cC]\.|(?<=[0-9]\s)A\.\s?C\.": "antes de Cristo",
        r"\bd\.\s?(?:de\s)?[cC]\.|(?<=[0-9]\s)D\.\s?C\.": "después de Cristo",
        r"(?<=[0-9]\s)págs?\.": "páginas",
        r"\b[Tt]el(?=\s?:)": "teléfono",
        r"\b[Nn]úm\.(?=\sde\b)": "número",
        r"\bi\.\s?e\.": "es decir",
        r"\bv\.\s?gr?\.": "verbigracia",
        r"\bop\.\s?cit\.": "obra citada",
        r"\bR\.\s?D\.\s?L\.": "real decreto ley",
        r"\bR\.\s?D\.": "real decreto",
        r"\bL\.\s?O\.(?=\s[0-9])": "ley orgánica",
        r"\bs\.\s?n\.\s?m\.": "sobre el nivel del mar",
        r"\bN\.\s?del?\s?T\.": "nota del traductor",
        r"\bc/c\b": "cuenta corriente",
        r"\bP\.?º(?=\s(?:de\b|[A-Z]))": "paseo",
        r"\bS\.\s?A\.(?:\s?U\.)?": "ese a",
        r"\bS\.\s?L\.(?:\s?U\.)?": "ese ele",
        r"\bP\.\s?D\.": "posdata",
        r"(?<=[0-9]\s)(?:a\.?C\b\.?|AC\b)": "antes de Cristo",
        r"(?<=[0-9]\s)(?:d\.?C\b\.?|DC\b)": "después de Cristo",
        r"\b[cC]/(?=\s?[A-Z])\s?": "calle ",
        r"\bs/n\b": "sin número",
        r"\b[nN]\.?[º°](?=\s[^\W\d_])": "número",
        r"\b[nN](?:\.\s?º|º|°|\.°)\s?(?=[0-9])": "número ",
        r"\b[nN](?:\.\s?os|ᵒˢ)\s?(?=[0-9])": "números ",
        r"\bM\.ª|\bMª": "María",
        r"\bD\.?ª": "doña",
        r"\bSr\.?ª": "señora",
        r"\bDr\.?ª": "doctora",
        r"\bProf\.?ª": "profesora",
        r"\b[cC]das\b\.?": "cucharadas",
        r"\b[cC]da\b\.?": "cucharada",
        r"\b[cC]dtas\b\.?": "cucharaditas",
        r"\b[cC]dta\b\.?": "cucharadita",
        r"(?<=[0-9]\s)uds\b\.?": "unidades",
        r"\bNo\.\s?(?=[0-9])": "número ",
        r"\bS\.\s?M\.(?=\s(?:el|la)\b)": "su majestad",
        r"\bBs\.\s?As\.": "Buenos Aires",
        r"\bq\.\s?e\.\s?p\.\s?d\.": "que en paz descanse",
        r"\bc\.\s?c\.": "centímetros cúbicos",
        r"(?<=[0-9]\s)(?:h|hs|hrs)\.(?=\s[a-záéíóúñ(]|\s?,)": "horas",
    },
)

# Where a text ends with one of them.
AT_END = at_end(_WORDS)
