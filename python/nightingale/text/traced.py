"""Text that knows which part of its source each of its characters comes from."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable
from typing import Any, SupportsIndex, overload


class Traced(str):
    """A string with the source's positions of its characters.

    Slices, sums and the methods below keep them; other methods of str give plain strings. What is
    put in between has no width: it begins and ends where the character before it ends.
    """

    __slots__ = ("ends", "starts")

    starts: array[int]
    ends: array[int]

    def __new__(
        cls, text: str, starts: array[int] | None = None, ends: array[int] | None = None
    ) -> Traced:
        """Without positions, the text is the source itself."""
        made = super().__new__(cls, text)
        made.starts = array("l", range(len(text))) if starts is None else starts
        made.ends = array("l", range(1, len(text) + 1)) if ends is None else ends
        return made

    @property
    def source(self) -> tuple[int, int]:
        """Where what it was made of begins and ends in the source."""
        return (min(self.starts), max(self.ends)) if self else (0, 0)

    @overload
    def __getitem__(self, index: SupportsIndex) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Traced: ...
    def __getitem__(self, index: Any) -> str:
        text = super().__getitem__(index)
        if isinstance(index, slice):
            return Traced(text, self.starts[index], self.ends[index])
        return text

    def __add__(self, other: str) -> Traced:
        added = other if isinstance(other, Traced) else placed(other, *self._edge(-1))
        return Traced(super().__add__(other), self.starts + added.starts, self.ends + added.ends)

    def __radd__(self, other: str) -> Traced:
        return placed(other, *self._edge(0)) + self

    def strip(self, characters: str | None = None) -> Traced:
        return self.lstrip(characters).rstrip(characters)

    def lstrip(self, characters: str | None = None) -> Traced:
        return self[len(self) - len(super().lstrip(characters)) :]

    def rstrip(self, characters: str | None = None) -> Traced:
        return self[: len(super().rstrip(characters))]

    def replace(self, old: str, new: str, count: SupportsIndex = -1) -> Traced:
        most = count.__index__()
        if most == 0 or old not in self:
            return self
        return self.sub(re.compile(re.escape(old)), lambda _: new, max(0, most))

    def replaced_by(self, text: str) -> Traced:
        """Another text that all of this one became."""
        return placed(text, *self.source)

    def words(self) -> list[Traced]:
        """What stands between white space: `split()`."""
        return [self[found.start() : found.end()] for found in re.finditer(r"\S+", self)]

    def parts(self, separator: str) -> list[Traced]:
        """`split(separator)`."""
        ends = [found.start() for found in re.finditer(re.escape(separator), self)]
        starts = [0, *(end + len(separator) for end in ends)]
        return [self[i:j] for i, j in zip(starts, [*ends, len(self)], strict=True)]

    def collapsed(self) -> Traced:
        """With one space between two words, and none around them."""
        return joined(self.words(), " ")

    def sub(
        self,
        pattern: re.Pattern[str],
        spoken: str | Callable[[re.Match[str]], str],
        count: int = 0,
    ) -> Traced:
        """`pattern.sub`: what is put in comes from all that it replaces, but for the words that
        both begin or end with."""
        parts: list[Traced] = []
        end = 0
        for number, found in enumerate(pattern.finditer(self), 1):
            text = found.expand(spoken) if isinstance(spoken, str) else spoken(found)
            parts += [self[end : found.start()], self._replaced(found, text)]
            end = found.end()
            if number == count:
                break
        return joined([*parts, self[end:]]) if parts else self

    def _replaced(self, found: re.Match[str], text: str) -> Traced:
        old = self[found.start() : found.end()]
        if old == text:
            return old
        if not old:
            return placed(text, *self[: found.start()]._edge(-1))
        head = _shared_words(old, text)
        tail = _shared_words(old[head:][::-1], text[head:][::-1])
        changed = old[head : len(old) - tail] or old
        put_in = placed(text[head : len(text) - tail], *changed.source)
        return joined([old[:head], put_in, old[len(old) - tail :]])

    def _edge(self, index: int) -> tuple[int, int]:
        """The position at which something is put in: after the last character, or before the
        first."""
        if not self:
            return 0, 0
        at = self.ends[index] if index else self.starts[index]
        return at, at


def traced(text: str) -> Traced:
    """A text with its positions; where it has none, it is the source itself."""
    return text if isinstance(text, Traced) else Traced(text)


def joined(parts: Iterable[str], separator: str = "") -> Traced:
    """`separator.join(parts)`; plain ones begin and end where the part before them ends."""
    texts: list[str] = []
    starts, ends = array("l"), array("l")
    for number, part in enumerate(parts):
        added = [part] if number == 0 or not separator else [separator, part]
        for text in added:
            if not isinstance(text, Traced):
                at = ends[-1] if ends else 0
                text = placed(text, at, at)
            texts.append(text)
            starts += text.starts
            ends += text.ends
    return Traced("".join(texts), starts, ends)


def placed(text: str, start: int, end: int) -> Traced:
    """A text that all of this part of the source became."""
    return Traced(text, array("l", [start]) * len(text), array("l", [end]) * len(text))


def _shared_words(first: str, second: str) -> int:
    """How many characters of whole words both texts begin with."""
    pairs = zip(first, second, strict=False)
    end = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(first), len(second)))
    while end and not (_between_words(first, end) and _between_words(second, end)):
        end -= 1
    return end


def _between_words(text: str, at: int) -> bool:
    return at == len(text) or not (text[at - 1].isalnum() and text[at].isalnum())
