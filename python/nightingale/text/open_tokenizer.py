"""The tokenizer of a checkpoint, by its files."""

from ..checkpoint import Checkpoint
from ..family import GPT2
from .byte_level import ByteLevelTokenizer
from .tokenizer import Tokenizer


def open_tokenizer(files: Checkpoint) -> Tokenizer:
    """Byte-level BPE for a GPT-2 backbone, else a tokenizer file of letters."""
    if files.family.backbone == GPT2:
        return ByteLevelTokenizer(files.tokenizer, files.languages)
    return Tokenizer(
        files.tokenizer,
        files.languages,
        files.family.multilingual,
        files.cangjie,
        files.dicta,
        files.settings.text_preprocessing,
    )
