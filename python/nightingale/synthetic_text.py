"""A made-up Cangjie table in the official format, for tests: its codes spell no real glyph."""

from __future__ import annotations

KEYS = "abcdefghijklmnopqrstuvwxyz"
GLYPHS = (
    (0x3400, 0x34FF),  # extension A
    (0x4E00, 0x5DFF),
    (0x8000, 0x80FF),
    (0x20000, 0x200FF),  # extension B
)
SHARING = 4  # glyphs of one code, as some real ones are


def cangjie_table() -> list[str]:
    """Lines of glyph, tab and code; some glyphs come twice, some lines have a note."""
    glyphs = [chr(code) for first, last in GLYPHS for code in range(first, last + 1)]
    lines = [f"{glyph}\t{_code(i // SHARING)}" for i, glyph in enumerate(glyphs)]
    again = [f"{glyph}\t{_code(i)}\t[O]" for i, glyph in enumerate(glyphs) if i % 50 == 7]
    return lines + again


def _code(number: int) -> str:
    """One to three keys, another for every number."""
    keys = KEYS[number % len(KEYS)]
    while number >= len(KEYS):
        number = number // len(KEYS) - 1
        keys += KEYS[number % len(KEYS)]
    return keys
