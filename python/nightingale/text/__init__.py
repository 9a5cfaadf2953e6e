"""Text to what T3 reads: normalised, split into segments, tokenised."""

from .segments import Segment, prepare
from .tokenizer import Tokenizer, normalise_punctuation

__all__ = ["Segment", "Tokenizer", "normalise_punctuation", "prepare"]
