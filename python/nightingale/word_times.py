"""Start and end of each word, from the position of T3's attention in the text."""

from collections.abc import Iterable, Sequence
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


def spoken_words(words: Sequence[Traced], times: Iterable[tuple[int, float, float]]) -> list[Word]:
    """Words with the times that the core has for them, by their numbers."""
    return [Word(str(words[i]), start, end, *words[i].source) for i, start, end in times]
