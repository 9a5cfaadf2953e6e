"""What is read of a page in HTML."""

from __future__ import annotations

import pytest

from nightingale.text import prepare
from nightingale.text.markup.announcements import code_block


def spoken(text: str, language: str = "en") -> list[tuple[str, str]]:
    return [(str(s.text), s.ends) for s in prepare(text, language, markup="html")]


def test_blocks_are_paragraphs_and_items_are_sentences() -> None:
    text = """<html><body><h1>A title</h1><p>One <b>bo</b>ld <a href="http://no.example">link</a>.
    <p>Two<br>lines<ul><li>first<li>second<ol><li>inner</ol></ul><blockquote>Said.</blockquote>
    <dl><dt>term<dd>meaning</dl><hr>end</body></html>"""
    assert spoken(text) == [
        ("A title", "paragraph"),
        ("One bold link.", "paragraph"),
        ("Two lines", "paragraph"),
        ("first. second", "paragraph"),
        ("inner", "paragraph"),
        ("Said.", "paragraph"),
        ("term. meaning", "paragraph"),
        ("end", "paragraph"),
    ]


def test_tables_are_read_row_by_row() -> None:
    text = "<table><tr><th>Name</th><th>Age</th></tr><tr><td>Al<td></td><td>3</table>"
    assert spoken(text) == [("Name, Age. Al, three", "paragraph")]


@pytest.mark.parametrize(
    "silent",
    [
        "<script>var no = '<p>no</p>';</script>",
        "<style>no {}</style>",
        "<title>no</title>",
        "<!-- no -->",
        "<!DOCTYPE no>",
        "<?no no?>",
        "<template>no</template>",
        "<noscript>no</noscript>",
        "<svg><text>no</text></svg>",
        "<div hidden>no <div>no</div> no</div>",
        "<p hidden>no<p>",
        "<span aria-hidden='true'>no</span>",
        "<div style='color: red; display : none'>no</div>",
        "<i style='visibility:hidden'>no</i>",
        "<ul hidden><li>no<li>no</ul>",
        "<img src='no.png'>",
        "<img src='no.png' alt=''>",
        "<img hidden alt='no'>",
        "<input value='no'>",
        "<textarea>no</textarea>",
        "<pre hidden>no</pre>",
    ],
)
def test_what_a_page_does_not_show_is_not_read(silent: str) -> None:
    words = " ".join(text for text, _ in spoken(f"One {silent} two."))
    assert words == "One two."


def test_images_are_read_by_their_alternative_text() -> None:
    text = "See<img src=x alt='a cat'><img alt='dogs &amp; fish'>."
    (segment,) = prepare(text, markup="html")
    assert segment.text == "See a cat dogs and fish ."
    words = {str(word): text[slice(*word.source)] for word in segment.text.words()}
    assert words["cat"] == "cat"
    assert words["fish"] == "<img alt='dogs &amp; fish'>"


def test_entities_come_from_what_is_written() -> None:
    text = "Caf&eacute; &#64; &#x41;l &copy; &unknown; x &lt y"
    (segment,) = prepare(text, markup="html")
    words = {str(word): text[slice(*word.source)] for word in segment.text.words()}
    assert words["Café"] == "Caf&eacute;"
    assert words["Al"] == "&#x41;l"
    assert "&#64;" in words.values()
    assert words["y"] == "y"


def test_code_blocks_are_announced_and_inline_code_is_read() -> None:
    text = "<p>Call <code>run</code>.</p><pre><code>x = 1\ny = 2</code></pre><p>Done.</p>"
    assert spoken(text) == [
        ("Call run.", "paragraph"),
        ("Code block omitted", "paragraph"),
        ("Done.", "paragraph"),
    ]
    assert ("Bloque de código omitido", "paragraph") in spoken(text, "es")
    assert code_block("xx") == "Code block omitted"


def test_every_language_announces_code() -> None:
    from nightingale.checkpoint import LANGUAGES

    announced = {code_block(language) for language in LANGUAGES}
    assert len(announced) == len(LANGUAGES)


def test_a_page_that_shows_nothing_is_refused() -> None:
    for text in ("", "<p></p>", "<script>x</script>"):
        with pytest.raises(ValueError, match="there is no text to speak"):
            prepare(text, markup="html")
    with pytest.raises(ValueError, match="may have 1,000,000 characters"):
        prepare("a" * 1_000_001, markup="html")


def test_text_after_the_last_tag_is_read() -> None:
    assert spoken("<b>Caf&eacute;</b> &amp; t&eacute; <p") == [("Café and té <p", "paragraph")]
    assert spoken("One <script>no > no") == [("One", "paragraph")]


def test_deep_and_broken_pages_are_read() -> None:
    assert spoken("<div>" * 20_000 + "deep" + "</b>" * 100) == [("deep", "paragraph")]
    assert spoken("a < b <p") == [("a is less than b <p", "paragraph")]
