"""When each letter of a text is spoken, from how long the teacher took for each phoneme.

Times are in speech tokens of 40 ms. The letters of a word share its time evenly; the marks after
it have the pause until the next word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from .data import Row

FRAMES_A_TOKEN = 1.6  # the teacher's frames have 25 ms
PAUSES = frozenset(".,!?;:…—-'\"¿¡()“”«» ")  # phonemes that are silent
IGNORED = -100  # the number of what is not to be learned
TRUSTED, GUESSED = 1.0, 0.1  # how much a timing counts


@dataclass(frozen=True)
class Timing:
    """Of a text that begins with the space before its first word."""

    starts: np.ndarray  # [text] float32: when each text token begins
    begin: float  # of the first sound
    end: float  # of the last sound
    last_word: int  # the text token that it begins with
    trust: float


def time_text(
    is_space: np.ndarray,
    is_letter: np.ndarray,
    tokens: int,
    phonemes: str,
    durations: list[int] | None,
) -> Timing:
    """is_space, is_letter: [text] bool; tokens: speech tokens; durations: as train.data.Row has it.

    Where the phonemes' words are not those of the text, or there are no durations, all letters
    share the time and the timing counts as guessed.
    """
    words = _text_words(is_space, is_letter)
    known = durations is not None and len(durations) == len(phonemes) + 2
    spoken = spoken_words(phonemes, durations) if known else []
    begin, end = (spoken[0][0], spoken[-1][1]) if spoken else (0.0, float(tokens))
    if not words or len(words) != len(spoken):
        evenly = spread(begin, end, len(is_space))
        return Timing(evenly.astype(np.float32), begin, end, words[-1][0] if words else 0, GUESSED)
    # Letters and marks in turn: the first of each, and when it begins.
    places = [place for first, marks, _ in words for place in (first, marks)]
    times = [time for word in spoken for time in word]
    counts = np.diff(places, append=words[-1][2])
    pace = np.diff(times, append=end) / np.maximum(counts, 1)
    within = np.arange(len(is_space)) - np.repeat(places, counts)
    starts = np.repeat(times, counts) + np.repeat(pace, counts) * within
    return Timing(starts.astype(np.float32), begin, end, words[-1][0], TRUSTED)


def spread(begin: float, end: float, count: int) -> np.ndarray:
    """Where `count` equal parts of the time begin."""
    return begin + (end - begin) / max(count, 1) * np.arange(count)


def _text_words(is_space: np.ndarray, is_letter: np.ndarray) -> list[tuple[int, int, int]]:
    """Each word's first token, its space; the first of the marks after its letters; its end."""
    bounds = [*np.flatnonzero(is_space).tolist(), len(is_space)]
    letter = is_letter.tolist()
    words: list[tuple[int, int, int]] = []
    first = 0
    for _, stop in pairwise(bounds):
        marks = stop
        while marks > first and not letter[marks - 1]:
            marks -= 1
        if marks > first:
            words.append((first, marks, stop))
            first = stop
        elif words:  # marks that stand alone belong to the word before them
            words[-1] = (*words[-1][:2], stop)
            first = stop
    return words


def spoken_words(phonemes: str, durations: list[int]) -> list[tuple[float, float]]:
    """Start and end of each word's sound."""
    edges = np.cumsum(durations) / FRAMES_A_TOKEN  # edges[i] is where phoneme i begins
    words: list[tuple[float, float]] = []
    first = 0
    for word in phonemes.split(" "):
        sounds = [first + i for i, phoneme in enumerate(word) if phoneme not in PAUSES]
        if sounds:
            words.append((float(edges[sounds[0]]), float(edges[sounds[-1] + 1])))
        first += len(word) + 1
    return words


def heard_phonemes(
    parts: int, phonemes: int, durations: list[int] | None, each: float = FRAMES_A_TOKEN
) -> np.ndarray | None:
    """The number of the phoneme in the middle of each speech token, or of each of `parts` that last
    `each` of the teacher's frames; -1 in the silence around them.

    phonemes: how many the durations are of. None where they are of another count, or missing.
    """
    if durations is None or len(durations) != phonemes + 2:
        return None
    edges = np.cumsum(durations)
    places = np.searchsorted(edges, (np.arange(parts) + 0.5) * each, side="right")
    return np.where(places > phonemes, -1, places - 1)


def follow(weights: np.ndarray) -> np.ndarray:
    """Where the alignment analyser of the core takes each speech token to be in the text.

    weights: [tokens, text], of its heads on average, start and stop included → [tokens]
    """
    position = 0
    places = []
    for step, row in enumerate(weights):
        found = int(row[: step + 1].argmax())
        if -4 < found - position < 7:
            position = found
        places.append(position)
    return np.array(places)


def word_starts(is_space: np.ndarray, places: np.ndarray) -> np.ndarray:
    """The speech token at which each word is reached, as nightingale.word_times has it.

    is_space: [text] with start, tag and stop; places: [tokens] → [words]
    """
    word_of = np.cumsum(is_space)
    reached = np.maximum.accumulate(np.where(places > 0, word_of[places], -1))
    words = np.arange(word_of[-1] + 1)
    return np.searchsorted(reached, words, side="left")


class Phonemes:
    """Numbers of the phonemes of a corpus."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.inventory = "".join(sorted(set().union(" ", *(row.phonemes for row in rows))))
        self._numbers = {phoneme: i for i, phoneme in enumerate(self.inventory)}
        self.silence = self._numbers[" "]

    @property
    def count(self) -> int:
        return len(self.inventory)

    def heard(self, row: Row, parts: int, each: float = FRAMES_A_TOKEN) -> np.ndarray:
        """[parts] int16, of speech tokens or what lasts `each`; IGNORED where nothing is known"""
        places = heard_phonemes(parts, len(row.phonemes), row.durations, each)
        if places is None:
            return np.full(parts, IGNORED, np.int16)
        numbers = [*(self._numbers[phoneme] for phoneme in row.phonemes), self.silence]
        return np.array(numbers, np.int16)[places]
