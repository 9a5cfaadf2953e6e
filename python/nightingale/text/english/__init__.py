"""English text normalization: numbers, dates, money and abbreviations become words."""

from ..spoken.engine import Normalizer
from . import abbreviations, calendar, identifiers, numbers, quantities, symbols

__all__ = ["english", "expand"]

_GREEK_NEEDED = "[α-ωΔΘΛΠΣΦΨΩ]"
_NUMBER = "[0-9¼-¾⅐-⅞²³⁰¹⁴-⁹]"


def english() -> Normalizer:
    """The rules in their order, each set with what a text must hold for any of them to apply."""
    return Normalizer(
        (
            (r"[@#]|\.\w|://|\]\(|(?:^|[\s(\"'“~.])/\w", identifiers.WEB_RULES),
            (_GREEK_NEEDED, symbols.GREEK_RULES),
            (
                _NUMBER,
                numbers.GROUP_RULES | identifiers.RULES | symbols.BEFORE_NUMBERS | calendar.RULES,
            ),
            ("[A-Z.]|etc|vs|aka|ea", abbreviations.RULES),
            (r"[a-z]\s(?:[kcm][mg]|ml|mL|[€£$])", quantities.LONE_RULES),
            (_NUMBER, quantities.MONEY_RULES | calendar.DECADE_RULES | quantities.UNIT_RULES),
            (r"[IVXLC]\b", numbers.ROMAN_RULES),
            (_NUMBER, calendar.YEAR_RULES | numbers.RULES | identifiers.MODEL_RULES),
            ("[&@#+=<>≤≥≠≈±×÷∕→%§©/√∛∑∈∝∞−]", symbols.RULES),
            ("[A-Z]{2}", abbreviations.ACRONYM_RULES),
        )
    )


expand = english()
