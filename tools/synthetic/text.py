"""A tokenizer and a Cangjie table in the official formats, with contents of our own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

KEYS = "abcdefghijklmnopqrstuvwxyz"
GLYPHS = (
    (0x3400, 0x34FF),  # extension A
    (0x4E00, 0x5DFF),
    (0x8000, 0x80FF),
    (0x20000, 0x200FF),  # extension B
)
GLYPHS_PER_CODE = 4  # as some real codes are shared


def tokenizer_json(text_vocabulary: int, languages: Sequence[str]) -> dict[str, Any]:
    """A BPE tokenizer of our own in the official format and vocabulary size."""
    special = {"[STOP]": 0, "[UNK]": 1, "[SPACE]": 2, "[START]": 255}
    tagged = [f"[{language}]" for language in languages]
    if languages:
        tagged += [f"[cj_{c}]" for c in "abcdefghijklmnopqrstuvwxyz0123456789."]
    merges = _merges()
    characters = _characters(MULTILINGUAL_SCRIPTS if languages else ENGLISH_SCRIPTS)
    tokens = characters + [left + right for left, right in merges] + tagged
    free_ids = (i for i in range(text_vocabulary) if i not in special.values())
    vocabulary = special | dict(zip(tokens, free_ids, strict=False))
    if len(vocabulary) != len(special) + len(tokens):
        raise ValueError(f"{len(tokens)} tokens do not fit in {text_vocabulary} ids")
    vocabulary |= {f"[FILLER{i}]": i for i in free_ids}
    added = sorted((vocabulary[token], token) for token in [*special, *tagged])
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": i,
                "special": True,
                "content": token,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
            }
            for i, token in added
        ],
        "normalizer": None,
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None,
        "decoder": None,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": "[UNK]",
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "vocab": dict(sorted(vocabulary.items(), key=lambda item: item[1])),
            "merges": [f"{left} {right}" for left, right in merges],
        },
    }


# Fixed ranges, not Python's Unicode tables, which grow with each version.
ENGLISH_SCRIPTS = (
    (0x21, 0x7E),  # ASCII
    (0xA1, 0xFF),  # Latin-1
    (0x2010, 0x201F),  # dashes and quotation marks
)
MULTILINGUAL_SCRIPTS = (
    *ENGLISH_SCRIPTS,
    (0x100, 0x17F),  # Latin Extended-A
    (0x300, 0x345),  # combining marks, which NFKD leaves behind
    (0x386, 0x3CE),  # Greek
    (0x400, 0x45F),  # Cyrillic
    (0x5B0, 0x5F4),  # Hebrew
    (0x60C, 0x6D5),  # Arabic
    (0x900, 0x97F),  # Devanagari
    (0x1100, 0x11FF),  # Hangul jamo
    (0x3001, 0x3002),  # ideographic comma and full stop
    (0x3041, 0x30FE),  # hiragana and katakana
    (0xFF01, 0xFF01),  # full-width ! , ?
    (0xFF0C, 0xFF0C),
    (0xFF1F, 0xFF1F),
)


def _characters(scripts: tuple[tuple[int, int], ...]) -> list[str]:
    return [chr(code) for first, last in scripts for code in range(first, last + 1)]


def _merges() -> list[tuple[str, str]]:
    syllables = [(consonant, vowel) for vowel in "aeiou" for consonant in "bdhklmnrst"]
    closed = [(consonant + vowel, "n") for consonant, vowel in syllables if vowel in "aei"]
    return syllables + closed


def cangjie_table() -> list[str]:
    """Lines of glyph, tab and code; some glyphs come twice, some lines have a note."""
    glyphs = [chr(code) for first, last in GLYPHS for code in range(first, last + 1)]
    lines = [f"{glyph}\t{_code(i // GLYPHS_PER_CODE)}" for i, glyph in enumerate(glyphs)]
    again = [f"{glyph}\t{_code(i)}\t[O]" for i, glyph in enumerate(glyphs) if i % 50 == 7]
    return lines + again


def _code(number: int) -> str:
    """One to three keys, another for every number."""
    keys = KEYS[number % len(KEYS)]
    while number >= len(KEYS):
        number = number // len(KEYS) - 1
        keys += KEYS[number % len(KEYS)]
    return keys
