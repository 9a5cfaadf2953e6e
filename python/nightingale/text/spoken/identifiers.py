"""Rules for web addresses, file names, paths, versions, telephone numbers and model names."""

import re

from .acronyms import Letters
from .engine import Rules
from .language import Language

_DOMAINS = (
    "com org net edu gov info io ai co uk de fr es it pt br mx ar dev app me tv us eu ch be nl ca "
    "gob gouv"
).split()
_FILES = (
    "pdf txt docx? xlsx? pptx? odt csv json xml yaml toml html? css js py cpp java md png jpe?g "
    "gif "
    "svg mp3 mp4 wav flac ogg mkv avi zip tar gz exe dll iso log ini conf deb"
).split()
_PARTS = re.compile(r"[0-9]+|[^\W\d_]+|.")
_RUNS = re.compile(r"[0-9]+|(?<=[A-Z])v(?=[0-9])|[A-Z]+(?=v[0-9])|[^\W\d_]+|\.")
_TRAILING = re.compile(r"[.,;:!?)\]'\"”’»/]+\Z")
# What a link of Markdown shows, and where it leads.
LINK_RULES: Rules = {
    r"!?\[([^\[\]\n]{1,300})\]\((?:[a-z]+:|www\.|[/#.])?[^()\s]{0,2000}"
    r"(?:\s\"[^\"\n]{0,200}\")?\)": (r"\1"),
}
WEB_NEEDED = r"[@#&]|\.\w|://|\]\("
_ADDRESS = (
    r"(?<![\w.+-])[\w+-][\w.+-]*@[\w-]+(?:\.[\w-]+)+",
    r"\b(?:https?|ftp)://[^\s<>\"]+|\bwww\.[^\s<>\"]+",
    r"(?<![\w@.-])(?:[A-Za-z0-9][A-Za-z0-9-]+\.)+"
    rf"(?:{'|'.join(_DOMAINS)})(?![\w-]|\.\w)(?:/[^\s<>\"]*)?",
)


def web_rules(language: Language, letters: Letters) -> Rules:
    """Addresses and file names, sign by sign; the names of the signs are the language's words."""
    signs = {
        sign: language.word[name]
        for sign, name in (
            *((".", "dot"), ("/", "slash"), ("-", "hyphen"), ("_", "underscore"), ("@", "at")),
            *(("?", "question"), ("=", "equals"), ("&", "and"), ("#", "hash"), (":", "colon")),
            *(("+", "plus"), ("%", "percent"), ("~", "tilde")),
        )
    }

    def aloud(address: str, names: dict[str, str] = signs) -> str:
        words = []
        for part in _PARTS.findall(address):
            if part[0] in "0123456789":
                words.append(language.in_words(part) if len(part) < 5 else language.digits(part))
            elif part == "www":
                words.append(language.word["www"])
            elif part.isalpha():
                words.append(letters.spelled(part) if letters.is_spelled(part) else part)
            else:
                words.append(names.get(part, part if part.isalnum() else ""))
        return " ".join(filter(None, words))

    def address(match: re.Match[str]) -> str:
        found = re.sub(r"^(?:mailto:)?(?:[a-z]+://)?", "", match[0])
        trailing = _TRAILING.search(found)
        end = trailing.start() if trailing else len(found)
        return aloud(found[:end]) + found[end:].replace("/", "")

    def file(match: re.Match[str]) -> str:
        ending = match["ending"]
        return f"{aloud(match['name'], {'.': signs['.'], '-': ''})} {signs['.']} {aloud(ending)}"

    return {
        **LINK_RULES,
        **dict.fromkeys(_ADDRESS, address),
        rf"(?<![\w/.-])(?P<name>\w[\w.-]{{0,80}})\.(?P<ending>{'|'.join(_FILES)})(?!\w)": file,
        r"\b([A-Z]{1,3})\s?&\s?([A-Z]{1,3})\b": lambda match: (
            f"{letters.spelled(match[1])} {signs['&']} {letters.spelled(match[2])}"
        ),
        r"(?<![\w.])([A-Z])\.(?=[0-9])": lambda match: f"{letters.spelled(match[1])} ",
        r"(?<=[0-9])\.(?=x\b)": f" {signs['.']} ",
        r"(?<![\w@])@(?=\w)": f"{signs['@']} ",
        r"(?<![\w#])#(?=[^\W\d_])": f"{language.word['hashtag']} ",
    }


