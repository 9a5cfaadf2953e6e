"""Text that arrives in parts: which of its sentences are complete."""

from .sentences import split_sentences

# Characters of the next sentence that decide where the last one ended: `"Really?" John asked.`
LOOKAHEAD = 16
SPLIT_EVERY = 4  # characters: splitting takes a while, and typed text arrives one by one


class SentenceBuffer:
    """Collects text until a sentence is complete, which the start of the next one shows."""

    def __init__(self, language: str = "en") -> None:
        self._language = language
        self._text = ""
        self._seen = 0  # characters when it was last split

    def __len__(self) -> int:
        return len(self._text)

    def add(self, text: str) -> str:
        """Removes and returns the text up to the last complete sentence; "" where there is none."""
        self._text += text
        if len(self._text) - self._seen < SPLIT_EVERY:
            return ""
        self._seen = len(self._text)
        found = split_sentences(self._text, self._language)
        last = found.pop() if found else ""
        while found and len(last) < LOOKAHEAD:
            last = found.pop() + last
        return self._take(_start_of(last, self._text)) if found else ""

    def rest(self) -> str:
        """Removes and returns the remaining text."""
        return self._take(len(self._text))

    def _take(self, end: int) -> str:
        taken, self._text = self._text[:end], self._text[end:]
        self._seen = len(self._text)
        return taken


def _start_of(last: str, text: str) -> int:
    """The position of the last sentences in a text: splitting only changes white space."""
    remaining = sum(not character.isspace() for character in last)
    for position in range(len(text) - 1, -1, -1):
        remaining -= not text[position].isspace()
        if remaining == 0:
            return position
    return 0
