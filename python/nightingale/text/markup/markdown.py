"""Reads Markdown (CommonMark, tables and strikethrough) as a person would, with markdown-it-py."""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from ..._core import Error
from ..segment import Passage
from ..traced import Traced, joined, placed
from .announcements import code_block
from .collector import Collector, check_size
from .html import add_html

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

_LINE_END = re.compile(r"\r\n|\n|\r")
_FRONT_MATTER = re.compile(
    r"\ufeff?(---|\+\+\+)[ \t]*(?:\r\n?|\n)(?:[^\r\n]*(?:\r\n|\r(?!\n)|\n))*?\1[ \t]*(?=[\r\n]|\Z)"
)
_HEADING_MARK = re.compile(r"#{1,6}(?=[ \t])")
_ITEM_NUMBER = re.compile(r"[0-9]{1,9}[.)](?=\s|\Z)")
_CHECKBOX = re.compile(r"\A\[[ xX]\](?=\s)")
# CommonMark has no footnotes and would take them for links, so that their bracket is replaced.
_FOOTNOTE_BRACKET = re.compile(r"\[(?=\^[^\[\]\s]{1,64}\])")
_STAND_IN = "\ue000"
_FOOTNOTE = re.compile(rf"{_STAND_IN}\^[^\[\]\s]{{1,64}}\]:?")
_LINE_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_PLACES = "nightingale places"  # a key of markdown-it's environment


def read_markdown(text: str, language: str) -> list[Passage]:
    """The passages of a text in Markdown, with positions in it. language: of announcements."""
    check_size(text)
    return _Reader(text, language).passages()


@cache
def _parser() -> MarkdownIt:
    try:
        from markdown_it import MarkdownIt
    except ModuleNotFoundError:
        raise Error(
            "Markdown needs markdown-it-py: pip install 'nightingale-tts[markup]'"
        ) from None
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    # Joined tokens would no longer be found in the source.
    parser.disable(["text_join", "fragments_join"], ignoreInvalid=True)
    parser.inline.ruler.before("text", "place", _note_place)
    return parser


def _note_place(state: StateInline, silent: bool) -> bool:
    """A rule that matches nothing, and notes at which place in the source how many tokens there
    were: markdown-it's inline tokens have no places."""
    if not silent:
        noted = state.env.setdefault(_PLACES, {}).setdefault(id(state.tokens), [])
        noted.append((len(state.tokens), state.pos))
    return False


def _places(noted: Sequence[tuple[int, int]], count: int) -> list[int]:
    """Where each of the tokens begins, or a little before: what is pushed by one rule begins where
    the rule was tried."""
    places: list[int] = []
    last = 0
    for tokens, place in noted:
        places += [last] * (tokens - len(places))
        if tokens == len(places):
            places.append(place)
        last = place
    return places[:count] + [last] * (count - len(places))


