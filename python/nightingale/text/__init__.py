"""Text to what T3 reads: normalised, cut into pieces, tokenised."""

from .tokenizer import Tokenizer, normalise_punctuation

__all__ = ["Tokenizer", "normalise_punctuation"]
