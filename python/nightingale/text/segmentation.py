"""Sentences to segments: long ones are split, short ones merged."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from unicodedata import category

from .characters import is_spoken, shorten_runs, speaking_time
from .lexicon import Lexicon
from .long_sentences import CLAUSE_END, balanced_groups, cut
from .pauses import split_pauses, together
from .segment import Passage, Segment
from .sentences import Sentence, sentences
from .spoken import written_out
from .traced import Traced, joined

_COMFORTABLE = 0.6  # of a segment, up to which sentences are merged
_VERY_SHORT = 1.0  # seconds; a shorter sentence is merged with its neighbour
_GAP = 0.3  # seconds between two sentences

_PARAGRAPH_AFTER = re.compile(r"\n[^\S\n]*\n\s*\Z")
_PARAGRAPH_BEFORE = re.compile(r"\A[^\S\n]*\n[^\S\n]*\n")
SENTENCE_END = re.compile(r"[.．!?…‥。｡！？؟۔।॥׃‽\u037e][\"'”’»)\]」』）]*\Z")


@dataclass(frozen=True)
class Segmenter:
    """Splits a text into segments; see `prepare` for the settings."""

    language: str
    limit: float
    count: Callable[[str, str], int] | None  # of a text in a language
    max_tokens: int
    expand: bool
    count_at_most: Callable[[str, str], float] | None = None
    lexicon: Lexicon | None = None
    sizes: dict[str, float] = field(default_factory=dict)  # counting tokens is not cheap
    others: dict[str, "Segmenter"] = field(default_factory=dict)  # by language

    def segments(self, passages: Iterable[Passage]) -> list[Segment]:
        parts = [self._respelled(part) for passage in passages for part in split_pauses(passage)]
        found: list[Segment] = []
        units: list[Segment] = []  # not yet in segments
        silence = 0.0  # before the first text
        unspoken = Traced("")  # marks before the first text
        glued = False  # may marks follow the last part without a space?
        for part, following in zip_longest(parts, parts[1:]):
            segmenter = self._in_language(part.style.language)
            new = segmenter._units(part, following)
            if new and not is_spoken(new[0].text):
                before = units or found
                if before:
                    before[-1] = segmenter._with_marks(
                        before[-1], new[0].text, glued and not part.text[0].isspace()
                    )
                else:
                    unspoken = (unspoken + " " + new[0].text).strip()
                new = []
            if new and unspoken:
                new[0] = replace(new[0], text=unspoken + " " + new[0].text)
                unspoken = Traced("")
            units += new
            glued = part.pause is None and not part.text[-1:].isspace()
            if part.pause is None and following is not None and following.style == part.style:
                continue
            grouped = segmenter._grouped(units, first=not found)
            found += [replace(segment, style=part.style) for segment in grouped]
            units = []
            if found:
                found[-1] = replace(found[-1], pause=together(found[-1].pause, part.pause or 0.0))
            else:
                silence = together(silence, part.pause or 0.0)
        if unspoken:
            return [Segment(unspoken, silence, "paragraph")]
        if not found and all(part.pause is None for part in parts):
            raise ValueError("there is no text to speak")
        return [Segment(Traced(""), silence, "cut"), *found] if silence or not found else found

    def _respelled(self, part: Passage) -> Passage:
        """Before sentences are found, since a phrase may hold a full stop."""
        if self.lexicon is None:
            return part
        language = part.style.language or self.language
        return replace(part, text=self.lexicon.applied(part.text, language))

    def _with_marks(self, segment: Segment, marks: Traced, glued: bool) -> Segment:
        """A segment and what is not spoken after it, where both fit in one."""
        text = segment.text + ("" if glued else " ") + marks
        if self._measure(text) > 1:
            return segment
        ends = _natural_end(text) if segment.ends == "cut" else segment.ends
        return replace(segment, text=text, ends=ends)

    def _in_language(self, language: str | None) -> "Segmenter":
        if language is None or language == self.language:
            return self
        if language not in self.others:
            self.others[language] = replace(self, language=language, sizes={}, others={})
        return self.others[language]

    def _measure(self, text: str) -> float:
        """The share of a segment that the text fills; 1 is full."""
        size = self.sizes.get(text)
        if size is None:
            size = speaking_time(text) / self.limit
            if self.count is not None and self._may_have_more(text, size * self.max_tokens):
                size = max(size, self.count(text, self.language) / self.max_tokens)
            self.sizes[text] = size
        return size

    def _may_have_more(self, text: str, tokens: float) -> bool:
        if self.count_at_most is None:
            return True
        return self.count_at_most(text, self.language) > tokens

    def _units(self, part: Passage, following: Passage | None) -> list[Segment]:
        """The sentences of a part, each with spoken text unless none has any."""
        units: list[Segment] = []
        for texts, ends_paragraph in _spoken_runs(sentences(part.text, self.language)):
            ends = "paragraph" if ends_paragraph else "sentence"
            units.append(Segment(self._written_out(joined(texts, " ")), 0.0, ends))
        if units and following is not None:
            units[-1] = replace(units[-1], ends=_end(part, following, units[-1].text))
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


def _end(part: Passage, following: Passage, text: str) -> str:
    """How a part ends that another follows; text: its last sentence."""
    if part.ends:
        return part.ends
    if part.pause is not None and _paragraph_between(part.text, following.text):
        return "paragraph"
    ends = _natural_end(text)
    return "clause" if ends == "cut" and part.pause is not None else ends


def _natural_end(text: str) -> str:
    """What ends with a text, by its last marks."""
    if SENTENCE_END.search(text):
        return "sentence"
    return "clause" if CLAUSE_END.search(text) else "cut"


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
