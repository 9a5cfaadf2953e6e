"""Stand-ins for the packages that fetch models: deterministic, the same for both sides.

They come in through sys.modules, so that either side runs its own code up to the package's call.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType

POINTS = "\u05b0\u05b4\u05b7\u05bc"
VOWELS = "\u0430\u043e\u0435"
ACUTE = "\u0301"


class Segmenter:
    """spacy_pkuseg.pkuseg: words of one to three characters, by what they begin with."""

    def cut(self, text: str) -> list[str]:
        words = []
        for run in text.split():
            while run:
                length = 1 + ord(run[0]) % 3
                words.append(run[:length])
                run = run[length:]
        return words


class Dicta:
    """dicta_onnx.Dicta: a point after each Hebrew letter."""

    def __init__(self, model_path: str | None = None) -> None:
        self.model_path = model_path

    def add_diacritics(self, text: str) -> str:
        return "".join(
            character + POINTS[ord(character) % 4] if "א" <= character <= "ת" else character
            for character in text
        )


class Stresser:
    """russian_text_stresser.text_stresser.RussianTextStresser: marks a vowel a word."""

    def stress_text(self, text: str) -> str:
        return " ".join(self._stressed(word) for word in text.split(" "))

    def _stressed(self, word: str) -> str:
        at = next((i for i, letter in enumerate(word) if letter in VOWELS), None)
        return word if at is None else word[: at + 1] + ACUTE + word[at + 1 :]


def modules() -> dict[str, ModuleType]:
    """The stand-ins by the names they are imported under."""
    contents = {
        "spacy_pkuseg": {"pkuseg": Segmenter},
        "dicta_onnx": {"Dicta": Dicta},
        "russian_text_stresser": {},
        "russian_text_stresser.text_stresser": {"RussianTextStresser": Stresser},
    }
    made = {}
    for name, attributes in contents.items():
        made[name] = ModuleType(name)
        vars(made[name]).update(attributes)
    return made


@contextmanager
def installed() -> Iterator[None]:
    """With the stand-ins importable, whether the packages themselves are there or not."""
    # Not mock.patch.dict, which would also forget the modules imported meanwhile.
    with ExitStack() as stack:
        for name, module in modules().items():
            stack.callback(_restore, name, sys.modules.get(name))
            sys.modules[name] = module
        yield


def _restore(name: str, module: ModuleType | None) -> None:
    if module is None:
        del sys.modules[name]
    else:
        sys.modules[name] = module
