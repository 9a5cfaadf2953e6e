"""What is read of a text in Markdown."""

from __future__ import annotations

import sys

import pytest

import nightingale
from nightingale.text import prepare
from nightingale.text.markup import markdown


def spoken(text: str, language: str = "en") -> list[tuple[str, str]]:
    return [(str(s.text), s.ends) for s in prepare(text, language, markup="markdown")]


def words(text: str) -> dict[str, str]:
    """What each word comes from."""
    segments = prepare(text, markup="markdown")
    return {str(w): text[slice(*w.source)] for s in segments for w in s.text.words()}


def test_headings_and_paragraphs() -> None:
    text = "# A title #\n\nOne line\nand another.\n\nSetext\n===\nEnd\n***\nLast"
    assert spoken(text) == [
        ("A title", "paragraph"),
        ("One line and another.", "paragraph"),
        ("Setext", "paragraph"),
        ("End", "paragraph"),
        ("Last", "paragraph"),
    ]


def test_marks_are_not_read() -> None:
    text = "A *b* **c** __d__ ~~e~~ ***f*** \\*g\\* h&amp;i snake_case 2 * 3"
    assert spoken(text)[0][0].startswith("A b c d e f *g* h and i snake_case")


def test_links_are_their_text_and_images_their_alternative_text() -> None:
    text = (
        "See [the *site*](http://no.example 'no') and ![a cat](no.png), [ref][1], <http://a.org>."
    )
    text += "\n\n[1]: http://no.example"
    assert spoken(text) == [
        ("See the site and a cat, ref, a dot org.", "paragraph"),
    ]
    found = words(text)
    assert (found["site"], found["cat,"], found["ref,"]) == ("site", "cat](no.png),", "ref][1],")
    assert found["org."] == "org>."


def test_a_word_after_a_link_is_not_found_in_its_address() -> None:
    text = "[a](<x b> 't b') b"
    (segment,) = prepare(text, markup="markdown")
    assert [word.source for word in segment.text.words()] == [(1, 2), (17, 18)]


def test_lists() -> None:
    text = "Before\n\n- one\n- two *b*\n  goes on\n  1. inner\n\n"
    text += "1. first\n2. second\n- [ ] open\n- [x] done"
    assert spoken(text) == [
        ("Before", "paragraph"),
        ("one. two b goes on. one. inner", "paragraph"),
        ("one. first. two. second", "paragraph"),
        ("open. done", "paragraph"),
    ]
    assert words("1. first\n2. second")["two."] == "2."


def test_tables_are_read_row_by_row() -> None:
    text = "| Name | a \\| b |\n|---|---|\n| Al | 3 |\n| Bo | |"
    assert spoken(text) == [("Name, a | b", "sentence"), ("Al, three. Bo", "paragraph")]
    assert words(text)["three."] == "3"


def test_quotes_front_matter_comments_and_footnotes() -> None:
    text = "---\ntitle: no\n---\n> Said *he*\n> so.\n\n<!-- no -->\n"
    text += "Text[^1] <!-- no --> on.\n\n[^1]: Note."
    assert spoken(text) == [
        ("Said he so.", "paragraph"),
        ("Text on.", "paragraph"),
        ("Note.", "paragraph"),
    ]
    assert spoken("Use `[^a]` and [^ here.") == [("Use [^a] and [^ here.", "paragraph")]
    assert spoken("+++\nno = 1\n+++\nHi.") == [("Hi.", "paragraph")]
    assert spoken("---\r\nno\r\n---\r\nHi.") == [("Hi.", "paragraph")]
    assert spoken("---\n" + "\r" * 500 + "Hi.") == [("Hi.", "paragraph")]
    assert spoken("Hi.\n\n---\n\nso\n\n---")[0] == ("Hi.", "paragraph")


def test_code() -> None:
    text = "Call `run  it`:\n\n```py\nno = 1\n```\n\n    no\n\nDone."
    assert spoken(text) == [
        ("Call run it:", "paragraph"),
        ("Code block omitted", "paragraph"),
        ("Code block omitted", "paragraph"),
        ("Done.", "paragraph"),
    ]
    assert words(text)["block"] == "no"
    assert spoken("```\nx\n```", "fr") == [("Bloc de code omis", "paragraph")]


def test_html_in_markdown() -> None:
    text = "<div align='no'>\n<b>Bold</b> &amp; <script>no</script>\n</div>\n\n"
    text += "In<br>line <kbd>x</kbd>."
    assert spoken(text) == [("Bold and", "paragraph"), ("In line x.", "paragraph")]


def test_pauses_and_line_ends() -> None:
    text = "One\r\ntwo [pause 500ms]\r\n\r\n## Three\rfour"
    segments = prepare(text, markup="markdown")
    assert [(str(s.text), s.pause) for s in segments] == [
        ("One two", 0.5),
        ("Three", 0.0),
        ("four", 0.0),
    ]
    assert words(text)["four"] == "four"


def test_nothing_to_say_is_refused() -> None:
    for text in ("", "<!-- no -->", "[a]: http://no.example", "![](no.png)"):
        with pytest.raises(ValueError, match="there is no text to speak"):
            prepare(text, markup="markdown")
    with pytest.raises(ValueError, match="may have 1,000,000 characters"):
        prepare("a" * 1_000_001, markup="markdown")


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    markdown._parser.cache_clear()
    monkeypatch.setitem(sys.modules, "markdown_it", None)
    with pytest.raises(nightingale.Error, match=r"pip install 'nightingale-tts\[markup\]'"):
        prepare("Hi.", markup="markdown")
    monkeypatch.undo()
    assert spoken("Hi.") == [("Hi.", "paragraph")]
