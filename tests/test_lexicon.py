"""Respellings of words: the file, which entry applies, and where words come from."""

# ruff: noqa: RUF001

from __future__ import annotations

import pickle
import time
from pathlib import Path

import pytest

import nightingale
from nightingale import Lexicon, normalize
from nightingale.text import prepare
from nightingale.text.lexicon_file import MOST_BYTES, Entry

FILE = """\
# A comment, and a line without anything:

GIF = jif
[en]
Dr. Nguyen = Doctor Win
nginx = engine x
Polish = Poe-lish
polish = pollish
E=mc2 = E equals m c squared
c++ = see plus plus
New York = Noo York
new york city = the city
lead = led {exact}
LaTeX = lah tek {any case}
O'Brien = Oh Bryan
won = wun
[fr]
Aix = Aiks
[ zh ]
重庆 = 崇庆
[ko]
서울 = 서 울
[hi]
दिल = दील
[*]
café = caffay
"""


@pytest.fixture
def lexicon(tmp_path: Path) -> Lexicon:
    return Lexicon.load(written(tmp_path, FILE))


def written(folder: Path, content: str | bytes, name: str = "words.txt") -> Path:
    file = folder / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


@pytest.mark.parametrize(
    ("language", "text", "spoken"),
    [
        ("en", "A GIF, the GIF's, a gif.", "A jif, the jif's, a gif."),
        ("es", "Un GIF de GIFS y GIF2", "Un jif de GIFS y GIF2"),
        ("en", "Ask Dr. Nguyen.", "Ask Doctor Win."),
        ("en", "Ask Dr.\n  Nguyen.", "Ask Doctor Win."),
        ("en", "Ask Dr.\n\nNguyen.", "Ask Dr.\n\nNguyen."),
        ("fr", "Dr. Nguyen", "Dr. Nguyen"),
        ("en", "NGINX and Nginx-2, xnginx", "engine x and engine x-2, xnginx"),
        ("en", "Polish polish, POLISH", "Poe-lish pollish, pollish"),
        ("en", "Lead is lead.", "Lead is led."),
        ("en", "latex LATEX", "lah tek lah tek"),
        ("en", "E=mc2!", "E equals m c squared!"),
        ("en", "C++17, c+", "see plus plus17, c+"),
        ("en", "New York City, New York, new york", "the city, Noo York, new york"),
        ("en", "O’Brien's and O'Brien", "Oh Bryan's and Oh Bryan"),
        ("en", "I won, I won't, won’t", "I wun, I won't, won’t"),
        ("fr", "d'Aix, l’Aix-la, Aixois", "d'Aiks, l’Aiks-la, Aixois"),
        ("zh", "我在重庆用GIF图。", "我在崇庆用jif图。"),
        ("ko", "서울에서 GIF는 서울. 새서울", "서 울에서 jif는 서 울. 새서울"),
        ("hi", "दिल दिल्ली", "दील दिल्ली"),
        ("it", "Café cafe\u0301 cafés CAFÉ", "caffay caffay cafés caffay"),
        ("en", "[GIF] [pause 500ms] [GIF](a.b) GIF_x", "[GIF] [pause 500ms] [jif](a.b) jif_x"),
        ("en", "", ""),
        ("en", " ", " "),
    ],
)
def test_words_are_respelled(lexicon: Lexicon, language: str, text: str, spoken: str) -> None:
    assert lexicon.applied(text, language) == spoken


def test_it_comes_before_numbers_and_abbreviations() -> None:
    respelled = {"GIF": "jif", "Dr. Nguyen": "Doctor Win", "5th Ave": "the avenue"}
    text = "Dr. Nguyen has 5 GIF files on 5th Ave. He left."
    assert normalize(text, lexicon=respelled) == (
        "Doctor Win has five jif files on the avenue. He left."
    )
    assert normalize(text).startswith("Doctor Nguyen has five GIF files")
    # A phrase may hold a full stop, at which a sentence would end.
    (segment,) = prepare("At Foo. Bar they sing.", lexicon=Lexicon.of({"Foo. Bar": "foobar"}))
    assert segment.text == "At foobar they sing."


def test_words_come_from_what_was_respelled(lexicon: Lexicon) -> None:
    text = "Dr. Nguyen of  New York has 2 GIF files."
    (segment,) = prepare(text, "en", lexicon=lexicon)
    found = [(str(word), text[slice(*word.source)]) for word in segment.text.words()]
    assert found == [
        ("Doctor", "Dr. Nguyen"),
        ("Win", "Dr. Nguyen"),
        ("of", "of"),
        ("Noo", "New"),
        ("York", "York"),
        ("has", "has"),
        ("two", "2"),
        ("jif", "GIF"),
        ("files.", "files."),
    ]


