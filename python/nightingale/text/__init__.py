"""Text to what T3 reads: normalised, split into segments, tokenised."""

from .segment import Segment
from .segments import prepare
from .tokenizer import Tokenizer, normalise_punctuation

__all__ = ["Segment", "Tokenizer", "normalise_punctuation", "prepare"]
