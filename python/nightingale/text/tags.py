"""Tags of a model, such as [laugh]: each is one token of its text, a sound or a style."""

import re
from collections.abc import Sequence

from .characters import FIRST_STAND_IN, STAND_INS
from .traced import Traced

# The sounds among the tags of Turbo and Nano. Their other tags are styles of delivery.
SOUNDS = (
    "[laugh]",
    "[chuckle]",
    "[gasp]",
    "[cough]",
    "[sigh]",
    "[groan]",
    "[sniff]",
    "[shush]",
    "[clear throat]",
)
_STAND_IN = re.compile(f"[{STAND_INS}]")
_UNKNOWN = "\ufffd"


class Tags:
    """What keeps tags whole while a text is split and written out: one character for each.

    Rules see a character that is no letter and no mark, so that nothing changes it, and nothing is
    cut within it. It comes from all of its tag in the source.
    """

    def __init__(self, tags: Sequence[str] = ()) -> None:
        self.names = tuple(tags)
        longest_first = sorted(self.names, key=len, reverse=True)
        either = "|".join(map(re.escape, longest_first)) or r"(?!)"
        self._pattern = re.compile(either)
        # What stands between white space and tags, and the tags.
        self.words = re.compile(rf"(?P<tag>{either})|(?:(?!{either})\S)+")
        self._stand_ins = {tag: chr(FIRST_STAND_IN + i) for i, tag in enumerate(self.names)}
        self._tags = {character: tag for tag, character in self._stand_ins.items()}

    @property
    def sounds(self) -> tuple[str, ...]:
        return tuple(tag for tag in SOUNDS if tag in self._stand_ins)

    @property
    def styles(self) -> tuple[str, ...]:
        return tuple(tag for tag in self.names if tag not in SOUNDS)

    def hidden(self, text: Traced) -> Traced:
        """The text with one character in place of each tag."""
        if not self.names:
            return text
        known = text.sub(_STAND_IN, _UNKNOWN)
        return known.sub(self._pattern, lambda found: self._stand_ins[found[0]])

    def shown(self, text: Traced) -> Traced:
        """What `hidden` was given, as far as it is still there."""
        if not self.names:
            return text
        return text.sub(_STAND_IN, lambda found: self._tags[found[0]])
