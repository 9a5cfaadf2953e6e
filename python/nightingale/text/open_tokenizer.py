"""The tokenizer of a checkpoint, by its files."""

from ..checkpoint import Checkpoint
from .byte_level import VOCABULARY, ByteLevelTokenizer
from .tokenizer import Tokenizer


def open_tokenizer(files: Checkpoint) -> Tokenizer:
    """Byte-level BPE where the checkpoint has a vocab.json, else a tokenizer file of letters."""
    if files.tokenizer.name == VOCABULARY:
        return ByteLevelTokenizer(files.tokenizer, files.languages)
    return Tokenizer(
        files.tokenizer,
        files.languages,
        files.family.multilingual,
        files.cangjie,
        files.dicta,
        files.settings.text_preprocessing,
    )
