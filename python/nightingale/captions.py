"""Word times as captions: SubRip (SRT) and WebVTT files.

By the usual rules: a caption has two lines of at most 42 characters and stays for 1 to 7 seconds;
it ends where a sentence does, else at a clause, and the lines are about equally long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from unicodedata import category, east_asian_width

from ._core import Error
from .text.long_sentences import CLAUSE_END
from .text.pauses import PAUSE_MARK
from .text.segmentation import SENTENCE_END
from .word_times import Word

LINE = 42  # characters; East Asian ones count twice
LINES = 2
SHORTEST, LONGEST = 1.0, 7.0  # seconds
SILENCE = 1.0  # seconds without a word that no caption spans

# What is avoided, and how much: an end at a clause, an end between words of one, two sentences in a
# caption, too little time to read it, empty room.
_AT_CLAUSE, _IN_CLAUSE, _TWO_SENTENCES, _TOO_SHORT, _EMPTY = 0.1, 0.4, 0.3, 1.0, 0.2


@dataclass(frozen=True)
class Caption:
    """A text on the screen, of one line or more."""

    start: float  # seconds
    end: float
    lines: tuple[str, ...]


@dataclass(frozen=True)
class _Unit:
    """What is not divided: a word as it was written, with the marks around it."""

    text: str
    start: float
    end: float
    spaced: bool  # is there white space before it?


def caption_file(kind: str, words: Sequence[Word], text: str = "") -> str:
    """A file for captions, "srt" (SubRip) or "vtt" (WebVTT).

    text: the input, which captions then show as it was written.
    """
    if not words:
        raise Error("captions need word times, which this speech does not have")
    if kind == "vtt":
        return "\n".join(
            ["WEBVTT\n", *(_cue(each, ".", _escaped) for each in captions(words, text))]
        )
    numbered = enumerate(captions(words, text), 1)
    return "\n".join(f"{number}\n{_cue(each, ',', str)}" for number, each in numbered)


def captions(words: Sequence[Word], text: str = "") -> list[Caption]:
    """The captions of speech, in their order; no two are on the screen at once."""
    groups = [group for passage in _passages(_units(words, text)) for group in _divided(passage)]
    starts = [group[0].start for group in groups]
    found = []
    for group, following in zip(groups, [*starts[1:], float("inf")], strict=True):
        start = group[0].start
        end = max(group[-1].end, min(start + SHORTEST, following))
        found.append(Caption(start, min(end, start + LONGEST), tuple(_lines(group))))
    return found


def _units(words: Sequence[Word], text: str) -> list[_Unit]:
    """Words that come from one place are one unit, shown as it was written."""
    if not text:
        return [_Unit(word.text, word.start, word.end, True) for word in words]
    source = PAUSE_MARK.sub(lambda mark: " " * len(mark[0]), text)
    places: list[tuple[int, int, float, float]] = []
    for word in words:
        if places and word.source_start < places[-1][1]:
            begin, end, start, _ = places.pop()
            places.append((begin, max(end, word.source_end), start, word.end))
        else:
            places.append((word.source_start, word.source_end, word.start, word.end))
    units = []
    before = 0
    following = [begin for begin, *_ in places[1:]]
    for (begin, end, start, stop), limit in zip(places, [*following, len(source)], strict=True):
        begin, end = _with_marks(source, begin, end, before, limit)
        shown = " ".join(source[begin:end].split())
        units.append(
            _Unit(shown, start, stop, source[before:begin].strip() != source[before:begin])
        )
        before = end
    return units


def _with_marks(source: str, begin: int, end: int, least: int, most: int) -> tuple[int, int]:
    """A place in the source with the marks that stand right before and after it."""
    while end < most and not source[end].isspace() and _is_closing(source[end]):
        end += 1
    while begin > least and not source[begin - 1].isspace():
        begin -= 1
    return begin, end


def _is_closing(character: str) -> bool:
    return category(character) not in ("Ps", "Pi")


def _passages(units: Sequence[_Unit]) -> Iterator[list[_Unit]]:
    """What silence divides."""
    passage: list[_Unit] = []
    for unit in units:
        if passage and unit.start - passage[-1].end >= SILENCE:
            yield passage
            passage = []
        passage.append(unit)
    if passage:
        yield passage


def _divided(units: list[_Unit]) -> list[list[_Unit]]:
    """The captions of a passage: of all that fit, those with the lowest cost."""
    lowest = [0.0]
    first = [0]  # of the last caption, by the number of units
    for end in range(1, len(units) + 1):
        lowest.append(float("inf"))
        first.append(end - 1)
        for begin in range(end - 1, -1, -1):
            if begin < end - 1 and not _fits(units[begin:end]):
                break
            cost = lowest[begin] + _cost(units, begin, end)
            if cost < lowest[end]:
                lowest[end], first[end] = cost, begin
    groups = []
    end = len(units)
    while end:
        groups.append(units[first[end] : end])
        end = first[end]
    return groups[::-1]


def _fits(group: Sequence[_Unit]) -> bool:
    if group[-1].end - group[0].start > LONGEST or _width(_text(group)) > LINES * (LINE + 1):
        return False
    lines = _lines(group)
    return len(lines) <= LINES and max(map(_width, lines)) <= LINE


def _cost(units: Sequence[_Unit], begin: int, end: int) -> float:
    group = units[begin:end]
    cost = _TWO_SENTENCES * sum(bool(SENTENCE_END.search(unit.text)) for unit in group[:-1])
    cost += _EMPTY * (1 - _width(_text(group)) / (LINES * LINE)) ** 2
    if end < len(units):
        cost += _TOO_SHORT * (units[end].start - group[0].start < SHORTEST)
        if not SENTENCE_END.search(group[-1].text):
            cost += _AT_CLAUSE if CLAUSE_END.search(group[-1].text) else _IN_CLAUSE
    return cost


def _text(group: Sequence[_Unit]) -> str:
    spaced = "".join(" " + unit.text if unit.spaced else unit.text for unit in group)
    return spaced.strip()


def _width(text: str) -> int:
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


def _lines(group: Sequence[_Unit]) -> list[str]:
    """One line, or two that are about equally long; more only where one word needs them."""
    whole = _text(group)
    if _width(whole) <= LINE:
        return [whole]
    halves = [(_text(group[:i]), _text(group[i:])) for i in range(1, len(group))]
    fitting = [pair for pair in halves if max(map(_width, pair)) <= LINE]
    if fitting:
        first, second = min(fitting, key=_unevenness)
        return [first, second]
    if len(group) > 1:
        return [line for unit in group for line in _lines([unit])]
    parts, line = [], ""
    for character in whole:
        if _width(line + character) > LINE:
            parts.append(line)
            line = ""
        line += character
    return [*parts, line]


def _unevenness(pair: tuple[str, str]) -> float:
    """Of two lines; an end at a clause makes up for some of it."""
    first, second = pair
    return abs(_width(first) - _width(second)) - (8 if CLAUSE_END.search(first) else 0)


def _cue(caption: Caption, point: str, escaped: Callable[[str], str]) -> str:
    # An arrow would be taken for a line of times.
    lines = [escaped(line.replace("-->", "→")) for line in caption.lines]
    times = f"{_time(caption.start, point)} --> {_time(caption.end, point)}"
    return "".join(f"{line}\n" for line in (times, *lines))


def _time(seconds: float, point: str) -> str:
    whole, thousandths = divmod(round(1000 * seconds), 1000)
    minutes, second = divmod(whole, 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour:02}:{minute:02}:{second:02}{point}{thousandths:03}"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
