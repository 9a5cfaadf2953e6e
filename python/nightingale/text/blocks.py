"""The layout of a text: paragraphs, list items, lines of dialogue."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .traced import Traced, joined

_BREAKS = re.compile("\r\n|[\r\x0b\x0c\x85\u2028]")
_LINE_BREAK = re.compile("[\n\r\x0b\x0c\x85\u2028\u2029]")
_MARK = re.compile(
    r"(?P<bullet>[-*•‣◦▪●○·])\s+(?=\S)"
    r"|(?P<dash>[–—―])\s*(?=\S)"
    r"|(?P<number>\(?(?:[0-9]{1,3}|[^\W\d_])[.)])\s+(?=\S)"
)
_CLOSED = re.compile(r"[.!?…。！？؟۔।॥:：;；]['\"”’»)\]」』）]*\Z")


@dataclass(frozen=True)
class Block:
    """Text without line breaks, and its role in the layout."""

    text: Traced  # white space collapsed
    mark: (
        Traced  # what opens a list item or a line of dialogue: "- ", "2. ", "—"; it is not in text
    )
    bullet: bool  # the mark is not spoken
    ends_paragraph: bool


def has_line_break(text: str) -> bool:
    return _LINE_BREAK.search(text) is not None


def blocks(text: Traced) -> Iterator[Block]:
    """The blocks of a text: a blank line ends one, and so does a line that opens a list item."""
    raw = text.replace("\u2029", "\n\n").sub(_BREAKS, "\n").parts("\n")
    lines = [line.strip() for line in raw]
    block: list[Traced] = []
    mark: re.Match[str] | None = None
    for i, line in enumerate(lines):
        if not line:
            if block:
                yield _block(block, mark, True)
            block, mark = [], None
            continue
        opens = _opening(line, block, mark, lines[i + 1] if i + 1 < len(lines) else "")
        left = mark is not None and not raw[i][0].isspace() and not line[0].islower()
        if block and (opens or left):
            yield _block(block, mark, False)
            block, mark = [], None
        if not block:
            mark = opens
        block.append(line)
    if block:
        yield _block(block, mark, True)


def _opening(
    line: str, block: Sequence[str], mark: re.Match[str] | None, following: str
) -> re.Match[str] | None:
    """The line's mark. A dash or a number may also just come first after a wrap, so the line
    before must be closed or the line after be marked alike."""
    found = _MARK.match(line)
    if found is None:
        return None
    if not block or mark is not None or _CLOSED.search(block[-1]):
        return found
    alike = _MARK.match(following)
    return found if alike is not None and alike.lastgroup == found.lastgroup else None


def _block(lines: list[Traced], mark: re.Match[str] | None, ends_paragraph: bool) -> Block:
    opening = lines[0][: mark.end() if mark is not None else 0]
    parts: list[str] = [lines[0][len(opening) :].collapsed()]
    for line in lines[1:]:
        line = line.collapsed()
        if not (_unspaced(parts[-1][-1:]) and _unspaced(line[0])):
            parts.append(" ")
        parts.append(line)
    bullet = mark is not None and mark.lastgroup == "bullet"
    spaced = opening.rstrip() + (" " if opening[-1:].isspace() else "")
    return Block(joined(parts), spaced, bullet, ends_paragraph)


def _unspaced(character: str) -> bool:
    """Whether the script, Chinese or Japanese, has no spaces for a line break to stand for."""
    return (
        "\u3000" <= character <= "\u30ff"
        or "\u3400" <= character <= "\u9fff"
        or "\uf900" <= character <= "\ufaff"
        or "\uff00" <= character <= "\uffef"
    )
