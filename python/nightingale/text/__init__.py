"""Text to what T3 reads: normalised, cut into pieces, tokenised."""

from .pieces import Piece, prepare
from .tokenizer import Tokenizer, normalise_punctuation

__all__ = ["Piece", "Tokenizer", "normalise_punctuation", "prepare"]