class _Reader:
    def __init__(self, text: str, language: str) -> None:
        self._source = Traced(text)
        self._language = language
        self._collected = Collector()
        starts = [0, *(found.end() for found in _LINE_END.finditer(text))]
        ends = [*(found.start() for found in _LINE_END.finditer(text)), len(text)]
        self._lines = list(zip(starts, ends, strict=True))
        self._ordered: list[bool] = []  # of the lists that are open, which have numbers
        self._item = False  # has a list item just begun?
        self._row = (0, 0)  # line of a table's row, and what of it has been read
        self._environment: dict[str, Any] = {}

    def passages(self) -> list[Passage]:
        text = str(self._source)
        if front := _FRONT_MATTER.match(text):
            blank = "".join(_LINE_END.findall(front[0]))
            text = blank + text[front.end() :]
        text = _FOOTNOTE_BRACKET.sub(_STAND_IN, text)
        parent = ""
        for token in _parser().parse(text, self._environment):
            if token.type == "inline":
                self._inline(token, parent)
            else:
                self._block(token)
                parent = token.type
        return self._collected.passages()

    def _block(self, token: Token) -> None:
        kind = token.type
        if kind in ("fence", "code_block"):
            self._collected.end("paragraph")
            self._collected.add(placed(code_block(self._language), *self._span(token)))
            self._collected.end("paragraph")
        elif kind == "html_block":
            start, end = self._span(token)
            add_html(self._source[start:end], self._language, self._collected)
        elif kind in ("bullet_list_open", "ordered_list_open"):
            self._collected.end("sentence" if self._ordered else "paragraph")
            self._ordered.append(kind.startswith("ordered"))
        elif kind in ("bullet_list_close", "ordered_list_close"):
            self._ordered.pop()
            self._collected.end("sentence" if self._ordered else "paragraph")
        elif kind == "list_item_open":
            self._collected.end("sentence")
            self._begin_item(token)
        elif kind == "tr_open":
            self._row = ((token.map or [0])[0], 0)
        elif kind in ("th_open", "td_open"):
            self._collected.separate(", ")
        elif kind == "tr_close":
            self._collected.end("sentence")
        elif kind in ("paragraph_close", "list_item_close"):
            self._collected.end("sentence" if self._ordered else "paragraph")
        elif kind in ("heading_close", "blockquote_close", "table_close", "hr"):
            self._collected.end("paragraph")

    def _begin_item(self, token: Token) -> None:
        """A numbered item is read with its number."""
        self._item = True
        start, end = self._lines[(token.map or [0])[0]]
        number = _ITEM_NUMBER.search(self._source, start, end)
        if self._ordered[-1] and number is not None:
            self._collected.add(self._source[number.start() : number.end()])
            self._collected.add(" ")

    def _inline(self, token: Token, parent: str) -> None:
        text = joined(self._spoken(token.children or [], token.content, self._where(token, parent)))
        if self._item:
            text = text.sub(_CHECKBOX, "")
        self._item = False
        self._collected.add(text.sub(_FOOTNOTE, "").replace(_STAND_IN, "["))

    # Inline tokens

    def _spoken(self, tokens: list[Token], content: str, where: array[int]) -> list[str]:
        """What is read of the tokens of a content; where: the place of each of its characters."""
        found: list[str] = []
        noted = self._environment.get(_PLACES, {}).get(id(tokens), [])
        flat = content.replace("\n", " ")
        for token, place in zip(tokens, _places(noted, len(tokens)), strict=True):
            if token.type in ("softbreak", "hardbreak") or _LINE_BREAK.match(token.content):
                found.append(" ")
            elif token.type == "text_special":
                end = place + len(token.markup)
                found.append(placed(token.content, where[place], where[end - 1] + 1))
            elif token.type == "image":
                label = content.find(token.content, place)
                inside = where[label : label + len(token.content)]
                found += self._spoken(token.children or [], token.content, inside)
            elif token.type == "text":
                found.append(_found(token.content, place, flat, where))
            elif token.type == "code_inline":
                code = _found(token.content, place, flat, where)
                found.append(code.replace(_STAND_IN, "["))
        return found

    # Places

    def _span(self, token: Token) -> tuple[int, int]:
        """Where a block begins and ends, without the white space around it."""
        first, last = token.map or [0, 1]
        start, end = self._lines[first][0], self._lines[min(last, len(self._lines)) - 1][1]
        text = str(self._source[start:end])
        start += len(text) - len(text.lstrip())
        return start, max(start + 1, end - (len(text) - len(text.rstrip())))

    def _where(self, token: Token, parent: str) -> array[int]:
        """The place of each character of a block's content, from which markdown-it has removed what
        opens its lines."""
        if parent in ("th_open", "td_open"):
            return self._where_in_row(token.content)
        where = array("l")
        first = (token.map or [0])[0]
        for number, line in enumerate(token.content.split("\n"), first):
            start, end = self._lines[number]
            where.extend(self._where_in_line(line, start, end, parent == "heading_open"))
            where.append(end)  # the line break
        return where

    def _where_in_line(self, line: str, start: int, end: int, heading: bool) -> list[int]:
        written = str(self._source[start:end])
        text = line.strip().replace(_STAND_IN, "[")
        mark = _HEADING_MARK.search(written) if heading else None
        place = written.find(text, mark.end()) if mark else written.rfind(text)
        if place < 0:  # markdown-it has replaced tabs or NUL characters
            return [min(start + i, end) for i in range(len(line))]
        before = start + place - (len(line) - len(line.lstrip()))
        return [max(start, before + i) for i in range(len(line))]

    def _where_in_row(self, cell: str) -> array[int]:
        """The place of a cell's characters; a bar is written with a backslash."""
        line, done = self._row
        start, end = self._lines[line]
        plain = cell.replace(_STAND_IN, "[")
        pattern = "".join(r"\\?\|" if c == "|" else re.escape(c) for c in plain)
        found = re.compile(pattern).search(self._source, start + done, end)
        if found is None:
            return array("l", [start + done] * (len(cell) + 1))
        where = array("l")
        at = found.start()
        for character in cell:
            if character == "|" and self._source[at] == "\\":
                at += 1
            where.append(at)
            at += 1
        where.append(at)
        self._row = (line, at - start)
        return where


def _found(text: str, place: int, content: str, where: array[int]) -> Traced:
    """The text of a token that begins at a place in a content, or a little after."""
    start = content.find(text, place)
    if start < 0:  # an address whose signs are written in another way
        last = min(place + len(text), len(where)) - 1
        return placed(text, where[place], where[last] + 1)
    starts = where[start : start + len(text)]
    return Traced(text, starts, array("l", (at + 1 for at in starts)))
