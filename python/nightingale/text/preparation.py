"""Sentences to pieces: long ones are cut, short ones merged."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from unicodedata import category

from .balance import balanced
from .cuts import cut
from .pauses import split_pauses
from .pieces import Piece
from .sentences import Sentence, sentences
from .speaking_time import speaking_time
from .spoken import is_spoken, shorten_runs

_COMFORTABLE = 0.6  # of a piece, up to which sentences are merged
_VERY_SHORT = 1.0  # seconds; a sentence below is better not said alone
_GAP = 0.3  # seconds between two sentences

_PARAGRAPH_AFTER = re.compile(r"\n[^\S\n]*\n\s*\Z")
_PARAGRAPH_BEFORE = re.compile(r"\A[^\S\n]*\n[^\S\n]*\n")
_TERMINATED = re.compile(r"[.．!?…‥。｡！？؟۔।॥׃‽\u037e][\"'”’»)\]」』）]*\Z")  # noqa: RUF001


@dataclass(frozen=True)
class Preparation:
    """How to make pieces of a text; see `prepare` for the settings."""

    language: str
    limit: float
    count: Callable[[str], int] | None
    max_tokens: int
    expand: bool
    sizes: dict[str, float] = field(default_factory=dict)  # counting tokens is not cheap

    def pieces(self, text: str) -> list[Piece]:
        parts = split_pauses(text)
        found: list[Piece] = []
        silence = 0.0  # before the first text
        unspoken = ""  # marks before the first text
        for i, (part, pause) in enumerate(parts):
            units = self._units(part, parts[i + 1][0] if i + 1 < len(parts) else None)
            if units and not is_spoken(units[0].text):
                if found:
                    joined = f"{found[-1].text} {units[0].text}"
                    if self._measure(joined) <= 1:
                        found[-1] = replace(found[-1], text=joined)
                else:
                    unspoken = f"{unspoken} {units[0].text}".strip()
                units = []
            if units:
                if unspoken:
                    units[0] = replace(units[0], text=f"{unspoken} {units[0].text}")
                    unspoken = ""
                found += self._grouped(units, first=not found)
            if found:
                found[-1] = replace(found[-1], pause=found[-1].pause + pause)
            else:
                silence += pause
        if unspoken:
            return [Piece(unspoken, silence, "paragraph")]
        if not found and len(parts) == 1:
            raise ValueError("there is no text to speak")
        return [Piece("", silence, "cut"), *found] if silence or not found else found

    def _measure(self, text: str) -> float:
        """How full the text makes a piece; 1 is full."""
        size = self.sizes.get(text)
        if size is None:
            size = speaking_time(text) / self.limit
            if self.count is not None:
                size = max(size, self.count(text) / self.max_tokens)
            self.sizes[text] = size
        return size

    def _units(self, part: str, following: str | None) -> list[Piece]:
        """The sentences between two marks, each with a sound unless none has one."""
        units: list[Piece] = []
        for texts, ends_paragraph in _spoken_runs(sentences(part, self.language)):
            ends = "paragraph" if ends_paragraph else "sentence"
            units.append(Piece(self._written_out(" ".join(texts)), 0.0, ends))
        if units and following is not None and not _paragraph_between(part, following):
            ends = "sentence" if _TERMINATED.search(units[-1].text) else "clause"
            units[-1] = replace(units[-1], ends=ends)
        return units

    def _written_out(self, sentence: str) -> str:
        if self.expand and self.language == "en":
            from .english import expand

            sentence = expand(sentence)
        return " ".join(shorten_runs(sentence).split())

    def _grouped(self, units: list[Piece], first: bool) -> Iterator[Piece]:
        """Pieces from sentences: long ones cut, short ones of a paragraph merged."""
        paragraph: list[Piece] = []
        for unit in units:
            *firsts, (last, _) = cut(unit.text, self.language, self._measure)
            paragraph += [
                Piece(text, 0.0, "clause" if clause else "cut") for text, clause in firsts
            ]
            paragraph.append(replace(unit, text=last))
            if unit.ends == "paragraph" or unit is units[-1]:
                yield from self._merged(paragraph, first)
                paragraph, first = [], False

    def _merged(self, units: list[Piece], first: bool) -> Iterator[Piece]:
        gap, short = _GAP / self.limit, _VERY_SHORT / self.limit
        sizes = [self._measure(unit.text) + gap for unit in units]

        def fits(total: float, largest: float) -> bool:
            return total <= _COMFORTABLE or (total <= 1 and total - largest <= short + gap)

        # The first piece decides when the first sound comes, so it is one sentence, but for very
        # short ones at its side.
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
        for end in balanced(rest, [0.0] * len(rest), fits):
            yield _joined(units[start : lead + end])
            start = lead + end


def _spoken_runs(found: Iterable[Sentence]) -> Iterator[tuple[list[str], bool]]:
    """Sentences with those that have no sound joined to the one before, or the first one after."""
    texts: list[str] = []
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


def _joined(units: list[Piece]) -> Piece:
    text = units[0].text
    for unit in units[1:]:
        east_asian = "\u3000" <= text[-1] <= "\u9fff" or "\uff00" <= text[-1] <= "\uffef"
        if category(text[-1])[0] in "LMN":  # a list item, a heading
            text += "。" if east_asian else "."
        text += unit.text if east_asian and unit.text[0] > "\u3000" else f" {unit.text}"
    return replace(units[-1], text=text)