def test_which_of_several_entries_applies(tmp_path: Path) -> None:
    def spoken(*files: str, text: str = "A b c d.") -> str:
        paths = [written(tmp_path, file, f"{i}.txt") for i, file in enumerate(files)]
        return Lexicon.load(*paths).applied(text, "en")

    assert spoken("b = one\nb c = two\n") == "A two d."  # the longest
    assert spoken("a b = one\nb c d = three\n") == "A three."
    assert spoken("a b = one {priority 1}\nb c d = three\n") == "one c d."
    assert spoken("b = one {priority 2}\nb c = two {priority 1}\n") == "A one c d."
    assert spoken("b = one {priority -1}\nb = two {exact}\n") == "A two c d."
    assert spoken("b = one\n", "b = two\n") == "A two c d."  # the later file
    assert spoken("b = one {priority 1}\n", "b = two\n") == "A one c d."
    assert spoken("[en]\nb = one\n", "b = two\n") == "A one c d."  # the language's own
    assert spoken("b = one {exact}\n", "b = two\n") == "A one c d."  # the exact one
    assert spoken("b = c\nc = b\n") == "A c b d."  # not looked up again


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("\n# x\nGIF jif", "line 3: write WORD = RESPELLING, with spaces around =, not 'GIF jif'"),
        ("GIF=jif", "line 1: write WORD = RESPELLING"),
        ("GIF =", "line 1: the respelling of 'GIF' has no letter: ''"),
        ("GIF = ...", "has no letter"),
        ("= jif", "line 1: there is no word before the respelling 'jif'"),
        ("[xx]\na = b", "line 1: unknown language 'xx'; expected \\* or one of ar, da, de"),
        ("a = b\n[en", r"line 2: '\[en' is no section: write \[en\], or \[\*\] for all"),
        ("a = b\r\na = c", "line 2: 'a' is there before, in line 1"),
        ("a = b {loud}", "line 1: unknown mark 'loud'; expected exact, any case or priority N"),
        ("a = b {priority 1001}", "unknown mark 'priority 1001'"),
        ("a = b {exact, loud}", "unknown mark 'loud'"),
        ("a = [pause]", "line 1: the respelling '\\[pause\\]' has brackets"),
        ("x" * 101 + " = b", "line 1: the word has 101 characters; 100 are the most"),
        ("a = " + "b" * 301, "line 1: the respelling has 301 characters; 300 are the most"),
        (b"a = b\n\xff = c", "line 2: is not text in UTF-8: see its byte 1"),
        ("a = b\0c", "line 1: the respelling .* has control characters"),
        ("\u0301a = b", "begins with a combining mark"),
    ],
)
def test_a_bad_file_is_refused_with_its_line(
    tmp_path: Path, content: str | bytes, message: str
) -> None:
    file = written(tmp_path, content)
    with pytest.raises(ValueError, match=message) as refused:
        Lexicon.load(file)
    assert str(refused.value).startswith(f"{file}, line ")


def test_what_is_no_lexicon_is_refused(tmp_path: Path) -> None:
    with pytest.raises(nightingale.Error, match=r"cannot read .*none\.txt: No such file"):
        Lexicon.load(tmp_path / "none.txt")
    with pytest.raises(nightingale.Error, match=r"is longer than 2000000 bytes"):
        Lexicon.load(written(tmp_path, "#" * (MOST_BYTES + 1)))
    with pytest.raises(nightingale.Error, match=r"Is a directory|not a regular file"):
        Lexicon.load(tmp_path)
    with pytest.raises(ValueError, match="lexicon must be a path, a Lexicon, a dict"):
        Lexicon.of(5)
    with pytest.raises(ValueError, match="the word must be a string, not 5"):
        normalize("5", lexicon={5: "five"})
    with pytest.raises(ValueError, match="the respelling must be a string, not None"):
        normalize("5", lexicon={"GIF": None})
    with pytest.raises(ValueError, match="a lexicon has 50000 entries at most, not 50001"):
        Lexicon((Entry("a", "b"),) * 50_001)


def test_a_lexicon_comes_from_files_words_and_others(tmp_path: Path, lexicon: Lexicon) -> None:
    file = written(tmp_path, "\ufeffgif = giff\n")
    assert Lexicon.of(None) is None
    assert Lexicon.of(lexicon) is lexicon
    assert Lexicon.of(str(file)) == Lexicon.load(file) == Lexicon.of([file])
    merged = Lexicon.of([lexicon, file, {"NGINX": "x"}])
    assert merged is not None
    assert merged.applied("gif GIF NGINX nginx", "en") == "giff jif x engine x"
    assert pickle.loads(pickle.dumps(merged)) == merged


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    file = written(tmp_path, "a = one\n")
    first = Lexicon.load(file)
    file.unlink()
    second = Lexicon.load(written(tmp_path, "a = three\n"))
    assert [each.applied("a", "en") for each in (first, second)] == ["one", "three"]
    assert first.digest != second.digest
    assert second.digest == Lexicon.load(file).digest


def test_a_large_lexicon_and_a_long_text_take_no_longer_than_they_are_long(tmp_path: Path) -> None:
    lines = "".join(f"word{i} thing = respelled {i}\n" for i in range(20_000))
    lexicon = Lexicon.load(written(tmp_path, lines))
    texts = ["word7 thing and word19999 thing. " * 500, "a" * 20_000, "[a" * 10_000, "가" * 20_000]
    start = time.perf_counter()
    for text in texts:
        lexicon.applied(text, "en")
    assert time.perf_counter() - start < 20  # seconds; it takes below one
