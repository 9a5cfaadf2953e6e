"""Applies rules of expansion to a text until nothing changes."""

import re
from collections.abc import Callable, Iterable
from functools import cached_property

from ..traced import Traced, joined, traced

Spoken = Callable[[re.Match[str]], str] | str
# By pattern, in their order; a replacement is what `re.sub` takes.
Rules = dict[str, Spoken]

_MOST_ROUNDS = 8
# [pause 500ms], [laughter]: not text. A bracket that a link's address follows is text.
_TAG = re.compile(
    r"(\[\s*[Pp][Aa][Uu][Ss][Ee](?![a-zA-Z_])[^\[\]]*\](?!\()|\[[A-Za-z][A-Za-z _-]*\](?!\())"
)


class Stage:
    """Rules, and a pattern of what a text must hold for any of them to apply."""

    def __init__(self, needed: str, rules: Rules) -> None:
        self._sources = needed, rules

    @cached_property
    def needed(self) -> re.Pattern[str]:
        return re.compile(self._sources[0])

    @cached_property
    def rules(self) -> list[tuple[re.Pattern[str], Spoken]]:
        """Compiled when a text first needs them."""
        return [(re.compile(pattern), spoken) for pattern, spoken in self._sources[1].items()]


class Normalizer:
    """Replaces what is not spoken as it is written with words; other text is unchanged.

    Every change is a substitution of a rule, so that each word knows what it comes from.
    """

    def __init__(self, stages: Iterable[tuple[str, Rules]]) -> None:
        self._stages = [Stage(needed, rules) for needed, rules in stages]

    def __call__(self, text: str) -> Traced:
        text = traced(text)
        parts: list[Traced] = []
        end = 0
        for tag in _TAG.finditer(text):
            parts += [self._written_out(text[end : tag.start()]), text[tag.start() : tag.end()]]
            end = tag.end()
        return joined([*parts, self._written_out(text[end:])])

    def _written_out(self, text: Traced) -> Traced:
        # What one rule writes out can bare something to another: until nothing changes, so that
        # doing it twice is doing it once.
        for _ in range(_MOST_ROUNDS):
            before = text
            for stage in self._stages:
                if stage.needed.search(text):
                    for pattern, spoken in stage.rules:
                        text = text.sub(pattern, spoken)
            if text == before:
                break
        return text
