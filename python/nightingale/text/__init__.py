"""Text to what T3 reads: normalised, split into segments, tokenised."""

from .open_tokenizer import open_tokenizer
from .punctuation import normalise_punctuation
from .segment import Segment
from .segments import prepare
from .tokenizer import Tokenizer

__all__ = ["Segment", "Tokenizer", "normalise_punctuation", "open_tokenizer", "prepare"]
