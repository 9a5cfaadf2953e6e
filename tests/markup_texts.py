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


def plain(document: Document) -> None:
    for _ in range(document.draw.randint(1, 3)):
        document.words(6)
        document.silent(document.draw.choice((" ", "\n\n", "\n- ", " [pause:0.1] ", "\n1. ")))


def markdown(document: Document) -> None:
    draw = document.draw
    if draw.random() < 0.1:
        document.silent("---\ntitle: no\n---\n")
    for _ in range(draw.randint(1, 3)):
        block = draw.choice((_heading, _paragraph, _paragraph, _list, _quote, _table, _code))
        block(document)
        document.silent(draw.choice(("\n\n", "\n\n\n", "\r\n\r\n")))


def _heading(document: Document) -> None:
    document.silent("#" * document.draw.randint(1, 6) + " ")
    _inline(document)
    document.silent(document.draw.choice(("", " #", " ##")))


def _paragraph(document: Document) -> None:
    for _ in range(document.draw.randint(1, 3)):
        _inline(document)
        document.silent(document.draw.choice((" ", "  \n", "\n", "\\\n")))
    document.say("so")


def _list(document: Document) -> None:
    for i in range(document.draw.randint(1, 3)):
        document.silent(document.draw.choice(("- ", "* ", f"{i + 1}. ", "- [x] ")))
        _inline(document)
        document.silent("\n  ")
        _inline(document)
        document.silent("\n")


def _quote(document: Document) -> None:
    document.silent("> ")
    _inline(document)
    document.silent("\n> ")
    _inline(document)


def _table(document: Document) -> None:
    document.silent("| ")
    _inline(document)
    document.silent(" | ")
    _inline(document)
    document.silent(" |\n|---|:-:|\n| ")
    _inline(document)
    document.silent(" \\| |")
    _inline(document)
    document.silent("|")


def _code(document: Document) -> None:
    document.silent("```py\nno = 1 # no\n```")


def _inline(document: Document) -> None:
    """Words in one line with marks around them."""
    draw = document.draw
    around = (
        *(("", ""), ("", ""), ("*", "*"), ("**", "**"), ("`", "`"), ("~~", "~~"), ("<b>", "</b>")),
        *(("[", "](http://no.example 'no')"), ("![", "](no.png)"), ("[", "](<no b> 'so no')")),
        *(("&lt;", "&gt;"), ("\\*", "\\_"), ("", "<!-- no -->"), ("", "[^1]")),
    )
    for i in range(draw.randint(1, 2)):
        if i:
            document.silent(" ")
        before, after = draw.choice(around)
        document.silent(before)
        document.say(draw.choice([w for w in WORDS[document.language] if "." not in w]))
        document.silent(after)


def html(document: Document) -> None:
    document.silent(
        document.draw.choice(("", "<!DOCTYPE html><title>no</title>", "<style>no {}</style>\n"))
    )
    for _ in range(document.draw.randint(1, 4)):
        _html(document, 0)


def _html(document: Document, depth: int) -> None:
    draw = document.draw
    name = draw.choice(("p", "div", "li", "td", "b", "a", "h1", "", "", "", "silent"))
    if depth > 2 or not name:
        document.words(4)
        document.silent(draw.choice((" ", "\n", "<br>", " &amp; ", "<!-- no -->", "&nbsp;")))
    elif name == "silent":
        document.silent(
            draw.choice(
                (
                    "<script>var no = '<p>no</p>';</script>",
                    "<p hidden>no<p>",
                    "<div style='display:none'>no<div>no</div></div>",
                    "<span aria-hidden=true>no</span>",
                    "<pre><code>no\nno</code></pre>",
                    "<table><tr><td><td></table>",
                )
            )
        )
    else:
        document.silent(draw.choice((f"<{name}>", f"<{name} class='no'>", f"<{name.upper()}>")))
        for _ in range(draw.randint(1, 2)):
            _html(document, depth + 1)
        document.silent(f"</{name}>" if name in ("b", "a", "div", "h1") else "\n")
