"""Where sentences end, in every script."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

from .abbreviations import EITHER, LAST, NEVER, NUMBER, ORDINAL_LANGUAGES, abbreviations
from .blocks import blocks, has_line_break
from .characters import STAND_INS
from .traced import Traced

_STOPS = ".．!?…‥。｡！？؟۔।॥׃‽⁇⁈⁉\u037e"
_ASKING = frozenset("!?！？؟‽⁇⁈⁉;\u037e")
_UNSPACED_STOPS = frozenset("。｡！？؟۔।॥׃⁇⁈⁉")  # end a sentence with no space after them
_QUOTES = frozenset("」』”’\"'»›«“》")

_EMOJI = "\u2600-\u27bf\ufe0f\u200d\U0001f000-\U0001faff\U000e0020-\U000e007f"
_CLOSERS = (
    r"(?:[\"'”’»›)\]}」』）】〕》〉｣*_~`\u200b\u200e\u200f\ufeff]"
    r"|\[[0-9]{1,3}\]|[⁰¹²³⁴-⁹]|(?:[“‘«‹]| [»›])(?=[\s.,;:!?)\]]|\Z)"
    rf"| ?[{_EMOJI}])*"
)
_OPENERS = "\"'“”„‚‘’«»‹›([{¿¡「『（【〔《〈*_~`\u200e\u200f—–―-"
_LEAD = re.compile(rf"(?:[{re.escape(_OPENERS)}{STAND_INS}] ?)*")
_WORD = re.compile(r"[^\W\d_]+")
_JOINT = re.compile(r"[-'’/]")
_ROMAN = re.compile(r"[IVXLC]+")
_ORDINAL = re.compile(r"[0-9]{1,3}|[0-9]{1,2}\.[0-9]{1,2}|[IVX]+")
_INITIALS = re.compile(r"(?:[^\W\d_]{1,2}\.-?)*[^\W\d_]")
_CLIPPED = re.compile(r"['’][stnk] ")
_KOREAN_DATE = re.compile(r"[0-9]{2,4}\. ?[0-9]{1,2}\. ?[0-9]{1,2}\.")

# What goes on after a quotation: "Really?" John asked.
_REPORTED = (
    re.compile(
        r"(?:I|(?!No|Every)[A-Z]\w+(?: [A-Z]\w+)?) (?:[a-z]+ly )?(?:said|asked|replied|cried|"
        r"shouted|whispered|answered|added|called|muttered|exclaimed|yelled|screamed|wondered|"
        r"demanded|laughed|sighed|told)\b"
    ),
    re.compile(r"[^，。！？；：、“”「」『』\s]{0,7}?[说說道问問喊答叫嚷骂罵想笑]"),
    re.compile(r"[とっのがをはもにでやなだ]"),
    re.compile(r"이?라고|하고|이?라는|이?라며|이?란 |고 |며 "),
)

# A letter before a full stop that is no initial.
_LETTER_LAST = re.compile(
    r"\b(?:(?:[Pp]lan|[Vv]itamin|[Cc]lass|[Tt]ype|[Gg]rade|[Gg]roup|[Hh]epatitis|[Ss]ection) [A-Z]|"
    r"(?:and|than|am|did|was|can|will|should|would|could|have|so|nor|as) I)\Z"
)


@dataclass(frozen=True)
class Sentence:
    """A sentence with white space collapsed."""

    text: Traced
    ends_paragraph: bool = False
    bullet: str = ""  # the sign before a list item, which is not in text


def split_sentences(text: str, language: str = "en") -> list[str]:
    """The sentences of a text, quotes and brackets kept with theirs, white space collapsed."""
    found = sentences(Traced(text), language)
    return [str(sentence.bullet + sentence.text) for sentence in found]


def sentences(text: Traced, language: str = "en") -> Iterator[Sentence]:
    """The sentences of a text and which of them end a paragraph."""
    for block in blocks(text):
        found = [Sentence(part) for part in _Splitter(block.text, language).split()]
        if block.bullet:
            found[0] = replace(found[0], bullet=block.mark)
        else:
            found[0] = replace(found[0], text=block.mark + found[0].text)
        found[-1] = replace(found[-1], ends_paragraph=block.ends_paragraph)
        yield from found


def can_end_sentence(text: str, language: str = "en") -> bool:
    """Whether it has anything after which a sentence may end; a text without has one sentence."""
    return has_line_break(text) or _stop_pattern(language).search(text) is not None


@cache
def _stop_pattern(language: str) -> re.Pattern[str]:
    stops = _STOPS + (";" if language == "el" else "")
    return re.compile(rf"(?P<stop>\.(?: \.)+|[{stops}]+)(?P<closers>{_CLOSERS})")


class _Splitter:
    """A text without line breaks and the rules of its language."""

    def __init__(self, text: Traced, language: str) -> None:
        self.text = text
        self.language = language
        self.rules = abbreviations(language)
        self.uncapitalised = text == text.lower()  # typed in haste: capitals tell nothing
        self.kinds = self._dotted()

    def split(self) -> list[Traced]:
        found = []
        start = 0
        for stop in _stop_pattern(self.language).finditer(self.text):
            if stop.end() < len(self.text) and self._ends_sentence(stop):
                found.append(self.text[start : stop.end()].strip())
                start = stop.end()
        return [*found, self.text[start:].strip()]

    def _dotted(self) -> dict[int, str]:
        """What abbreviations with inner stops say about each of their stops, by position."""
        kinds: dict[int, str] = {}
        for found in self.rules.dotted.finditer(self.text):
            kinds.update((i, NEVER) for i in range(found.start(), found.end()))
            kinds[found.end() - 1] = found.lastgroup or NEVER
        if self.language == "ko":
            for date in _KOREAN_DATE.finditer(self.text):
                kinds.update((i, NEVER) for i in range(date.start(), date.end()))
        return kinds

    def _ends_sentence(self, stop: re.Match[str]) -> bool:
        text, end = self.text, stop.end()
        if stop.start() and text[stop.start() - 1] in "([{（" and stop["closers"]:
            return False  # "(!)", "[...]"
        spaced = text[end] == " "
        following = end + spaced
        if spaced:
            lead = _LEAD.match(text, following)
            following = lead.end() if lead else following
            if following == len(text):
                return False
            if self.language == "nl" and _CLIPPED.match(text, following - 1):
                following += 2  # 's Avonds
        if _QUOTES & set(stop["closers"]) and _is_reported(text[end + spaced : end + 40]):
            return False
        return (self._ends_spaced if spaced else self._ends_unspaced)(stop["stop"], stop, following)

    def _ends_unspaced(self, signs: str, stop: re.Match[str], following: int) -> bool:
        first = self.text[following]
        if first in ",，、;；:：—–…‥・)）":
            return False
        if _UNSPACED_STOPS & set(signs):
            return True
        before = self.text[stop.start() - 1 : stop.start()]
        return _east_asian(before) and _east_asian(first) and not _is_ellipsis(signs)

    def _ends_spaced(self, signs: str, stop: re.Match[str], following: int) -> bool:
        first = self.text[following]
        if _ASKING & set(signs):
            if not first.islower() or self.text[following - 1] in "¿¡":
                return True
            return self.uncapitalised and not stop["closers"]
        if _UNSPACED_STOPS & set(signs):
            return True
        before, after = self._word_before(stop.start()), self._word(following)
        if _is_ellipsis(signs):
            if not first.isupper() or (after == "I" and self.language == "en"):
                return False
            return after.lower() != before.lower()  # "You... You said so"
        if first.islower() and not self.uncapitalised:
            return False
        kind = self.kinds.get(stop.start()) or self._kind(before, stop.start())
        if kind == NUMBER:
            return not (first.isdigit() or _ROMAN.fullmatch(after))
        if kind == EITHER:
            initial = len(after) == 1 and self.text[following + 1 : following + 2] == "."
            return not first.isalnum() or (self._often_starts(after) and not initial)
        return kind is None or (kind == LAST and not first.islower())

    def _kind(self, word: str, end: int) -> str | None:
        """What the word before a full stop says about it; None if it is an ordinary one."""
        last = _JOINT.split(word)[-1]
        kind = self.rules.kind(word) or self.rules.kind(last)
        if kind is None and self.uncapitalised:
            kind = self.rules.kind(last.capitalize())
        if kind is not None or not word:
            return kind
        if self.language in ORDINAL_LANGUAGES and _ORDINAL.fullmatch(last):
            return NEVER if self.text[end + 2 : end + 3].isdigit() else EITHER
        if not _INITIALS.fullmatch(word) or _LETTER_LAST.search(self.text, max(0, end - 24), end):
            return None
        if word[-1].isupper() or "." in word:
            return EITHER
        return NEVER if "\u0590" <= word <= "\u097f" else None

    def _often_starts(self, word: str) -> bool:
        return word in self.rules.starters or word.capitalize() in self.rules.starters

    def _word(self, start: int) -> str:
        found = _WORD.match(self.text, start)
        return found[0] if found else ""

    def _word_before(self, end: int) -> str:
        """The word that ends here, without the quotes and brackets before it."""
        window = self.text[max(0, end - 32) : end]
        return window[window.rfind(" ") + 1 :].lstrip(_OPENERS)


def _is_ellipsis(signs: str) -> bool:
    return len(signs) > 1 or signs in "…‥"


def _is_reported(rest: str) -> bool:
    """Whether what follows a quotation says who spoke it."""
    return any(pattern.match(rest) for pattern in _REPORTED)


def _east_asian(character: str) -> bool:
    return "\u3000" <= character <= "\u9fff" or "\uac00" <= character <= "\ud7a3"