def number_rules(
    language: Language, letters: Letters, phones: tuple[str, ...], by_groups: bool
) -> Rules:
    """Telephone numbers, card numbers, versions and addresses of machines."""
    group = "[ .\u00a0\u202f-]"

    free_calls = re.compile(language.patterns.get("free_calls", "(?!)"))

    def spell(written: str) -> str:
        if free_calls.fullmatch(written):  # "zero oitocentos"
            zero = f"{language.cardinal(0)} " if written[0] == "0" else ""
            return zero + language.cardinal(int(written))
        if not by_groups or len(written) != 2:
            return language.digits(written)
        return language.cardinal(int(written)) if written[0] != "0" else language.digits(written)

    def telephone(match: re.Match[str]) -> str:
        groups = re.findall("[0-9]+", match["number"])
        if by_groups and len(groups) == 1 and len(groups[0]) == 10:
            groups = re.findall("[0-9]{2}", groups[0])
        if by_groups and len(groups) == 1 and len(groups[0]) == 4:  # "trente-six trente-cinq"
            return " ".join(map(spell, re.findall("[0-9]{2}", groups[0])))
        plus = f"{language.word['plus']} " if match["number"].lstrip("(")[0] == "+" else ""
        if plus:
            return plus + ", ".join([language.cardinal(int(groups[0])), *map(spell, groups[1:])])
        return ", ".join(map(spell, groups))

    def checked(match: re.Match[str]) -> str:
        count = sum(character in "0123456789" for character in match["number"])
        return telephone(match) if 7 <= count <= 15 else match[0]

    def stops(match: re.Match[str]) -> str:
        parts = match[0].split(".")
        dot = language.word["dot" if len(parts) == 4 else "point"]
        return f" {dot} ".join(language.in_words(part) for part in parts)

    def sign(group: str) -> str:
        letter = f"{letters.spelled(group[0])} " if group[0].isalpha() else ""
        return letter + language.digits(group)

    def account(match: re.Match[str]) -> str:
        groups = [letters.spelled(match[0][:2]), match[0][2:4], *match[0][4:].split()]
        return ", ".join([f"{groups[0]} {language.digits(groups[1])}", *map(sign, groups[2:])])

    rules: Rules = {
        r"(?<![\w+])(\+[0-9]{1,3})\s?\(0\)\s?(?=[0-9])": r"\1 ",
        # An IBAN.
        r"(?<!\w)[A-Z]{2}[0-9]{2}(?: [A-Z0-9][0-9]{3}){3,7}(?: [0-9]{1,3})?(?!\w)": account,
        rf"(?<![\w+])(?P<number>\+[0-9]{{1,3}}(?:{group}?\(?[0-9]{{1,4}}\)?)?"
        rf"(?:{group}?[0-9]{{2,5}}){{2,5}})(?!\w)": checked,
        r"(?<![\w.,-])(?P<number>[0-9]{4}(?:[ -][0-9]{4}){3})(?![\w-]|[.,][0-9])": telephone,
    }
    rules[
        r"(?P<lead>\b(?:PIN|CVV|OTP)\s(?:[^\W\d_]{1,2}\s)?)(?P<number>[0-9]{3,6})(?!\w|[.,][0-9])"
    ] = lambda match: match["lead"] + language.digits(match["number"])
    rules[
        r"(?i:(?<=\bvuelo )|(?<=\bvoo )|(?<=\bvol )|(?<=\bvolo ))(?P<line>[A-Z]{2})\s?"
        r"(?=[0-9]{2,4}(?![\w.]))"
    ] = lambda match: f"{letters.spelled(match['line'])} "
    for pattern in phones:
        rules[rf"(?<![\w.,+-])(?P<number>{pattern})(?![\w-]|[.,][0-9])"] = telephone
    called = language.patterns["called"]
    rules[
        rf"(?P<lead>\b(?i:{called})\s?:?\s)(?P<number>\(?[0-9]{{2,4}}\)?(?:{group}?[0-9]{{2,4}}){{1,5}})(?!\w)"
    ] = lambda match: match["lead"] + telephone(match)
    rules[r"(?<![\w.])v\.?\s?(?P<parts>[0-9]+(?:\.[0-9]+)*)(?!\w|\.[0-9])"] = lambda match: (
        f"{language.word['version']} "
        + f" {language.word['point']} ".join(map(language.in_words, match["parts"].split(".")))
    )
    rules[
        r"(?<![\w.])(?![0-9]{1,2}\.[0-9]{1,2}\.[0-9]{4}\b)(?![1-9][0-9]{0,2}(?:\.[0-9]{3})+(?!\.?[0-9]))"
        r"[0-9]+(?:\.[0-9]+){2,}(?!\w)"
    ] = stops
    rules[r"(?<![\w.])([0-9]+(?:[.,][0-9]+)?)[eE]([+-]?[0-9]{1,3})(?!\w)"] = lambda match: (
        f"{language.in_words(match[1])} {language.word['times']} {language.cardinal(10)} "
        f"{language.word['power']} {language.in_words(match[2].lstrip('+'))}"
    )
    return rules


def model_rules(language: Language, letters: Letters) -> Rules:
    """ "MP3", "A320", "4K", "TLSv1.2": letters and digits in turn."""

    def spoken(match: re.Match[str]) -> str:
        words = []
        for run in _RUNS.findall(match[0]):
            if run == ".":
                words.append(language.word["point"])
            elif run[0] in "0123456789":
                words.append(language.in_words(run) if len(run) < 7 else language.digits(run))
            elif letters.is_spelled(run) or len(run) <= 2:
                words.append(letters.spelled(run))
            else:
                words.append(run)
        return " ".join(words)

    return {
        r"(?<![\w.])(?=[0-9]*[^\W\d_])(?=[^\W\d_]*[0-9])[^\W_]+(?:\.[0-9]+)*(?!\w)": spoken,
    }
