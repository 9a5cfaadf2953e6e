"""Reads what a page in HTML shows, with the parser of the standard library."""

import re
from collections import Counter
from html import unescape
from html.parser import HTMLParser
from itertools import accumulate

from ..segment import Passage
from ..traced import Traced, placed
from .announcements import code_block
from .collector import Collector, check_size

_VOID = frozenset("area base br col embed hr img input link meta param source track wbr".split())
# How what begins and ends with an element ends.
_ENDS = dict.fromkeys(
    "address article aside blockquote body caption center details dialog div dl fieldset "
    "figcaption figure footer form h1 h2 h3 h4 h5 h6 header hr html legend main menu nav ol p pre "
    "section summary table ul".split(),
    "paragraph",
) | dict.fromkeys("dd dt li tr option".split(), "sentence")
_UNREAD = frozenset(
    "audio canvas datalist iframe math noscript object pre rp rt script select style svg template "
    "textarea title video".split()
)
# Elements whose end may be left out, and what ends them.
_ENDED_BY = {
    "li": ("li",),
    "dt": ("dt", "dd"),
    "dd": ("dt", "dd"),
    "tr": ("tr", "tbody", "tfoot"),
    "td": ("td", "th", "tr", "tbody", "tfoot"),
    "th": ("td", "th", "tr", "tbody", "tfoot"),
    "option": ("option",),
    "p": tuple(name for name, kind in _ENDS.items() if kind == "paragraph"),
}
_HIDING_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_REFERENCE = re.compile(r"&#?\w+;?")


def read_html(text: str, language: str) -> list[Passage]:
    """The passages of a page, with positions in it. language: of announcements."""
    check_size(text)
    collected = Collector()
    add_html(Traced(text), language, collected)
    return collected.passages()


def add_html(source: Traced, language: str, collected: Collector) -> None:
    """Adds what a part of a page shows."""
    reader = _Reader(source, language, collected)
    # No tag is complete after the last ">", and the parser would look for its end from each "<".
    end = source.rfind(">") + 1
    reader.feed(str(source[:end]))
    reader.close()
    if not reader.unread:
        collected.add(source[end:].sub(_REFERENCE, lambda found: unescape(found[0])))


class _Reader(HTMLParser):
    def __init__(self, source: Traced, language: str, collected: Collector) -> None:
        super().__init__(convert_charrefs=False)
        self._source = source
        self._language = language
        self._collected = collected
        lengths = (len(line) + 1 for line in str(source).split("\n"))
        self._line_starts = [0, *accumulate(lengths)]
        self._open: list[tuple[str, bool]] = []  # elements, and whether each is not read
        self._count: Counter[str] = Counter()  # of their names
        self.unread = 0  # of them

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        while self._open and tag in _ENDED_BY.get(self._open[-1][0], ()):
            self._close()
        given = dict(attrs)
        if not self.unread:
            self._begin(tag, given)
        if tag not in _VOID:
            hidden = tag in _UNREAD or _is_hidden(given)
            self._open.append((tag, hidden))
            self._count[tag] += 1
            self.unread += hidden

    def handle_endtag(self, tag: str) -> None:
        if self._count[tag]:
            while self._open[-1][0] != tag:
                self._close()
            self._close()

    def handle_data(self, data: str) -> None:
        if not self.unread:
            start = self._position()
            self._collected.add(self._source[start : start + len(data)])

    def handle_entityref(self, name: str) -> None:
        self._reference()

    def handle_charref(self, name: str) -> None:
        self._reference()

    def _reference(self) -> None:
        start = self._position()
        found = _REFERENCE.match(self._source, start)
        if found is not None and not self.unread:
            written = self._source[start : found.end()]
            self._collected.add(placed(unescape(found[0]), *written.source))

    def _begin(self, tag: str, given: dict[str, str | None]) -> None:
        if tag in _ENDS:
            self._collected.end(_ENDS[tag])
        if tag == "br":
            self._collected.add(" ")
        elif tag == "img" and not _is_hidden(given):
            self._collected.add(" ")
            self._say_instead(given.get("alt") or "")
            self._collected.add(" ")
        elif tag in ("td", "th"):
            self._collected.separate(", ")
        elif tag == "pre" and not _is_hidden(given):
            self._say_instead(code_block(self._language))
            self._collected.end("paragraph")

    def _say_instead(self, words: str) -> None:
        """Says something in place of an element; it comes from its tag, or from where it stands
        in it."""
        start, tag = self._position(), self.get_starttag_text() or ""
        if not words.strip():
            return
        if (place := tag.find(words)) >= 0:
            self._collected.add(self._source[start + place : start + place + len(words)])
        else:
            self._collected.add(placed(words, *self._source[start : start + len(tag)].source))

    def _close(self) -> None:
        tag, hidden = self._open.pop()
        self._count[tag] -= 1
        self.unread -= hidden
        if tag in _ENDS and not self.unread:
            self._collected.end(_ENDS[tag])

    def _position(self) -> int:
        """Of the current event in the source."""
        line, offset = self.getpos()
        return self._line_starts[line - 1] + offset


def _is_hidden(given: dict[str, str | None]) -> bool:
    if "hidden" in given or (given.get("aria-hidden") or "").lower() == "true":
        return True
    return _HIDING_STYLE.search(given.get("style") or "") is not None
