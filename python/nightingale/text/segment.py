"""What a text is split into."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from .traced import Traced


class Encoded(NamedTuple):
    """A text as T3 reads it, without start and stop."""

    ids: np.ndarray  # [n] int32
    words: list[Traced]
    word_of: list[int]  # for each token, which of the words it is in


@dataclass(frozen=True)
class Segment:
    """Text that is spoken as one utterance, and the pause after it.

    Text is empty where a pause has no text before it: at the start, or when there is no text.
    """

    text: Traced  # for the tokenizer
    pause: float  # seconds of silence after it, as marked
    ends: str  # at the end of a "sentence", "clause" or "paragraph", or at a "cut" within a clause
    unspoken: tuple[str, ...] = ()  # characters that the model cannot speak, left out of the text
    encoded: Encoded | None = field(default=None, compare=False, repr=False)  # `said`, in tokens

    @property
    def said(self) -> Traced:
        """The text; one that ends inside a clause gets a comma, so that the voice stays up."""
        inside = self.ends == "cut" and self.text[-1].isalnum()
        return self.text + "," if inside else self.text
