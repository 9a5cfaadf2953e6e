"""Italian abbreviations."""

from ..abbreviations import abbreviation_rules, at_end

_WORDS = (
    "ecc etc: eccetera, ca: circa, es: esempio, cad: cadauno, Soc soc: società, "
    "loc Loc: località, fraz: frazione, ott: ottobre, nov: novembre, dic: dicembre, "
    "genn: gennaio, "
    "febbr: febbraio, sett: settembre, tel Tel: telefono, cell: cellulare, "
    "max: massimo, min: minimo, dx: destra, sx: sinistra, ab: abitanti, ed: edizioni, "
    "vs: versus, cfr cf: confronta, segg: seguenti, sgg: seguenti, prov: provincia, "
    "int: interno, P.zza Pzza: piazza, V.le: viale, C.so: corso, tot: totale, "
    "gg: giorni, rif: riferimento, c.a: corrente anno, pag: pagina, ing: ingegnere, "
    "trad: traduzione, temp: temperatura, incl: incluso, escl: escluso, agg: aggettivo, "
    "cit: citato, succ: successivo"
)
ABBREVIATIONS = abbreviation_rules(
    "it",
    titles=(
        "sig Sig: signor, sigg Sigg: signori, dott Dott: dottor, dr Dr: dottor, prof Prof: "
        "professor, "
        "ing Ing: ingegner, avv Avv: avvocato, arch Arch: architetto, geom Geom: geometra, "
        "rag Rag: ragionier, on On: onorevole, sen Sen: senatore, gen Gen: generale, "
        "col Col: colonnello, cap Cap: capitano, mons Mons: monsignor, S: san, SS: santissimo, "
        "cav Cav: cavalier, comm Comm: commendator, rev Rev: reverendo, Card: cardinale, "
        "P: padre, Egr: egregio, Spett: spettabile, Gent: gentile"
    ),
    words=_WORDS,
    numbered=(
        "n nr num: numero, nn: numeri, pag p: pagina, pagg pp: pagine, art: articolo, "
        "artt: articoli, cap: capitolo, capp: capitoli, vol: volume, voll: volumi, fig: figura, "
        "figg: figure, tav: tavola, ed: edizione, sez: sezione, sec: secolo, secc: secoli, "
        "par: paragrafo, rif: riferimento, tab: tabella, ca: circa, co: comma"
    ),
    phrases={
        r"\b[Ss]ig\.?\s?ra\b\.?": "signora",
        r"\b[Ss]ig\.?\s?na\b\.?": "signorina",
        r"\b[Dd](?:ott|r)\.?\s?ssa\b\.?": "dottoressa",
        r"\b[Ss]ig\.ri\b": "signori",
        r"\bS\.\s?n\.\s?c\.|\bSnc\b": "esse enne ci",
        r"\bS\.\s?a\.\s?s\.": "esse a esse",
        r"(?<=[0-9]\s)pagg?\.": "pagine",
        r"\b[Tt]el(?=\s?:)": "telefono",
        r"\b[Nn]\.(?=\s(?:di|verde)\b)": "numero",
        r"\b[Pp]rof\.?\s?ssa\b\.?": "professoressa",
        r"\bp\.\s?es\.": "per esempio",
        r"\bp\.\s?v\.": "prossimo venturo",
        r"\ba\.\s?C\.": "avanti Cristo",
        r"\bd\.\s?C\.": "dopo Cristo",
        r"\bS\.\s?p\.\s?A\.|\bSpA\b": "esse pi a",
        r"\bS\.\s?r\.\s?l\.|\bSrl\b": "esse erre elle",
        r"\b[Pp]\.\s?zz?a\b\.?": "piazza",
        r"(?<=[IVX]\s)sec\.": "secolo",
        r"\b[Gg]ent\.ma\b": "gentilissima",
        r"\b[Gg]ent\.mo\b": "gentilissimo",
        r"\b[Ii]ll\.mo\b": "illustrissimo",
        r"\b[Ss]pett\.le\b": "spettabile",
        r"\bc\.\s?m\.": "corrente mese",
        r"\bs\.\s?l\.\s?m\.": "sul livello del mare",
        r"(?<=[0-9]\s)pz\.": "pezzi",
        r"\bc\.\s?(?=[0-9]{1,2}(?!\w))": "comma ",
        r"\bc\.\s?(?=[0-9]{3,4}(?!\w))": "circa ",
        r"\blett\.(?=\s[a-z]\b)": "lettera",
        r"\b[Dd]\.\s?[Ll]gs\.": "decreto legislativo",
        r"\bD\.\s?L\.": "decreto legge",
        r"\bu\.\s?s\.": "ultimo scorso",
        r"\b[Vv]\.le\b": "viale",
        r"\b[Cc]\.so\b": "corso",
        r"\b[Ll]\.go\b": "largo",
        r"\b[Pp]\.le\b": "piazzale",
        r"\bF\.lli\b": "fratelli",
        r"\bU\.\s?S\.\s?A\.": "Stati Uniti",
        r"\b[nN]\.?[º°](?=\s[^\W\d_])": "numero",
        r"\b[nN](?:°|º|\.°|\.º|\.ro)\s?(?=[0-9])": "numero ",
        r"\bSta\.(?=\s[A-Z])": "santa",
        r"\bS\.\s?(?=(?!Andrea|Luca|Nicola|Mattia|Elia|Barnaba)[A-Z]\w*a\b)": "santa ",
        r"\bS\.\s?(?=[AEIOU]\w)": "sant'",
        r"\bP\.\s?S\.": "post scriptum",
        r"\bN\.\s?B\.": "nota bene",
        r"(?<=[0-9]°\s)p\.(?=[,;\s])": "piano",
        r"(?<=IVA\s)incl\.": "inclusa",
        r"(?<=IVA\s)escl\.": "esclusa",
        r"(?<=[aà]\s)max\b\.?": "massima",
        r"(?<=[aà]\s)min\b\.?": "minima",
        r"\ba\.\s?s\.": "anno scolastico",
        r"\ba\.\s?a\.": "anno accademico",
        r"\b[nN]\.\s?d\.\s?[rR]\.": "nota del redattore",
        r"\b[Vv]\.(?=\s(?:art|artt|pag|pagg|p|pp|cap|fig|tab|nota|anche|allegato)\b)": "vedi",
        r"(?<=[0-9]\s)pers\.": "persone",
        r"\bSS\.\s(?=[A-Z]\w*[àa]\b)": "santissima ",
        r"\bP\.\s?IVA\b": "partita IVA",
        r"(?<=[0-9][ªa]\s)ed\.": "edizione",
        r"(?<![0-9])(?<![0-9]\s)\b[Mm]ax(?=\s[0-9])": "massimo",
        r"(?<![0-9])(?<![0-9]\s)\b[Mm]in(?=\s[0-9])": "minimo",
        r"\bq\.\s?b\.": "quanto basta",
        r"\bs\.\s?n\.\s?c\.": "senza numero civico",
    },
)

# Where a text ends with one of them.
AT_END = at_end(_WORDS)
