"""Identifiers: web addresses, file names, versions, telephone numbers, model names."""

import re

from ..spoken.engine import Rules
from ..spoken.identifiers import LINK_RULES
from ..spoken.tables import word_table
from .abbreviations import is_spelled, spelled
from .numbers import code, digits, in_words

_SIGNS = word_table(
    ".: dot, /: slash, -: dash, _: underscore, @: at, ?: question mark, =: equals, &: and, "
    "#: hash, :: colon, +: plus, %: percent, ~: tilde"
)
_DOMAINS = (
    "com org net edu gov info io ai co uk de fr dev app me tv us eu ch nl ca au jp in ly fm"
).split()
_READ_DOMAINS = {"com", "org", "net", "edu", "gov", "info", "dev", "app"}
_FILES = (
    "pdf txt docx? xlsx? pptx? csv json xml yaml toml html? css js ts py cpp java md png jpe?g gif "
    "svg mp3 mp4 wav flac ogg mkv avi zip tar gz exe dll iso log ini conf safetensors onnx"
).split()
_PARTS = re.compile(r"[0-9]+|[^\W\d_]+|.")
_TRAILING = re.compile(r"[.,;:!?)\]'\"”’/]+\Z")


def _aloud(address: str, signs: dict[str, str] = _SIGNS) -> str:
    words = []
    parts = _PARTS.findall(address)
    for i, part in enumerate(parts):
        if part[0] in "0123456789":
            words.append(code(part))
        elif not part.isalpha():
            words.append(signs.get(part, part if part.isalnum() else ""))
        elif (i and parts[i - 1] == "." and part in _DOMAINS and part not in _READ_DOMAINS) or (
            is_spelled(part)
        ):
            words.append(spelled(part))
        else:
            words.append(part)
    return " ".join(filter(None, words))


def _address(match: re.Match[str]) -> str:
    found = re.sub(r"^(?:[a-z]+://)?(?:www\.(?=\w))?", "", match[0])
    trailing = _TRAILING.search(found)
    end = trailing.start() if trailing else len(found)
    return _aloud(found[:end]) + found[end:].replace("/", "")


# Parts of paths that are spelled.
_SPELLED_FOLDERS = {"etc", "usr", "opt", "dev", "img"}


def _path(match: re.Match[str]) -> str:
    found = match[0]
    trailing = _TRAILING.search(found)
    end = trailing.start() if trailing else len(found)
    words = _aloud(found[:end]).split(" ")
    spoken = (spelled(word) if word in _SPELLED_FOLDERS else word for word in words)
    return " ".join(spoken) + found[end:].replace("/", "")


def _file(match: re.Match[str]) -> str:
    name = _aloud(match["name"], {".": "dot"})
    ending = match["ending"]
    read = ending in ("zip", "doc", "gif", "wav", "json", "jpeg", "java", "log", "flac", "onnx")
    return f"{name} dot {_aloud(ending) if read or len(ending) > 4 else _letters(ending)}"


def _letters(ending: str) -> str:
    return " ".join(code(part) if part in "0123456789" else part.upper() for part in ending)


WEB_RULES: Rules = {
    **LINK_RULES,
    r"(?<![^\s(\"'“])(?:~|\.{1,2})?/(?:[\w.+-]{1,80}/){0,20}[\w.+-]*[^\W\d][\w.+-]*/?": _path,
    r"(?<![\w.+-])[\w+-][\w.+-]*@[\w-]+(?:\.[\w-]+)+": _address,
    r"\b(?:https?|ftp)://[^\s<>\"]+|\bwww\.[^\s<>\"]+": _address,
    r"(?<![\w@.-])(?:[A-Za-z0-9][A-Za-z0-9-]+\.)+"
    rf"(?:{'|'.join(_DOMAINS)})(?![\w-]|\.\w)(?:/[^\s<>\"]*)?": _address,
    rf"(?<![\w/.-])(?P<name>\w[\w.-]{{0,80}})\.(?P<ending>{'|'.join(_FILES)})(?!\w)": _file,
    r"(?<![\w@])@(?=\w)": "at ",
    r"(?<![\w#])#(?=[^\W\d_])": "hashtag ",
}


def _dotted(numeral: str) -> str:
    return " point ".join(map(in_words, numeral.split(".")))


def _several_stops(match: re.Match[str]) -> str:
    parts = match[0].split(".")
    if len(parts) == 4 and all(len(part) <= 3 for part in parts):
        return " dot ".join(map(digits, parts))
    return _dotted(match[0])


def _telephone(match: re.Match[str]) -> str:
    groups = re.findall(r"\+?[0-9]+", match[0])
    if not 7 <= sum(len(group.lstrip("+")) for group in groups) <= 15:
        return match[0]
    words = ["eight hundred" if group == "800" else digits(group) for group in groups]
    return ("plus " if groups[0][0] == "+" else "") + ", ".join(words)


