"""Text-to-speech alignment, from the teacher's phoneme durations.

Times are in speech tokens of 40 ms. The letters of a word share its time evenly; the punctuation
after it gets the pause until the next word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from .data import Row
from .masking import IGNORED

TEACHER_FRAMES_PER_TOKEN = 1.6  # the teacher's frames have 25 ms
PAUSES = frozenset(".,!?;:…—-'\"¿¡()“”«» ")  # phonemes that are silent
RELIABLE_WEIGHT, GUESSED_WEIGHT = 1.0, 0.1  # of a timing in the alignment loss


@dataclass(frozen=True)
class Timing:
    """Of a text that begins with the space before its first word."""

    starts: np.ndarray  # [text] float32: when each text token begins
    begin: float  # of the first sound
    end: float  # of the last sound
    last_word: int  # the text token that it begins with
    timing_weight: float


def align_text(
    is_space: np.ndarray,
    is_letter: np.ndarray,
    tokens: int,
    phonemes: str,
    durations: list[int] | None,
) -> Timing:
    """is_space, is_letter: [text] bool; tokens: speech tokens; durations: as in train.data.Row

    If the phonemes have another number of words than the text, or there are no durations, all
    letters share the time evenly and the timing gets the weight of a guess.
    """
    words = _text_words(is_space, is_letter)
    has_durations = durations is not None and len(durations) == len(phonemes) + 2
    spoken = spoken_words(phonemes, durations) if has_durations else []
    begin, end = (spoken[0][0], spoken[-1][1]) if spoken else (0.0, float(tokens))
    if not words or len(words) != len(spoken):
        starts = even_times(begin, end, len(is_space)).astype(np.float32)
        return Timing(starts, begin, end, words[-1][0] if words else 0, GUESSED_WEIGHT)
    # Alternately the letters and the punctuation of each word: first text token, and start time.
    places = [place for first, marks, _ in words for place in (first, marks)]
    times = [time for word in spoken for time in word]
    counts = np.diff(places, append=words[-1][2])
    duration = np.diff(times, append=end) / np.maximum(counts, 1)
    offset = np.arange(len(is_space)) - np.repeat(places, counts)
    starts = np.repeat(times, counts) + np.repeat(duration, counts) * offset
    return Timing(starts.astype(np.float32), begin, end, words[-1][0], RELIABLE_WEIGHT)


def even_times(begin: float, end: float, count: int) -> np.ndarray:
    """The starts of `count` equal parts of an interval."""
    return begin + (end - begin) / max(count, 1) * np.arange(count)


def _text_words(is_space: np.ndarray, is_letter: np.ndarray) -> list[tuple[int, int, int]]:
    """Of each word: its first token (the space), the first one of its punctuation, its end."""
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
        elif words:  # punctuation that stands alone belongs to the word before it
            words[-1] = (*words[-1][:2], stop)
            first = stop
    return words


def spoken_words(phonemes: str, durations: list[int]) -> list[tuple[float, float]]:
    """Start and end of each word, without its pauses."""
    boundaries = np.cumsum(durations) / TEACHER_FRAMES_PER_TOKEN  # [i]: the start of phoneme i
    words: list[tuple[float, float]] = []
    first = 0
    for word in phonemes.split(" "):
        sounds = [first + i for i, phoneme in enumerate(word) if phoneme not in PAUSES]
        if sounds:
            words.append((float(boundaries[sounds[0]]), float(boundaries[sounds[-1] + 1])))
        first += len(word) + 1
    return words


def frame_phonemes(
    frames: int,
    phonemes: int,
    durations: list[int] | None,
    frame: float = TEACHER_FRAMES_PER_TOKEN,
) -> np.ndarray | None:
    """The index of the phoneme in the middle of each frame, -1 in the silence around the speech.

    frame: its length in the teacher's frames, a speech token's by default. Returns None if the
    durations are missing or are not of so many phonemes.
    """
    if durations is None or len(durations) != phonemes + 2:
        return None
    boundaries = np.cumsum(durations)
    places = np.searchsorted(boundaries, (np.arange(frames) + 0.5) * frame, side="right")
    return np.where(places > phonemes, -1, places - 1)


def track_alignment(weights: np.ndarray) -> np.ndarray:
    """The text position of each speech token, by the rule of the core's alignment analyser.

    weights: [tokens, text], the mean of the alignment heads, with start and stop → [tokens]
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
    """The speech token at which each word is reached, by the rule of nightingale.words.

    is_space: [text] with start, tag and stop; places: [tokens] → [words]
    """
    word_of = np.cumsum(is_space)
    reached = np.maximum.accumulate(np.where(places > 0, word_of[places], -1))
    words = np.arange(word_of[-1] + 1)
    return np.searchsorted(reached, words, side="left")


class PhonemeVocabulary:
    """The phonemes of a corpus and their ids."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.inventory = "".join(sorted(set().union(" ", *(row.phonemes for row in rows))))
        self._ids = {phoneme: i for i, phoneme in enumerate(self.inventory)}
        self.silence = self._ids[" "]

    @property
    def count(self) -> int:
        return len(self.inventory)

    def labels(self, row: Row, frames: int, frame: float = TEACHER_FRAMES_PER_TOKEN) -> np.ndarray:
        """[frames] int16, of frames as in `frame_phonemes`; IGNORED if unknown"""
        places = frame_phonemes(frames, len(row.phonemes), row.durations, frame)
        if places is None:
            return np.full(frames, IGNORED, np.int16)
        ids = [*(self._ids[phoneme] for phoneme in row.phonemes), self.silence]
        return np.array(ids, np.int16)[places]
