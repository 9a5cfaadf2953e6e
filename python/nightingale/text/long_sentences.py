"""Splits a sentence that is too long for one segment, and groups parts into segments."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from .characters import graphemes, is_spoken, speaking_time
from .traced import Traced, joined

# The cost of a cut, in squares of full segments: at a clause, at a conjunction or a particle, at
# any space, between East Asian characters, inside a word.
_CLAUSE, _PHRASE, _SPACE, _CHARACTER, _WORD = 0.0, 0.15, 0.3, 0.5, 1.0
# The cost of one more group, added to the squares of the group sizes: more than merging any two
# that together fill 60 % of a group, less than splitting a full one at a bad position.
_GROUP_COST = 0.4
_FINEST = 1 / 30  # of a segment: closer positions for a cut are not considered, but for good ones
_CHARACTER_SECONDS = 0.01  # added to the speaking time: marks take no time, but tokens

_UNSPACED = "\u3005-\u3007\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
# What belongs to the kana or kanji before it.
_ATTACHED = "ぁぃぅぇぉっゃゅょゎァィゥェォッャュョヮー々\u3099\u309a"
_OPENERS = "(（\\[{«„“‘「『【〔《〈"
_TOKEN = re.compile(
    rf" ?(?:[{_UNSPACED}][{_ATTACHED}]*[^\w\s{_OPENERS}]*"
    rf"|[^\s—{_UNSPACED}]+—*|—+)"
)
CLAUSE_END = re.compile(r"(?:[,;:!?，、；：！？。،؛؟·।…‥)）\]»”」』—–]| -)[\"'”’»)\]」』）]*\Z")
_OPENING = re.compile(rf" ?[{_OPENERS}]")

_CONJUNCTIONS = {
    "en": "and or but because which that who when where while if although though so than then",
    "de": "und oder aber denn weil dass wenn als ob obwohl während sondern damit",
    "fr": "et ou mais car donc que qui quand lorsque parce si comme où dont puis",
    "es": "y e o pero porque que quien cuando donde si aunque mientras como sino",
    "it": "e ed o ma perché che chi quando dove se mentre come oppure",
    "pt": "e ou mas porque que quem quando onde se embora enquanto como",
    "nl": "en of maar want omdat dat die wanneer waar terwijl als toen",
    "sv": "och eller men eftersom att som när medan om",
    "da": "og eller men fordi at som når mens hvis",
    "no": "og eller men fordi at som når mens hvis",
    "fi": "ja tai mutta koska että joka kun jos vaikka",
    "pl": "i lub ale bo ponieważ że który która które gdy kiedy jeśli",
    "ru": "и или но а потому что который которая которые когда если хотя чтобы где",
    "el": "και κι ή αλλά γιατί ότι που όταν αν ενώ",
    "tr": "ve veya ama fakat çünkü ki eğer",
    "ms": "dan atau tetapi kerana bahawa yang apabila jika",
    "sw": "na au lakini kwamba ambaye kama",
    "hi": "और या लेकिन क्योंकि कि जो जब अगर",
    "ar": "و أو ثم لكن لأن الذي التي عندما إذا",
    "he": "או אבל כי אשר כאשר אם",
    "ko": "그리고 그러나 하지만 또는",
}
_CHINESE_CONJUNCTION = re.compile(
    "但|而|因为|因為|所以|如果|虽然|雖然|或者|并且|並且|以及|然后|然後"
)
_PARTICLE = re.compile("[的了着著过過地得]\\Z")
_HIRAGANA = re.compile("[\u3041-\u309f]")


@cache
def _conjunctions(language: str) -> frozenset[str]:
    return frozenset(_CONJUNCTIONS.get(language, "").split())


@dataclass
class _Atom:
    """A part of a sentence that is not cut, with the space before it."""

    text: Traced
    size: float
    cost: float = _WORD  # of a cut after it


def cut(
    sentence: Traced, language: str, measure: Callable[[str], float]
) -> list[tuple[Traced, bool]]:
    """The parts of a sentence, each with whether a clause ends there.

    measure gives the share of a segment that a text fills: at most 1 for each part, but for single
    graphemes.
    """
    size = measure(sentence)
    atoms: list[_Atom] = []
    if size > 1:
        atoms = _atoms(sentence, language, size, largest=1)
        if len(atoms) == 1:
            atoms = _atoms(sentence, language, size, largest=0)
    if len(atoms) < 2:
        return [(sentence, True)]
    ends = balanced_groups(
        [atom.size for atom in atoms],
        [*(atom.cost for atom in atoms[:-1]), 0.0],
        lambda total, _: total <= 1,
    )
    parts = []
    start = 0
    for end in ends:
        # A part that still measures more, since tokens are not spread evenly, is cut again.
        text = joined(atom.text for atom in atoms[start:end]).strip()
        *firsts, (last, _) = cut(text, language, measure)
        parts += [*firsts, (last, atoms[end - 1].cost == _CLAUSE)]
        start = end
    return parts


def _atoms(sentence: Traced, language: str, size: float, largest: float) -> list[_Atom]:
    """What a sentence of this size may be cut into: words, or graphemes of words above largest."""
    scale = (1 + 1e-9) * size / _weight(sentence)  # so that rounding never makes it fit after all
    atoms: list[_Atom] = []
    for token in _TOKEN.finditer(sentence):
        if atoms:
            atoms[-1].cost = _cost(atoms[-1].text, token, language)
        word = sentence[token.start() : token.end()]
        weight = _weight(word) * scale
        if weight > largest:
            atoms += [_Atom(text, _weight(text) * scale) for text in graphemes(word)]
        else:
            atoms.append(_Atom(word, weight))
    return _coarse(_all_spoken(atoms))


def _weight(text: str) -> float:
    return speaking_time(text) + _CHARACTER_SECONDS * len(text)


def _cost(before: str, token: re.Match[str], language: str) -> float:
    """What it costs to cut between a text and the token after it."""
    text = token[0]
    if CLAUSE_END.search(before) or _OPENING.match(text):
        return _CLAUSE
    if text[0] == " ":
        word = text.strip(" \"'“”„«»¿¡.,;:!?").lower()
        return _PHRASE if word in _conjunctions(language) else _SPACE
    if (
        _CHINESE_CONJUNCTION.match(token.string, token.start())
        or _PARTICLE.search(before)
        or (_HIRAGANA.match(before[-1]) and not _HIRAGANA.match(text))
    ):
        return _PHRASE
    return _CHARACTER


def _all_spoken(atoms: list[_Atom]) -> list[_Atom]:
    """Joins what is not spoken to what is before it, and opening marks to what is after."""
    joined: list[_Atom] = []
    opening = _Atom(Traced(""), 0.0)
    for atom in atoms:
        atom.text, atom.size = opening.text + atom.text, opening.size + atom.size
        opening = _Atom(Traced(""), 0.0)
        if is_spoken(atom.text):
            joined.append(atom)
        elif joined and not _OPENING.match(atom.text):
            joined[-1] = _joined(joined[-1], atom)
        else:
            opening = atom
    if opening.text and joined:
        joined[-1] = _joined(joined[-1], opening)
    return joined


def _coarse(atoms: list[_Atom]) -> list[_Atom]:
    """Joins very small atoms, which keeps the search for the best cuts linear."""
    joined: list[_Atom] = []
    for atom in atoms:
        if joined and joined[-1].size < (_FINEST if joined[-1].cost > _PHRASE else _FINEST / 3):
            joined[-1] = _joined(joined[-1], atom)
        else:
            joined.append(atom)
    return joined


def _joined(first: _Atom, second: _Atom) -> _Atom:
    cost = second.cost
    if not is_spoken(second.text) and CLAUSE_END.search(first.text + second.text):
        cost = _CLAUSE
    return _Atom(first.text + second.text, first.size + second.size, cost)


def balanced_groups(
    sizes: Sequence[float],
    costs: Sequence[float],
    fits: Callable[[float, float], bool],
) -> list[int]:
    """The end index of each group, of the grouping with the lowest cost.

    costs[i] is added for a group that ends after member i. fits(total, largest member) says whether
    members may form a group; once it is False it must stay False as the group grows.
    """
    best = [0.0]
    starts = [0]
    for end in range(1, len(sizes) + 1):
        total = largest = 0.0
        lowest, chosen = float("inf"), end - 1
        for start in range(end - 1, -1, -1):
            size = sizes[start]
            total += size
            largest = max(largest, size)
            if start < end - 1 and not fits(total, largest):
                break
            cost = best[start] + total * total
            if cost < lowest:
                lowest, chosen = cost, start
        best.append(lowest + _GROUP_COST + costs[end - 1])
        starts.append(chosen)
    ends = []
    end = len(sizes)
    while end:
        ends.append(end)
        end = starts[end]
    return ends[::-1]
