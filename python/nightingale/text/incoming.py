"""Text that comes bit by bit: what of it can be said already."""

from __future__ import annotations

from .sentences import split_sentences

# Characters of the next sentence that settle where the last one ended: `"Really?" John asked.`
SETTLED = 16
LOOK_EVERY = 4  # characters: whoever types gives them one by one, and splitting takes a while


class IncomingText:
    """Gathers text until a sentence is complete, which takes the beginning of the next one."""

    def __init__(self, language: str = "en") -> None:
        self._language = language
        self._text = ""
        self._seen = 0  # characters when it was last split

    def __len__(self) -> int:
        return len(self._text)

    def add(self, text: str) -> str:
        """The text up to the last settled end of a sentence, taken out; "" where there is none."""
        self._text += text
        if len(self._text) - self._seen < LOOK_EVERY:
            return ""
        self._seen = len(self._text)
        found = split_sentences(self._text, self._language)
        last = found.pop() if found else ""
        while found and len(last) < SETTLED:
            last = found.pop() + last
        return self._take(_start_of(last, self._text)) if found else ""

    def rest(self) -> str:
        """All that has not been said."""
        return self._take(len(self._text))

    def _take(self, end: int) -> str:
        taken, self._text = self._text[:end], self._text[end:]
        self._seen = len(self._text)
        return taken


def _start_of(last: str, text: str) -> int:
    """Where the last sentences begin in a text: splitting changes nothing but white space."""
    remaining = sum(not character.isspace() for character in last)
    for position in range(len(text) - 1, -1, -1):
        remaining -= not text[position].isspace()
        if remaining == 0:
            return position
    return 0