def _model(match: re.Match[str]) -> str:
    """ "R T X forty ninety", "M P three", "iPhone fifteen"."""
    words = []
    for run in re.findall(r"[0-9]+|[A-Z]+(?=v[0-9])|v(?=[0-9])|[^\W\d_]+", match[0]):
        if run[0] in "0123456789":
            words.append(code(run))
        elif is_spelled(run) or len(run) <= 2:
            words.append(spelled(run))
        else:
            words.append(run)
    return " ".join(words)


def _numbered(match: re.Match[str]) -> str:
    return match["before"] + digits(match["number"])


def _emergency(match: re.Match[str]) -> str:
    """Not where there is nothing but the number."""
    return match[0] if match.string.strip() == match[0] else digits(match[0])


def _card(match: re.Match[str]) -> str:
    return ", ".join(map(digits, re.split("[ -]", match[0])))


_GAP = "[ .-]"
# Before numbers that are dialled, and before those of places.
_DIALLED = "[Cc]all|[Cc]alled|[Cc]alling|[Dd]ial|[Dd]ialed|[Dd]ialled|[Pp]hone|[Rr]ing|[Tt]ext"
# Before numbers of versions, which are no decimals: "Python 3.12".
_VERSIONED = "[Vv]ersion|Python|Ubuntu|Debian|macOS|iOS|Android|Node|Java|Ruby|Perl|Linux|Kernel"
_STATE = "[A-Z]{2}|[A-Z][a-z]+"
_ZIP = "(?i:zip(?: code)?|postcode|postal code):?"

RULES: Rules = {
    r"(?<![\w.,-])[0-9]{4}(?:[ -][0-9]{4}){3}(?![\w-])|(?<![\w.,-])3[47][0-9]{2}[ -][0-9]{6}[ "
    r"-][0-9]{5}(?![\w-])": _card,
    rf"(?P<before>\b(?:{_DIALLED})\s)(?P<number>[0-9]{{3,6}})(?!\w|[.,:-][0-9])": _numbered,
    r"(?P<before>\b[Pp]orsche\s)911\b": r"\g<before>nine eleven",
    r"(?<![\w.,$£€#-])(?P<before>)(?P<number>911)(?!\w|[.,:/-][0-9]|\s[a-z]+s\b)": _emergency,
    r"(?<![\w.,-])[0-9]{5}-[0-9]{4}(?![\w-])": _card,
    rf"(?P<before>\b{_ZIP}\s)(?P<number>[0-9]{{5}})(?!\w|[.,:][0-9])": _numbered,
    rf"(?P<before>\b(?:{_STATE})\s|\A)(?P<number>[0-9]{{5}})(?!\w|[.,:-][0-9]|"
    rf"\s[a-z])(?<!00)": _numbered,
    rf"(?<![\w+])\+[0-9]{{1,3}}(?:{_GAP}?\([0-9]{{1,4}}\))?"
    rf"(?:{_GAP}?[0-9]{{2,5}}){{2,5}}(?!\w)": _telephone,
    rf"(?<![\w+])(?:1{_GAP})?\([0-9]{{3}}\)\s?[0-9]{{3}}{_GAP}[0-9]{{4}}(?!\w)": _telephone,
    rf"(?<![\w.-])(?:1{_GAP})?[0-9]{{3}}([.-])[0-9]{{3}}\1[0-9]{{4}}(?![\w-])": _telephone,
    r"(?<![\w.-])(?:\(0[0-9]{2,4}\)|0[0-9]{2,4}) [0-9]{3,4} [0-9]{3,4}(?!\w)": _telephone,
    r"(?<![\w.-])0[0-9]{4} [0-9]{6}(?!\w)": _telephone,
    r"(?<![\w.,$£€-])[0-9]{3}-[0-9]{4}(?<!00)(?![\w-])": _telephone,
    r"(?<![\w.])([0-9]+(?:\.[0-9]+)?)[eE]([+-]?[0-9]{1,3})(?!\w)": lambda match: (
        f"{in_words(match[1])} times ten to the {in_words(match[2].lstrip('+'))}"
    ),
    r"(?<![\w.])v\.?([0-9]+(?:\.[0-9]+)*)(?!\w|\.[0-9])": lambda match: (
        f"version {_dotted(match[1])}"
    ),
    rf"(?P<before>\b(?:{_VERSIONED})\s)(?P<number>[0-9]+\.[0-9]{{2}})"
    r"(?!\w|\.[0-9])": lambda match: match["before"] + _dotted(match["number"]),
    r"(?<![\w.])(?![0-9]{1,2}\.[0-9]{1,2}\.[0-9]{4}\b|[0-9]{4}\.[0-9]{2}\.[0-9]{2}\b)"
    r"[0-9]+(?:\.[0-9]+){2,}(?!\w)": _several_stops,
}

MODEL_RULES: Rules = {
    r"(?<![\w.])(?=[0-9]*[^\W\d_])(?=[^\W\d_]*[0-9])[^\W_]+(?!\w)": _model,
}
