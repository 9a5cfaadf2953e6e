"""Text that arrives in parts: which of its sentences are complete."""

from .sentences import can_end_sentence, split_sentences

# Characters of the next sentence that decide where the last one ended: `"Really?" John asked.`
LOOKAHEAD = 16
# Splitting takes a while and typed text arrives one character after another, so that some must
# come before it is split again: this many, and this share of what there is, which makes the work
# proportional to the length of the text. Beyond the length of sentences the share is larger.
SPLIT_EVERY, SPLIT_SHARE = 4, 1 / 32
LONG, SPLIT_SHARE_BEYOND = 1000, 1 / 4


class SentenceBuffer:
    """Collects text until a sentence is complete, which the start of the next one shows."""

    def __init__(self, language: str = "en") -> None:
        self.language = language  # whose rules of sentences apply from here on
        self._text = ""
        self._next_split = SPLIT_EVERY  # characters that must be there
        self._can_end = False  # a sentence, somewhere in the text

    def __len__(self) -> int:
        return len(self._text)

    @property
    def text(self) -> str:
        """What has come and was not taken."""
        return self._text

    def add(self, text: str) -> str:
        """Adds text; then as `complete`."""
        self.hold(text)
        return self.complete()

    def hold(self, text: str) -> None:
        """Adds text that may wait."""
        self._text += text
        self._can_end = self._can_end or can_end_sentence(text, self.language)

    def complete(self) -> str:
        """Removes and returns the text up to the last complete sentence; "" where there is none."""
        if len(self._text) < self._next_split:
            return ""
        self._wait()
        if not self._can_end:
            return ""
        found = split_sentences(self._text, self.language)
        last = found.pop() if found else ""
        while found and len(last) < LOOKAHEAD:
            last = found.pop() + last
        return self._take(_start_of(last, self._text)) if found else ""

    def rest(self) -> str:
        """Removes and returns the remaining text."""
        return self._take(len(self._text))

    def _take(self, end: int) -> str:
        taken, self._text = self._text[:end], self._text[end:]
        self._can_end = can_end_sentence(self._text, self.language)
        self._wait()
        return taken

    def _wait(self) -> None:
        length = len(self._text)
        beyond = SPLIT_SHARE_BEYOND * (length - LONG)
        self._next_split = length + max(SPLIT_EVERY, int(SPLIT_SHARE * length), int(beyond))


def _start_of(last: str, text: str) -> int:
    """The position of the last sentences in a text: splitting only changes white space."""
    remaining = sum(not character.isspace() for character in last)
    for position in range(len(text) - 1, -1, -1):
        remaining -= not text[position].isspace()
        if remaining == 0:
            return position
    return 0
