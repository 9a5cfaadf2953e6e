"""What a text is split into."""

from dataclasses import dataclass

from .traced import Traced


@dataclass(frozen=True)
class Segment:
    """Text that is spoken as one utterance, and the pause after it.

    Text is empty where a pause has no text before it: at the start, or when there is no text.
    """

    text: Traced  # for the tokenizer
    pause: float  # seconds of silence after it, as marked
    ends: str  # at the end of a "sentence", "clause" or "paragraph", or at a "cut" within a clause
    unspoken: tuple[str, ...] = ()  # characters that the model cannot speak, left out of the text
