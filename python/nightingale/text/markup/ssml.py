"""Reads a subset of SSML, the Speech Synthesis Markup Language of the W3C."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NoReturn
from xml.parsers import expat

from ...option import MOST_SHOWN, shown
from .. import pauses
from ..segment import PLAIN, Passage, Style
from ..traced import Traced, joined, placed
from .collector import Collector, check_size
from .say_as import say_as

_NAMESPACE = "http://www.w3.org/2001/10/synthesis"
_XML = "http://www.w3.org/XML/1998/namespace"
_LANG = "xml:lang"
_MOST_DEPTH = 50  # of elements in each other

# The elements, their attributes, and which of these must be there.
_ELEMENTS = {
    "speak": ("version", _LANG),
    "p": (_LANG,),
    "s": (_LANG,),
    "break": ("time", "strength"),
    "sub": ("alias",),
    "say-as": ("interpret-as", "format"),
    "lang": (_LANG,),
    "voice": ("name", _LANG),
    "prosody": ("rate",),
}
_NEEDED = {
    "sub": "alias",
    "say-as": "interpret-as",
    "lang": _LANG,
    "voice": "name",
    "prosody": "rate",
}
_BLOCKS = {"p": "paragraph", "s": "sentence", "speak": "paragraph"}
_REPLACED = ("sub", "say-as")  # other words stand for their text

_STRENGTHS = {
    "none": 0.0, "x-weak": 0.1, "weak": 0.25, "medium": 0.5, "strong": 0.75, "x-strong": 1.25,
}  # fmt: skip
_RATES = {
    "x-slow": 0.5, "slow": 0.75, "medium": 1.0, "default": 1.0, "fast": 1.25, "x-fast": 1.5,
}  # fmt: skip
SLOWEST, FASTEST = 0.5, 2.0  # of rates

_SPEAK = re.compile(r"\ufeff?\s*(?:<\?xml[^>]*\?>\s*)?<speak(?=[\s/>])")
_TIME = re.compile(r"\+?([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ms|s)")
_PERCENT = re.compile(r"([+-]?)([0-9]{1,4}(?:\.[0-9]{1,9})?)%")


def is_ssml(text: str) -> bool:
    """Whether a text is SSML by its looks: it begins with <speak."""
    return _SPEAK.match(text) is not None


def read_ssml(
    text: str,
    language: str,
    find_language: Callable[[str], str],
    find_voice: Callable[[str], Any],
) -> list[Passage]:
    """The passages of a document in SSML, with positions in it.

    language: of what has no xml:lang. find_language, find_voice: what a code and a name stand for,
    or a ValueError. What is malformed or not in the subset is a ValueError with line and column.
    """
    check_size(text)
    try:
        content = text.encode()
    except UnicodeEncodeError:
        raise ValueError("the text holds bytes that are not valid UTF-8") from None
    return _Reader(text, content, language, find_language, find_voice).passages()


@dataclass(frozen=True)
class _Open:
    """An element that has not ended."""

    name: str
    attributes: dict[str, str]
    style: Style
    start: int  # where its tag stands in the document
    place: tuple[int, int]  # the same as line and column, from 1 and 0


class _Reader:
    def __init__(
        self,
        text: str,
        content: bytes,
        language: str,
        find_language: Callable[[str], str],
        find_voice: Callable[[str], Any],
    ) -> None:
        self._source = Traced(text)
        self._content = content
        self._language = language
        self._find_language = find_language
        self._find_voice = find_voice
        self._collected = Collector()
        self._open: list[_Open] = []
        self._replaced: list[Traced] = []  # the text of a <sub> or <say-as>
        self._raw = False  # inside of a CDATA section
        self._bytes = self._characters = 0  # the same place in content and text
        self._parser = parser = expat.ParserCreate("utf-8", " ")
        parser.namespace_prefixes = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.StartDoctypeDeclHandler = self._doctype
        parser.StartCdataSectionHandler = lambda: self._in_cdata(True)
        parser.EndCdataSectionHandler = lambda: self._in_cdata(False)

    def passages(self) -> list[Passage]:
        try:
            self._parser.Parse(self._content, True)
        except expat.ExpatError as error:
            what = expat.ErrorString(error.code)
            if what == expat.errors.XML_ERROR_UNDEFINED_ENTITY:
                what = "unknown entity; there are &amp; &lt; &gt; &quot; &apos; and numbers: &#233;"
            if what == expat.errors.XML_ERROR_NO_ELEMENTS and self._open:
                what = f"<{self._open[-1].name}> is not closed"
            raise _error(error.lineno, error.offset, what) from None
        return self._collected.passages()

    # Events

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        element = self._known(name)
        if self._open and self._open[-1].name in (*_REPLACED, "break"):
            self._refuse(f"<{element}> cannot stand in <{self._open[-1].name}>")
        if (element == "speak") == bool(self._open):
            self._refuse("<speak> must be the outermost element, and only that")
        if len(self._open) >= _MOST_DEPTH:
            self._refuse(f"elements may stand in each other {_MOST_DEPTH} deep")
        given = self._checked(element, attributes)
        around = self._open[-1].style if self._open else PLAIN
        if element in _BLOCKS:
            self._collected.end(_BLOCKS[element])
        if element == "break":
            self._break(given)
        style = self._styled(element, given, around)
        self._open.append(_Open(element, given, style, self._position(), self._place()))

    def _end(self, _: str) -> None:
        ended = self._open.pop()
        if ended.name in _BLOCKS:
            self._collected.end(_BLOCKS[ended.name])
        elif ended.name in _REPLACED:
            self._replace(ended)

    def _text(self, data: str) -> None:
        text = self._traced(data)
        inside = self._open[-1]
        if inside.name in _REPLACED:
            self._replaced.append(text)
        elif inside.name != "break":
            self._collected.add(text, inside.style)
        elif text.strip():
            self._refuse("<break> must be empty")

    def _doctype(self, *_: Any) -> NoReturn:
        self._refuse("a document type declaration is not accepted")

    def _in_cdata(self, raw: bool) -> None:
        self._raw = raw

    # Elements

    def _known(self, name: str) -> str:
        """The name of an element of the subset; expat gives namespace, name and prefix."""
        parts = name.split(" ")
        local = parts[-1] if len(parts) == 1 else parts[1]
        if (len(parts) == 1 or parts[0] == _NAMESPACE) and local in _ELEMENTS:
            return local
        full = f"{parts[2]}:{local}" if len(parts) == 3 else local
        self._refuse(f"unknown element <{full[:MOST_SHOWN]}>; there are {', '.join(_ELEMENTS)}")

    def _checked(self, element: str, attributes: dict[str, str]) -> dict[str, str]:
        """The attributes by their names; those of other namespaces say nothing here."""
        given = {}
        for name, value in attributes.items():
            if name.startswith(f"{_XML} lang"):
                name = _LANG
            elif " " in name:
                continue
            if name not in _ELEMENTS[element]:
                known = ", ".join(_ELEMENTS[element])
                self._refuse(f"<{element}> has the attributes {known}, not {shown(name)}")
            given[name] = value
        needed = _NEEDED.get(element)
        if needed is not None and needed not in given:
            self._refuse(f"<{element}> needs the attribute {needed!r}")
        return given

    def _styled(self, element: str, given: dict[str, str], style: Style) -> Style:
        if _LANG in given:
            found = self._told(self._find_language, given[_LANG].strip())
            style = replace(style, language=None if found == self._language else found)
        if element == "voice":
            style = replace(style, voice=self._told(self._find_voice, given["name"]))
        if element == "prosody":
            style = replace(style, rate=self._rate(given["rate"].strip(), style.rate))
        return style

    def _told(self, find: Callable[[str], Any], name: str) -> Any:
        try:
            return find(name)
        except ValueError as error:
            self._refuse(str(error))

    def _rate(self, given: str, around: float) -> float:
        if given in _RATES:
            return _RATES[given]
        percent = _PERCENT.fullmatch(given)
        if percent is None:
            self._refuse(
                f"rate={shown(given)} is neither a percentage nor one of {', '.join(_RATES)}"
            )
        share = float(percent[2]) / 100
        rates = {"": share, "+": around * (1 + share), "-": around * (1 - share)}
        rate = rates[percent[1]]
        if not SLOWEST <= rate <= FASTEST:
            self._refuse(f"rate={shown(given)} is not between {SLOWEST:.0%} and {FASTEST:.0%}")
        return rate

    def _break(self, given: dict[str, str]) -> None:
        strength = given.get("strength", "medium").strip()
        if strength not in _STRENGTHS:
            self._refuse(f"strength={shown(strength)} is not one of {', '.join(_STRENGTHS)}")
        seconds = _STRENGTHS[strength]
        if "time" in given:
            time = _TIME.fullmatch(given["time"].strip())
            seconds = pauses.LONGEST + 1
            if time is not None:
                seconds = float(time[1]) / (1000 if time[2] == "ms" else 1)
            if seconds > pauses.LONGEST:
                self._refuse(
                    f"time={shown(given['time'])} is no pause: write 500ms or 1.5s, "
                    f"at most {pauses.LONGEST:g} s"
                )
        elif strength == "none":
            return
        self._collected.pause(seconds)

    def _replace(self, ended: _Open) -> None:
        """Puts the words in that stand for the text of an element; they come from all of it."""
        text = joined(self._replaced).strip()
        self._replaced = []
        if ended.name == "sub":
            words = ended.attributes["alias"]
        else:
            given, language = ended.attributes, ended.style.language or self._language
            kind, format = given["interpret-as"].strip(), given.get("format", "").strip()
            try:
                words = say_as(text, kind, format, language)
            except ValueError as error:
                raise _error(*ended.place, str(error)) from None
        source = text.source if text else (ended.start, self._position())
        self._collected.add(placed(words, *source), ended.style)

    # Places

    def _traced(self, data: str) -> Traced:
        """Character data with its place in the document."""
        start = self._position()
        source = self._source
        if source[start] == "&" and not self._raw:
            return placed(data, start, source.index(";", start) + 1)
        if data == "\n" and source[start] == "\r":
            return placed(data, start, start + (2 if source[start : start + 2] == "\r\n" else 1))
        return source[start : start + len(data)]

    def _position(self) -> int:
        """The character at which the current event begins; expat counts bytes."""
        index = self._parser.CurrentByteIndex
        self._characters += len(self._content[self._bytes : index].decode())
        self._bytes = index
        return self._characters

    def _place(self) -> tuple[int, int]:
        return self._parser.CurrentLineNumber, self._parser.CurrentColumnNumber

    def _refuse(self, what: str) -> NoReturn:
        raise _error(*self._place(), what)


def _error(line: int, offset: int, what: str) -> ValueError:
    return ValueError(f"SSML, line {line}, column {offset + 1}: {what}")
