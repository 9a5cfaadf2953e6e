"""Start and end of each word, from the position of T3's attention in the text."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from .text.traced import Traced


class Word(NamedTuple):
    """A word as it is spoken, when, and what it stands for in the input."""

    text: str
    start: float  # seconds
    end: float
    source_start: int  # the first character of the input that it comes from
    source_end: int  # one past the last

    def later(self, seconds: float, characters: int = 0) -> "Word":
        """The word in speech and text of which its own are a later part."""
        start, end = round(self.start + seconds, 3), round(self.end + seconds, 3)
        source = (self.source_start + characters, self.source_end + characters)
        return Word(self.text, start, end, *source)


TOKENS_PER_SECOND = 25


class WordTimes:
    """The times of one segment's words, from the text position of each speech token.

    words: what is spoken; word_of: for each text token, which word it is part of.
    """

    def __init__(self, words: Sequence[Traced], word_of: Sequence[int], speed: float = 1.0) -> None:
        self._words = words
        self._word_of = word_of
        self._seconds = 1 / (TOKENS_PER_SECOND * speed)  # of a speech token
        self._tokens = 0  # speech tokens so far
        self._starts: list[int] = []  # the speech token that each word begins with
        self._given = 0  # words
        self._end = 0.0  # of the last one

    def add_token(self, position: int) -> None:
        """One more speech token, at this text token, the start token included; -1: unknown."""
        if position > 0 and self._word_of:
            word = self._word_of[min(position, len(self._word_of)) - 1]
            while len(self._starts) <= word:
                self._starts.append(self._tokens)
        self._tokens += 1

    def set_positions(self, positions: Sequence[int]) -> None:
        """The text tokens of all speech tokens so far, in place of what was known."""
        self._tokens, self._starts = 0, []
        for position in positions:
            self.add_token(position)

    def take(self, until: float) -> list[Word]:
        """The words, not given before, that have ended by this time, in the sentence's seconds."""
        ended = [bounds for bounds in self._bounds(self._starts) if bounds[1] <= until]
        return self._give(ended)

    def take_rest(self, end: float) -> list[Word]:
        """The words left when the sentence ends at this time."""
        bounds = self._bounds([*self._starts, max(self._tokens, 1 + max(self._starts, default=0))])
        return self._give([(min(start, end), min(stop, end)) for start, stop in bounds])

    def _give(self, bounds: list[tuple[float, float]]) -> list[Word]:
        given, self._given = self._given, max(self._given, len(bounds))
        words = zip(self._words[given:], bounds[given:], strict=False)
        found = []
        for word, (start, end) in words:
            # Positions that have changed since must not lead into a word that was given.
            start = max(start, self._end)
            self._end = max(start, end)
            found.append(Word(str(word), start, self._end, *word.source))
        return found

    def _bounds(self, starts: list[int]) -> list[tuple[float, float]]:
        """Start and end of all words before the last start; those begun at once share the time."""
        bounds: list[tuple[float, float]] = []
        begin = 0
        for i, start in enumerate(starts):
            if start > starts[begin]:
                share = (start - starts[begin]) / (i - begin)
                edges = [(starts[begin] + k * share) * self._seconds for k in range(i - begin + 1)]
                bounds += pairwise(edges)
                begin = i
        return bounds
