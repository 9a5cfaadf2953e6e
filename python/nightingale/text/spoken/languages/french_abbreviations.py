"""French abbreviations."""

from ..abbreviations import abbreviation_rules, at_end

_WORDS = (
    "etc: et cetera, env: environ, arr: arrondissement, bât Bât: bâtiment, ét: étage, "
    "apt appart: appartement, "
    "janv: janvier, févr: février, juil: juillet, oct: octobre, "
    "nov: novembre, déc: décembre, tél Tél: téléphone, bd boul bld: boulevard, av: avenue, "
    "pl: place, max: maximum, min: minimum, éd: éditions, coll: collection, "
    "cf: confer, app: appartement, dép dépt: département, St: saint, apr: après, "
    "vs: versus, qqch: quelque chose, qqn: quelqu'un, hab: habitants, réf: référence, "
    "ex: exemple, approx: approximativement, resp: respectivement, temp: température, "
    "incl: inclus, "
    "suiv: suivantes, "
    "trad: traduction, "
    "quot: quotidien"
)
_SOUP = r"(?:c(?:uil)?\.?\s?à\s?s(?:oupe)?|càs|cs)\b\.?"
_COFFEE = r"(?:c(?:uil)?\.?\s?à\s?c(?:afé)?|càc)\b\.?"
ABBREVIATIONS = abbreviation_rules(
    "fr",
    titles=(
        "M: monsieur, MM: messieurs, Dr: docteur, Pr: professeur, Prof: professeur, Me: maître, "
        "Mgr: monseigneur, St: saint, Ste: sainte, Gal: général, Cdt: commandant, Col: colonel, "
        "Cne: capitaine, Vve: veuve, Mme: madame, Mmes: mesdames, Mlle: mademoiselle"
    ),
    words=_WORDS,
    numbered=(
        "n no nr num: numéro, nos: numéros, p: page, pp: pages, art: article, "
        "chap ch: chapitre, vol: volume, fig: figure, t: tome, éd: édition, sect: section, "
        "al: alinéa, réf: référence, paragr: paragraphe, tab: tableau, th: thermostat"
    ),
    phrases={
        r"\bMM\.(?=\s[A-ZÀ-Ý])": "messieurs",
        r"\bM\.(?=\set\sM)": "monsieur",
        r"\bMmes\b\.?": "mesdames",
        r"\bMme\b\.?": "madame",
        r"\bMlles\b\.?": "mesdemoiselles",
        r"\bMlle\b\.?": "mademoiselle",
        r"\b(?:Mgr|Mᵍʳ)\b\.?(?=\s[A-ZÀ-Ý])": "monseigneur",
        r"\bDr\b(?=\s[A-ZÀ-Ý])": "docteur",
        r"\bDrs\b(?=\s[A-ZÀ-Ý])": "docteurs",
        r"\bPr\b(?=\s[A-ZÀ-Ý])": "professeur",
        r"\bPrs\b(?=\s[A-ZÀ-Ý])": "professeurs",
        r"(?<=\b[Ll]es )Mes\b(?=\s[A-ZÀ-Ý])": "maîtres",
        r"\bMe\b(?=\s[A-ZÀ-Ý][a-zà-ÿ])(?<!\bne Me)": "maître",
        r"\bSt\b\.?(?=[-\s][A-ZÀ-Ý])": "saint",
        r"\bSte\b\.?(?=[-\s][A-ZÀ-Ý])": "sainte",
        r"\bp\.\s?ex\.": "par exemple",
        r"\b[cC]\.?-\s?à-\s?d\b\.?": "c'est-à-dire",
        r"\bav\.\s?J\.?-?\s?C\b\.?": "avant Jésus-Christ",
        r"\bapr\.\s?J\.?-?\s?C\b\.?": "après Jésus-Christ",
        r"\bJ\.-C\b\.?": "Jésus-Christ",
        r"\b[sS]\.?\s?[vV]\.?\s?[pP]\b\.?": "s'il vous plaît",
        r"\bR\.\s?-?V\.": "rendez-vous",
        r"\b[nN]\.?[º°](?=\s[^\W\d_])": "numéro",
        r"\b[nN](?:°|º|ᵒ|\.º|\.°)s?\s?(?=[0-9])": "numéro ",
        r"\b[nN](?:ᵒˢ|os)\s?(?=[0-9])": "numéros ",
        r"\bno\s(?=[0-9]+\b)": "numéro ",
        r"\bCie\b\.?": "compagnie",
        r"\bSté\b\.?": "société",
        r"\bEts\b\.?": "établissements",
        r"\bMelle\b\.?": "mademoiselle",
        r"\b[rR]te\b(?=\sd)": "route",
        r"\b[rR]\.(?=\s(?:de|du|des)\b|\s[A-ZÀ-Ý][a-zà-ÿ])": "rue",
        r"(?<=[0-9]\s)pp?\.": "pages",
        r"(?<=[IVX]e\s)s\.|(?<=[IVX]ᵉ\s)s\.": "siècle",
        r"\bN\.\s?B\.": "nota bene",
        r"\bM\.(?=\s(?:le|l['’]))": "monsieur",
        r"(?<=[0-9]\s)ex\.": "exemplaires",
        r"(?<=[0-9]\s)sem\.": "semaines",
        r"\b[fF]g\b(?=\s[A-ZÀ-Ýd])": "faubourg",
        r"(?<=[0-9]\sheures\s)1/2|(?<=[0-9]\sh\s)1/2": "et demie",
        r"\b[Vv]\.(?=\s(?:art|p|pp|chap|fig|tableau|note|aussi|annexe)\b)": "voir",
        r"(?<=[0-9]\s)pers\.": "personnes",
        r"\b[Aa]rt\.\s?(?=[LRD]\.)": "article ",
        r"(?<=\barticle )L\.\s?(?=[0-9])": "elle ",
        r"(?<=\barticle )R\.\s?(?=[0-9])": "erre ",
        r"(?<=\barticle )D\.\s?(?=[0-9])": "dé ",
        r"(?<=[0-9]e\s)éd\.|(?<=1re\s)éd\.": "édition",
        r"(?<![0-9])(?<![0-9]\s)\b[Mm]ax(?=\s[0-9])": "maximum",
        r"(?<![0-9])(?<![0-9]\s)\b[Mm]in(?=\s[0-9])": "minimum",
        r"\bP\.-?\s?S\.": "post-scriptum",
        r"\b[Tt]él(?=\s?:)": "téléphone",
        rf"(?<=(?<![0-9/])[1½¼¾]\s){_SOUP}|(?<=1/2\s){_SOUP}": "cuillère à soupe",
        rf"(?<=(?<![0-9/])[1½¼¾]\s){_COFFEE}|(?<=1/2\s){_COFFEE}": "cuillère à café",
        rf"(?<=[0-9½¼¾]\s){_SOUP}": "cuillères à soupe",
        rf"(?<=[0-9½¼¾]\s){_COFFEE}": "cuillères à café",
        r"\b[bB]d\b(?=\s[A-ZÀ-Ýd])": "boulevard",
        r"\bappt\b\.?": "appartement",
        r"\b[rR]dv\b|\bRDV\b": "rendez-vous",
    },
)

# Where a text ends with one of them.
AT_END = at_end(_WORDS)
