"""What the text of some languages goes through before the tokenizer reads it."""

from __future__ import annotations

from pathlib import Path

from .chinese import Chinese
from .hebrew import hebrew
from .japanese import to_kana
from .korean import to_jamo
from .packages import FrontEnd
from .russian import add_stress

__all__ = ["FrontEnd", "front_ends"]


def front_ends(cangjie: Path | None = None, dicta: Path | None = None) -> dict[str, FrontEnd]:
    """Front-ends by language code; a language that is not among them needs none.

    Each takes lower-case text in NFKD. cangjie: the checkpoint's table, which Chinese needs; dicta:
    the model of Hebrew's diacritics.
    """
    return {
        "he": hebrew(dicta),
        "ja": to_kana,
        "ko": to_jamo,
        "ru": add_stress,
        "zh": Chinese(cangjie),
    }
