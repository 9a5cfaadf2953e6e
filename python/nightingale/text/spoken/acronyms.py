"""Acronyms: which are spelled, and the names of the letters."""

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache

from .engine import Rules

_VOWELS = frozenset("aeiouyáéíóúàèìòùâêîôûãõ")
# Consonants that a word can begin and end with; others make an acronym unpronounceable.
_ONSETS = frozenset(
    "bl br cl cr dr fl fr gl gr pl pr tr ch ph th st sc sp sch qu gn kr ps sm sn sl sw sr "
    "sh".split()
)
_CODAS = frozenset(
    "ns rs nt rt nd st ct rc rn rd lt nc rm ls ts ps ck ch th ng sc sk cks "
    "lf rf lk rk nk mp rl rb lm rp".split()
)
_EDGES = re.compile(r"([^aeiouy]*).*?([^aeiouy]*)\Z")
_WORD = re.compile(r"[^\W\d_]{2,}")

# Acronyms with vowels that every language spells.
_COMMON = (
    "USB URL URI UTF RSA DSA AES ASN API CPU GPU IP IBM ID IDE UID PID GID UUID EOF OS SO UI IA AI "
    "UTC HTML ISBN EXT OGG AVI ACPI EFI UEFI VGA HDMI CIA"
)


@lru_cache(maxsize=1)
def is_shouted(text: str) -> bool:
    """Whether a text is mostly in capitals, where they tell nothing about acronyms."""
    words: list[str] = _WORD.findall(text)
    capitals = sum(word.isupper() for word in words)
    return capitals >= 3 and capitals > 0.6 * len(words)


@dataclass(frozen=True)
class Letters:
    """The names of a language's letters, from a to z, and the acronyms with vowels it spells."""

    names: str
    spelled_words: str = ""
    said_words: str = ""  # acronyms that are words against the odds
    short_words: str = ""  # of two letters; others in capitals are initials

    @cached_property
    def _names(self) -> dict[str, str]:
        names = (name.replace("_", " ") for name in self.names.split())
        return dict(zip("abcdefghijklmnopqrstuvwxyz", names, strict=True))

    @cached_property
    def _spelled(self) -> frozenset[str]:
        return frozenset((*_COMMON.split(), *self.spelled_words.split()))

    @cached_property
    def _said(self) -> frozenset[str]:
        return frozenset(("JPEG", "MPEG", "JSON", *self.said_words.split()))

    @cached_property
    def _short(self) -> frozenset[str]:
        return frozenset(("ok", "do", "re", "mi", "fa", "la", "si", *self.short_words.split()))

    def spelled(self, letters: str) -> str:
        """Letter by letter."""
        return " ".join(self._names.get(letter, letter) for letter in letters.lower())

    def is_spelled(self, word: str) -> bool:
        """Whether the letters of a word are said one by one."""
        if not word.isascii():  # letters of another script have other vowels
            return False
        if not _VOWELS & set(word.lower()) or word in self._spelled:
            return True
        if len(word) == 2 and word.isupper():
            return word.lower() not in self._short
        return word.isupper() and len(word) <= 5 and not self._is_pronounceable(word)

    def _is_pronounceable(self, word: str) -> bool:
        edges = _EDGES.match(word.lower())
        if word in self._said or edges is None:
            return True
        onset, coda = edges.groups()
        return (len(onset) < 2 or onset in _ONSETS) and (len(coda) < 2 or coda in _CODAS)

    def rules(self) -> Rules:
        """Spells acronyms; in a text that is all in capitals, only those without a vowel."""

        def spoken(match: re.Match[str]) -> str:
            letters = match["letters"]
            if not self.is_spelled(letters):
                return match[0]
            if is_shouted(match.string) and _VOWELS & set(letters.lower()):
                return match[0]
            return self.spelled(letters) + (" " if match["joint"] else "")

        return {
            r"(?<![\w.@#])(?P<letters>[A-Z]{2,})s?(?![\w'’])(?P<joint>-(?=\w))?": spoken,
            # Letters by themselves with stops: "S.A.", "J.R.R."
            r"(?<![\w.])(?:[A-Z]\.){2,}(?!\w)": lambda match: (
                self.spelled(match[0].replace(".", ""))
                + ("." if match.end() == len(match.string) else "")
            ),
        }
