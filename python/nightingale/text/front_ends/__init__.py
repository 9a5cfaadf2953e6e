"""Language-specific conversions of text before it is tokenized."""

from pathlib import Path

from .diacritics import add_stress, hebrew
from .east_asian import Chinese, to_jamo, to_kana
from .packages import FrontEnd

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
