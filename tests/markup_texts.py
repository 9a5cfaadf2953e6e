"""Generated documents with markup, and which of their characters are spoken."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from .test_text_properties import SCRIPTS

# Languages whose words any tokenizer reads as they are written.
LANGUAGES = ("en", "fr", "de", "ru", "el", "tr")
WORDS = {code: [w for w in SCRIPTS[code].split() if "<" not in w] for code in LANGUAGES}
MARKS = ("", "", "", ",", ".", "!", "?", "...", ";", " —")


@dataclass
class Document:
    """A text that grows, and for each character whether a word must come from it."""

    draw: random.Random
    language: str
    text: str = ""
    spoken: list[bool] = field(default_factory=list)

    def silent(self, text: str) -> None:
        self.text += text
        self.spoken += [False] * len(text)

    def say(self, text: str) -> None:
        self.text += text
        self.spoken += [character.isalpha() for character in text]

    def words(self, most: int = 5, escaped: Callable[[str], str] = str) -> None:
        """A few words with marks; escaped: how the format writes them."""
        for i in range(self.draw.randint(1, most)):
            if i:
                self.silent(self.draw.choice((" ", " ", "  ", "\n")))
            self.say(escaped(self.draw.choice(WORDS[self.language])))
            self.silent(self.draw.choice(MARKS))


def documents(count: int, write: Callable[[Document], None], seed: int) -> list[Document]:
    draw = random.Random(seed)
    made = [Document(draw, LANGUAGES[i % len(LANGUAGES)]) for i in range(count)]
    for document in made:
        write(document)
    return made


def ssml(document: Document) -> None:
    document.silent(document.draw.choice(("<speak>", "<speak version='1.1'>\n", " <speak >")))
    for _ in range(document.draw.randint(1, 3)):
        _element(document, 0)
    document.silent("</speak>")


def _element(document: Document, depth: int) -> None:
    draw = document.draw
    name = draw.choice(("p", "s", "prosody", "voice", "lang", "sub", "say-as", "", "", "break"))
    if depth > 2 or not name:
        document.words(4)
        document.silent(draw.choice((" ", "\r\n", "<!-- é no -->", "<break time='1ms'/>", "\n\n")))
    elif name == "break":
        document.silent(draw.choice(("<break/>", "<break strength='weak'></break>", "[pause 1s]")))
    elif name == "sub":
        document.silent("<sub alias='so it is'>")
        document.words(2)
        document.silent("</sub> ")
    elif name == "say-as":
        document.silent("<say-as interpret-as='characters'>")
        document.say(draw.choice(("ab", "Xyz", "é")))
        document.silent("</say-as> ")
    else:
        attribute = {"prosody": " rate='fast'", "voice": " name='A'", "lang": " xml:lang='fr'"}
        document.silent(f"<{name}{attribute.get(name, '')}>")
        for _ in range(draw.randint(1, 2)):
            _element(document, depth + 1)
        document.silent(f"</{name}>")
