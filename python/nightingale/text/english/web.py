"""Addresses of mail and web, file names, handles."""

# ruff: noqa: RUF001, SIM905

from __future__ import annotations

import re

from .acronyms import is_spelled, spelled
from .numbers import code
from .rules import Rule, rule

_SIGNS = {
    ".": "dot",
    "/": "slash",
    "-": "dash",
    "_": "underscore",
    "@": "at",
    "?": "question mark",
    "=": "equals",
    "&": "and",
    "#": "hash",
    ":": "colon",
    "+": "plus",
    "%": "percent",
    "~": "tilde",
}
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
            words.append(signs.get(part, ""))
        elif (i and parts[i - 1] == "." and part in _DOMAINS and part not in _READ_DOMAINS) or (
            is_spelled(part)
        ):
            words.append(spelled(part))
        else:
            words.append(part)
    return " ".join(filter(None, words))


def _address(match: re.Match[str]) -> str:
    found = re.sub(r"^(?:[a-z]+://)?(?:www\.)?", "", match[0])
    trailing = _TRAILING.search(found)
    end = trailing.start() if trailing else len(found)
    return _aloud(found[:end]) + found[end:].replace("/", "")


def _file(match: re.Match[str]) -> str:
    name = _aloud(match["name"], {".": "dot"})
    ending = match["ending"]
    read = ending in ("zip", "doc", "gif", "wav", "json", "jpeg", "java", "log", "flac", "onnx")
    return f"{name} dot {_aloud(ending) if read or len(ending) > 4 else _letters(ending)}"


def _letters(ending: str) -> str:
    return " ".join(code(part) if part in "0123456789" else part.upper() for part in ending)


RULES: tuple[Rule, ...] = (
    rule(r"(?<![\w.+-])[\w+-][\w.+-]*@[\w-]+(?:\.[\w-]+)+", _address),
    rule(r"\b(?:https?|ftp)://[^\s<>\"]+|\bwww\.[^\s<>\"]+", _address),
    rule(
        r"(?<![\w@.-])(?:[A-Za-z0-9][A-Za-z0-9-]+\.)+(?:"
        + "|".join(_DOMAINS)
        + r")(?![\w-]|\.\w)(?:/[^\s<>\"]*)?",
        _address,
    ),
    rule(
        r"(?<![\w/.-])(?P<name>\w[\w.-]{0,80})\.(?P<ending>" + "|".join(_FILES) + r")(?!\w)",
        _file,
    ),
    rule(r"(?<![\w@])@(?=\w)", "at "),
    rule(r"(?<![\w#])#(?=[^\W\d_])", "hashtag "),
)
