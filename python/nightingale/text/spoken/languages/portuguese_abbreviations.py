"""Portuguese abbreviations."""

from ..abbreviations import abbreviation_rules, at_end

_WORDS = (
    "etc: etcétera, out: outubro, nov: novembro, fev: fevereiro, ago: agosto, "
    "aprox: aproximadamente, av Av: avenida, tel Tel: telefone, máx: máximo, "
    "mín: mínimo, depto dept: departamento, Cia: companhia, Ltda: limitada, Jr: júnior, "
    "esq: esquerda, dir: direita, hab: habitantes, vs: versus, obs Obs: observação, "
    "apto ap: apartamento, pça: praça, ref: referência, gov: governo, ex: exemplo, "
    "trad: tradução, bl: bloco, temp: temperatura, incl: incluso, segs: seguintes, ss: seguintes, "
    "cel: celular, séc: século, "
    "desc: desconto, univ: universidade, gde: grande"
)
ABBREVIATIONS = abbreviation_rules(
    "pt",
    titles=(
        "Sr: senhor, Sra: senhora, Srta: senhorita, Srs: senhores, Sras: senhoras, Dr: doutor, "
        "Dra: doutora, Drs: doutores, D: dom, Prof: professor, Profa: professora, "
        "Eng: engenheiro, Gen: general, Cel: coronel, Cap: capitão, Ten: tenente, Maj: major, "
        "Pe: padre, Sto: santo, Sta: santa, S: são, Exmo: excelentíssimo, Exma: excelentíssima, "
        "Ilmo: ilustríssimo, Rev: reverendo, Mons: monsenhor, Fr: frei, Ir: irmã, Dep: deputado, "
        "Sen: senador, R: rua, Al: alameda, Trav: travessa, Estr: estrada, Pça: praça, "
        "Sgto: sargento, Gal: general, "
        "Min: ministro, Gov: governador, Arq: arquiteto, Adv: advogado, Ilma: ilustríssima, "
        " Rod: rodovia, Pres: presidente"
    ),
    words=_WORDS,
    numbered=(
        "n num núm nr: número, nos: números, pág pag p: página, págs pp: páginas, art: artigo, "
        "arts: artigos, cap: capítulo, caps: capítulos, vol: volume, vols: volumes, fig: figura, "
        "figs: figuras, t: tomo, ed: edição, séc: século, sécs: séculos, par: parágrafo, "
        "sec seç: seção, inc: inciso, tab: tabela, c: circa, ca: cerca de"
    ),
    phrases={
        r"\bE\.?\s?U\.?\s?A\b\.?": "Estados Unidos",
        r"\b[pP]\.\s?ex\.": "por exemplo",
        r"\b[aA]\.\s?C\.": "antes de Cristo",
        r"\b[dD]\.\s?C\.": "depois de Cristo",
        r"\bS\.\s?A\.|\bS/A\b": "esse a",
        r"\bV\.\s?Exa\.|\bV\.\s?Ex\.ª": "vossa excelência",
        r"\bs/n\b\.?": "sem número",
        r"\b[rR]\.(?=\s(?:d[aeo]s?)\s[A-ZÀ-Ý])": "rua",
        r"\b[aA]l\.(?=\s(?:d[aeo]s?)\s[A-ZÀ-Ý])": "alameda",
        r"\b[tT]rav\.(?=\s(?:d[aeo]s?)\s[A-ZÀ-Ý])": "travessa",
        r"\b[eE]str\.(?=\s(?:d[aeo]s?)\s[A-ZÀ-Ý])": "estrada",
        r"\bSr\.ª|\bSrª": "senhora",
        r"\bDr\.ª|\bDrª": "doutora",
        r"\bProf\.ª|\bProfª": "professora",
        r"\bProf\.?º": "professor",
        r"\bEng\.?º": "engenheiro",
        r"(?<=[0-9]\s)un\.": "unidades",
        r"(?<=[0-9]\s)p\.\s?p\.": "pontos percentuais",
        r"(?<=[0-9]\s)págs?\.": "páginas",
        r"\b[Tt]el(?=\s?:)": "telefone",
        r"\bD\.ª|\bDª\.?": "dona",
        r"\bD\.(?=\s(?!Luca|Garcia)[A-Z]\w*a\b)": "dona",
        r"\b[nN]\.?[º°](?=\s[^\W\d_])": "número",
        r"\b[nN](?:\.\s?º|º|°|\.°)\s?(?=[0-9])": "número ",
        r"\b[nN](?:\.os|\.?ºs)\s?(?=[0-9])": "números ",
        r"\bMa\.(?=\s[A-Z])": "Maria",
        r"\bc/(?=\s?\w)\s?": "com ",
        r"\bp/(?=\s?[a-zà-ÿ])\s?": "para ",
        r"\bP\.\s?S\.": "pós-escrito",
        r"\bObs\.\s?:": "observação:",
        **{
            rf"{number}col\.{size}": f"{noun}{said}"
            for number, noun in (
                (r"(?<=(?<![0-9/])[1½¼¾]\s)", "colher"),
                (r"(?<=1/2\s)", "colher"),
                (r"(?<=[0-9]\s)", "colheres"),
            )
            for size, said in (
                (r"\s?\(sopa\)", " de sopa"),
                (r"\s?\(chá\)", " de chá"),
                (r"\s?\(café\)", " de café"),
                (r"\s?\(sobremesa\)", " de sobremesa"),
                (r"(?=\sde\s)", ""),
            )
        },
        r"\bN\.\s?B\.": "nota bene",
        r"(?<=[0-9][º°]\s)and\.": "andar",
        r"(?<=a\s)máx\.|(?<=dade\s)máx\.": "máxima",
        r"(?<=a\s)mín\.|(?<=dade\s)mín\.": "mínima",
        r"\b[Aa]pto(?=\s[0-9])": "apartamento",
        r"\bs/n[º°]": "sem número",
        r"\bno\.\s(?=[0-9])": "número ",
        r"\bV\.\s?Sa\.|\bV\.\s?S\.ª": "vossa senhoria",
        r"\bEx\.mo\b": "excelentíssimo",
        r"\bEx\.ma\b": "excelentíssima",
        r"\b[Vv]\.(?=\s(?:art|arts|pág|págs|p|pp|cap|fig|tabela|nota|também|anexo)\b)": "ver",
        r"(?<=[0-9][ªa]\s)ed\.": "edição",
        r"\b[Ss]ec\.(?=\s[IVX]+\b)": "século",
        r"\b[Mm]áx(?=\s[0-9])": "máximo",
        r"\b[Mm]ín(?=\s[0-9])": "mínimo",
        r"(?<=%\s)a\.\s?a\.": "ao ano",
        r"(?<=%\s)a\.\s?m\.": "ao mês",
        r"(?<=[0-9]\s)(?:h|hs|hrs)\.": "horas",
    },
)

# Where a text ends with one of them.
AT_END = at_end(_WORDS)
