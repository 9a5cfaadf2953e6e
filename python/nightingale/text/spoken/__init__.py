"""Text as it is spoken: numbers, dates, units and abbreviations written out in words."""

from collections.abc import Callable
from functools import cache
from importlib import import_module

from ...checkpoint import LANGUAGES
from ...language_tags import language_code
from ..lexicon import Lexicon, LexiconSource
from ..traced import Traced, traced
from .engine import Normalizer

__all__ = ["normalize", "written_out"]

# The module of each language and the function in it that makes its rules.
_MODULES = {
    "en": ("..english", "english"),
    "es": (".languages.spanish", "spanish"),
    "fr": (".languages.french", "french"),
    "it": (".languages.italian", "italian"),
    "pt": (".languages.portuguese", "portuguese"),
    "de": (".languages.germanic", "german"),
    "nl": (".languages.germanic", "dutch"),
    "da": (".languages.germanic", "danish"),
    "no": (".languages.germanic", "norwegian"),
    "sv": (".languages.germanic", "swedish"),
    "pl": (".languages.slavic", "polish"),
    "ru": (".languages.slavic", "russian"),
    "zh": (".languages.east_asian", "chinese"),
    "ja": (".languages.east_asian", "japanese"),
    "ko": (".languages.east_asian", "korean"),
    "ar": (".languages.semitic", "arabic"),
    "he": (".languages.semitic", "hebrew"),
    "fi": (".languages.others", "finnish"),
    "el": (".languages.others", "greek"),
    "hi": (".languages.others", "hindi"),
    "ms": (".languages.others", "malay"),
    "sw": (".languages.others", "swahili"),
    "tr": (".languages.others", "turkish"),
}


def normalize(text: str, language: str = "en", lexicon: LexiconSource | None = None) -> str:
    """The text as it will be spoken: numbers, dates, units and abbreviations in words.

    language: a code such as "es" or "es-ES". lexicon: respellings of words, as `generate` takes
    them. This is what `generate` does with each sentence.
    """
    if not isinstance(text, str):
        raise ValueError(f"text must be a string, not {type(text).__name__}")
    code = language_code(language) if isinstance(language, str) else ""
    if code not in LANGUAGES:
        raise ValueError(f"unknown language {language!r}; expected one of {', '.join(LANGUAGES)}")
    if (respellings := Lexicon.of(lexicon)) is not None:
        text = respellings.applied(text, code)
    return str(written_out(text, code))


def written_out(text: str, language: str) -> Traced:
    """What `normalize` gives; a language without rules keeps its text."""
    rules = _normalizer(language)
    return traced(text) if rules is None else rules(text)


@cache
def _normalizer(language: str) -> Normalizer | None:
    """The rules of a language, imported when they are first used; None if it has none."""
    if language not in _MODULES:
        return None
    module, name = _MODULES[language]
    make: Callable[[], Normalizer] = getattr(import_module(module, __name__), name)
    return make()
