"""GPT-2's three tokenizer files with contents of our own, and the tags of Turbo and Nano."""

from __future__ import annotations

import json
from pathlib import Path

from nightingale.text.byte_level import ADDED_TOKENS, END_OF_TEXT, MERGES, VOCABULARY
from nightingale.text.tags import SOUNDS

# The official added_tokens.json has these names; their order is not published anywhere else.
STYLES = (
    "[whispering]",
    "[angry]",
    "[fear]",
    "[surprised]",
    "[crying]",
    "[happy]",
    "[sarcastic]",
    "[dramatic]",
    "[narration]",
    "[advertisement]",
)
TAGS = (*SOUNDS, *STYLES)
OFFICIAL_SIZE = 50276  # of the vocabulary, tags included
_PRINTABLE = (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100))
_SPACE = "\u0120"  # what stands for the byte 32


def write_byte_level(folder: Path, size: int = OFFICIAL_SIZE) -> None:
    """Writes vocab.json, merges.txt and added_tokens.json; size: of all of them together."""
    merges = _merges()
    tokens = [*_byte_characters(), *(left + right for left, right in merges)]
    fillers = size - len(tokens) - 1 - len(TAGS)
    if fillers < 0:
        raise ValueError(f"a byte-level vocabulary has {size - fillers} tokens at least")
    tokens += [*(f"<filler {i}>" for i in range(fillers)), END_OF_TEXT]
    lines = ["#version: 0.2", *(f"{left} {right}" for left, right in merges)]
    _write(folder / VOCABULARY, json.dumps({token: i for i, token in enumerate(tokens)}))
    _write(folder / MERGES, "\n".join(lines) + "\n")
    _write(folder / ADDED_TOKENS, json.dumps({tag: len(tokens) + i for i, tag in enumerate(TAGS)}))


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _byte_characters() -> list[str]:
    """GPT-2's 256 characters: printable bytes as they are, the others from U+0100 on."""
    return [*map(chr, _PRINTABLE), *(chr(0x100 + i) for i in range(256 - len(_PRINTABLE)))]


def _merges() -> list[tuple[str, str]]:
    """Pairs of letters, then syllables at the start of a word."""
    pairs = [(consonant, vowel) for vowel in "aeiou" for consonant in "bdhlmnrst"]
    starts = [(_SPACE, letter) for letter in "abcdefghilmnoprstw"]
    return pairs + starts + [(_SPACE + "t", "he"), (_SPACE + "a", "n"), ("l", "lo")]
