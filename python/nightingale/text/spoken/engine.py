"""Applies rules of expansion to a text until nothing changes."""

import re
from collections.abc import Callable, Iterable
from functools import cached_property

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

    Every change is a substitution of a rule in `_apply`: there is no other place that edits text.
    """

    def __init__(self, stages: Iterable[tuple[str, Rules]]) -> None:
        self._stages = [Stage(needed, rules) for needed, rules in stages]

    def __call__(self, text: str) -> str:
        parts = _TAG.split(text)
        parts[::2] = map(self._written_out, parts[::2])
        return "".join(parts)

    def _written_out(self, text: str) -> str:
        # What one rule writes out can bare something to another: until nothing changes, so that
        # doing it twice is doing it once.
        for _ in range(_MOST_ROUNDS):
            before = text
            for stage in self._stages:
                if stage.needed.search(text):
                    for pattern, spoken in stage.rules:
                        text = self._apply(pattern, spoken, text)
            if text == before:
                break
        return text

    def _apply(self, pattern: re.Pattern[str], spoken: Spoken, text: str) -> str:
        return pattern.sub(spoken, text)
