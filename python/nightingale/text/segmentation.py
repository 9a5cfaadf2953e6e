"""Sentences to segments: long ones are split, short ones merged, `[pause 500ms]` marks read."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from unicodedata import category

from .characters import is_spoken, shorten_runs, speaking_time
from .lexicon import Lexicon
from .long_sentences import balanced_groups, cut
from .segment import Segment
from .sentences import Sentence, sentences
from .spoken import written_out
from .traced import Traced, joined, traced

_COMFORTABLE = 0.6  # of a segment, up to which sentences are merged
_VERY_SHORT = 1.0  # seconds; a shorter sentence is merged with its neighbour
_GAP = 0.3  # seconds between two sentences

_DEFAULT_PAUSE = 0.5  # seconds of a bare [pause]
_LONGEST_PAUSE = 30.0  # of one mark, and of all that nothing spoken stands between

PAUSE_MARK = re.compile(r"\[\s*pause(?![a-z_])([^\[\]]*)\]", re.IGNORECASE)
# After a colon the unit may be left out: seconds.
_LENGTH = re.compile(
    r"(?:\s+(?=.*s)|\s*:\s*)([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*(ms|s|)\s*", re.IGNORECASE
)
_PARAGRAPH_AFTER = re.compile(r"\n[^\S\n]*\n\s*\Z")
_PARAGRAPH_BEFORE = re.compile(r"\A[^\S\n]*\n[^\S\n]*\n")
SENTENCE_END = re.compile(r"[.．!?…‥。｡！？؟۔।॥׃‽\u037e][\"'”’»)\]」』）]*\Z")


@dataclass(frozen=True)
class Segmenter:
    """Splits a text into segments; see `prepare` for the settings."""

    language: str
    limit: float
    count: Callable[[str], int] | None
    max_tokens: int
    expand: bool
    count_at_most: Callable[[str], float] | None = None
    lexicon: Lexicon | None = None
    sizes: dict[str, float] = field(default_factory=dict)  # counting tokens is not cheap

    def segments(self, text: str) -> list[Segment]:
        parts = [(self._respelled(part), pause) for part, pause in _split_pauses(traced(text))]
        found: list[Segment] = []
        silence = 0.0  # before the first text
        unspoken = Traced("")  # marks before the first text
        for i, (part, pause) in enumerate(parts):
            units = self._units(part, parts[i + 1][0] if i + 1 < len(parts) else None)
            if units and not is_spoken(units[0].text):
                if found:
                    text = found[-1].text + " " + units[0].text
                    if self._measure(text) <= 1:
                        found[-1] = replace(found[-1], text=text)
                else:
                    unspoken = (unspoken + " " + units[0].text).strip()
                units = []
            if units:
                if unspoken:
                    units[0] = replace(units[0], text=unspoken + " " + units[0].text)
                    unspoken = Traced("")
                found += self._grouped(units, first=not found)
            if found:
                found[-1] = replace(found[-1], pause=_together(found[-1].pause, pause))
            else:
                silence = _together(silence, pause)
        if unspoken:
            return [Segment(unspoken, silence, "paragraph")]
        if not found and len(parts) == 1:
            raise ValueError("there is no text to speak")
        return [Segment(Traced(""), silence, "cut"), *found] if silence or not found else found

    def _respelled(self, text: Traced) -> Traced:
        """Before sentences are found, since a phrase may hold a full stop."""
        return text if self.lexicon is None else self.lexicon.applied(text, self.language)

    def _measure(self, text: str) -> float:
        """The share of a segment that the text fills; 1 is full."""
        size = self.sizes.get(text)
        if size is None:
            size = speaking_time(text) / self.limit
            if self.count is not None and self._may_have_more(text, size * self.max_tokens):
                size = max(size, self.count(text) / self.max_tokens)
            self.sizes[text] = size
        return size

    def _may_have_more(self, text: str, tokens: float) -> bool:
        return self.count_at_most is None or self.count_at_most(text) > tokens

    def _units(self, part: Traced, following: str | None) -> list[Segment]:
        """The sentences between two pause marks, each with spoken text unless none has any."""
        units: list[Segment] = []
        for texts, ends_paragraph in _spoken_runs(sentences(part, self.language)):
            ends = "paragraph" if ends_paragraph else "sentence"
            units.append(Segment(self._written_out(joined(texts, " ")), 0.0, ends))
        if units and following is not None and not _paragraph_between(part, following):
            ends = "sentence" if SENTENCE_END.search(units[-1].text) else "clause"
            units[-1] = replace(units[-1], ends=ends)
        return units

    def _written_out(self, sentence: Traced) -> Traced:
        if self.expand:
            sentence = written_out(sentence, self.language)
        return shorten_runs(sentence).collapsed()

    def _grouped(self, units: list[Segment], first: bool) -> Iterator[Segment]:
        """Segments from sentences: long ones split, short ones of a paragraph merged."""
        paragraph: list[Segment] = []
        for unit in units:
            *firsts, (last, _) = cut(unit.text, self.language, self._measure)
            paragraph += [
                Segment(text, 0.0, "clause" if clause else "cut") for text, clause in firsts
            ]
            paragraph.append(replace(unit, text=last))
            if unit.ends == "paragraph" or unit is units[-1]:
                yield from self._merged(paragraph, first)
                paragraph, first = [], False

    def _merged(self, units: list[Segment], first: bool) -> Iterator[Segment]:
        gap, short = _GAP / self.limit, _VERY_SHORT / self.limit
        sizes = [self._measure(unit.text) + gap for unit in units]

        def fits(total: float, largest: float) -> bool:
            return total <= _COMFORTABLE or (total <= 1 and total - largest <= short + gap)

        # The time to first audio depends on the first segment: it is one sentence, and what is very
        # short beside it.
        lead = 0
        if first:
            lead = 1
            while lead < len(units) and sum(sizes[:lead]) < short + gap:
                lead += 1
            if sum(sizes[lead:]) < short + gap:
                lead = len(units)
            if not fits(sum(sizes[:lead]), max(sizes[:lead])):
                lead = 1
            yield _joined(units[:lead])
        rest = sizes[lead:]
        start = lead
        for end in balanced_groups(rest, [0.0] * len(rest), fits):
            yield _joined(units[start : lead + end])
            start = lead + end


def _spoken_runs(found: Iterable[Sentence]) -> Iterator[tuple[list[Traced], bool]]:
    """Sentences; what is not spoken is joined to the one before, or to the first one after."""
    texts: list[Traced] = []
    spoken = ends_paragraph = False
    for sentence in found:
        if spoken and is_spoken(sentence.text):
            yield texts, ends_paragraph
            texts, spoken = [], False
        texts.append(sentence.text)
        spoken = spoken or is_spoken(sentence.text)
        ends_paragraph = sentence.ends_paragraph
    if texts:
        yield texts, ends_paragraph


def _paragraph_between(part: str, following: str) -> bool:
    return bool(_PARAGRAPH_AFTER.search(part) or _PARAGRAPH_BEFORE.match(following))


def _joined(units: list[Segment]) -> Segment:
    text = units[0].text
    for unit in units[1:]:
        east_asian = "\u3000" <= text[-1] <= "\u9fff" or "\uff00" <= text[-1] <= "\uffef"
        if category(text[-1])[0] in "LMN":  # a list item, a heading
            text += "。" if east_asian else "."
        text += unit.text if east_asian and unit.text[0] > "\u3000" else " " + unit.text
    return replace(units[-1], text=text)


def _split_pauses(text: Traced) -> list[tuple[Traced, float]]:
    """The text between the marks, each with the seconds of silence asked for after it."""
    parts = []
    start = 0
    for mark in PAUSE_MARK.finditer(text):
        parts.append((text[start : mark.start()], _seconds(mark)))
        start = mark.end()
    parts.append((text[start:], 0.0))
    return parts


def _together(first: float, second: float) -> float:
    """The seconds of two pauses in a row."""
    return min(first + second, _LONGEST_PAUSE)


def _seconds(mark: re.Match[str]) -> float:
    if not mark[1].strip():
        return _DEFAULT_PAUSE
    length = _LENGTH.fullmatch(mark[1])
    seconds = _LONGEST_PAUSE + 1
    if length is not None:
        seconds = float(length[1]) / (1000 if length[2].lower() == "ms" else 1)
    if seconds > _LONGEST_PAUSE:
        raise ValueError(
            f"{mark[0]!r} is no pause: write [pause], [pause 500ms], [pause 1.5s] or [pause:1.5], "
            f"at most {_LONGEST_PAUSE:g} s"
        )
    return seconds
