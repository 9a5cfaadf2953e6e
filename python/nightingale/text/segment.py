"""What a text is split into."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from .traced import Traced


class Encoded(NamedTuple):
    """A text as T3 reads it, without start and stop."""

    ids: np.ndarray  # [n] int32
    words: list[Traced]
    word_of: list[int]  # for each token, which of the words it is in
    language: str  # as which it was read


@dataclass(frozen=True)
class Style:
    """How a part of a text is spoken where markup says it; the rest is as the options say."""

    language: str | None = None  # code; None: that of the text
    voice: Any = None  # a name, or what a name was resolved to; None: that of the text
    rate: float = 1.0  # multiplies the speed


PLAIN = Style()

# Seconds of silence after a segment that another follows, by how it ends.
GAPS = {"sentence": 0.2, "paragraph": 0.5, "clause": 0.08, "cut": 0.0}


@dataclass(frozen=True)
class Passage:
    """Text with one style, up to where markup ends a sentence, asks for a pause or changes the
    style."""

    text: Traced
    ends: str = ""  # a "sentence" or a "paragraph" ends with it; "": the text may go on
    pause: float | None = None  # seconds of silence after it; None: no pause was asked for
    style: Style = PLAIN


@dataclass(frozen=True)
class Segment:
    """Text that is spoken as one utterance, and the pause after it.

    Text is empty where a pause has no text before it: at the start, or when there is no text.
    """

    text: Traced  # for the tokenizer
    pause: float  # seconds of silence after it, as marked
    ends: str  # at the end of a "sentence", "clause" or "paragraph", or at a "cut" within a clause
    unspoken: tuple[str, ...] = ()  # characters that the model cannot speak, left out of the text
    style: Style = PLAIN
    encoded: Encoded | None = field(default=None, compare=False, repr=False)  # `said`, in tokens

    def silence(self, last: bool) -> float:
        """Seconds after it: the pause that was asked for, or a natural gap before the next."""
        gap = 0.0 if last or not self.text else GAPS[self.ends]
        return max(self.pause, gap)

    @property
    def said(self) -> Traced:
        """The text; one that ends inside a clause gets a comma, so that the voice stays up."""
        inside = self.ends == "cut" and self.text[-1].isalnum()
        return self.text + "," if inside else self.text
