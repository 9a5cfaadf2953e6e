"""Front-ends: what they make of text, and what happens where their packages are not at hand."""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from unicodedata import normalize

import numpy as np
import pytest

import nightingale
from nightingale.checkpoint import CANGJIE_TABLE, LANGUAGES, find_checkpoint
from nightingale.family import MULTILINGUAL_TOKENIZER
from nightingale.text import Tokenizer
from nightingale.text import front_ends as module
from nightingale.text.front_ends import front_ends, to_jamo

INSTALL = 'pip install "nightingale-tts[languages]"'
PACKAGES = ("spacy_pkuseg", "pykakasi", "dicta_onnx", "russian_text_stresser")


@pytest.fixture(autouse=True)
def nothing_loaded_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_warned", set())
    monkeypatch.setattr(module, "_segmenter", module.Once(module._load_segmenter))
    monkeypatch.setattr(module, "_kakasi", module.Once(module._load_kakasi))
    monkeypatch.setattr(module, "_stresser", module._best_effort())


@pytest.fixture
def no_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PACKAGES:
        monkeypatch.setitem(sys.modules, name, None)


@pytest.fixture
def provide(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Puts a module with the given attributes in place of a package."""

    def put(name: str, **attributes: object) -> None:
        module = ModuleType(name)
        vars(module).update(attributes)
        monkeypatch.setitem(sys.modules, name, module)
        if "." in name:
            monkeypatch.setitem(sys.modules, name.split(".")[0], ModuleType(name.split(".")[0]))

    return put


@pytest.fixture
def tokenizer(checkpoint: Path) -> Tokenizer:
    path = checkpoint / MULTILINGUAL_TOKENIZER
    return Tokenizer(path, dict(LANGUAGES), True, checkpoint / CANGJIE_TABLE)


class Words:
    """A segmenter: words are what stands between bars."""

    def cut(self, text: str) -> list[str]:
        return text.split("|")


def table(folder: Path, *lines: str) -> Path:
    path = folder / CANGJIE_TABLE
    path.write_text(json.dumps(lines), encoding="utf-8")
    return path


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]


def test_korean_syllables_become_jamo() -> None:
    assert to_jamo("한국어") == "\u1112\u1161\u11ab\u1100\u116e\u11a8\u110b\u1165"
    syllables = "".join(map(chr, range(0xAC00, 0xD7A4)))
    assert to_jamo(syllables) == normalize("NFKD", syllables)
    assert to_jamo(" ㄱ a1 각 \n") == "ㄱ a1 \u1100\u1161\u11a8"
    assert to_jamo("\ud7a4") == "\u1113\u1161"  # past the last syllable, in its block


def test_chinese_words_are_apart_and_glyphs_spelt(
    tmp_path: Path, provide: Callable[..., None]
) -> None:
    provide("spacy_pkuseg", pkuseg=Words)
    spell = module.Chinese(table(tmp_path, "日\ta", "曰\ta", "明\tab\t[O]"))
    assert spell("日曰|明") == "[cj_a][cj_.][cj_a][cj_1][cj_.] [cj_a][cj_b][cj_.]"
    assert spell("x日，か々") == "x[cj_a][cj_.]，か々"  # noqa: RUF001


def test_a_glyph_listed_twice_has_its_last_code() -> None:
    rows = [["甲", "w"], ["由", "w"], ["田", "w"], ["由", "lw"], ["田", "w"], ["申", "w"]]
    assert module.cangjie_codes(rows) == {"甲": "w", "由": "lw", "田": "w2", "申": "w4"}


@pytest.mark.parametrize(
    ("text", "kana"),
    [
        ("東京へ行きます。", "とうきょうへいきます。"),
        ("母はハハと笑う", " はははハハとわらう"),
        ("部屋へ", " へやへ"),
        ("ひらがな", "ひらがな"),
        ("カタカナ", "カタカナ"),
        ("ok, 一", "ok, いち"),
        ("", ""),
    ],
)
def test_japanese_kanji_become_hiragana(text: str, kana: str) -> None:
    pytest.importorskip("pykakasi")
    assert module.to_kana(text) == normalize("NFKD", kana)


def test_japanese_variation_selectors_do_no_harm() -> None:
    pytest.importorskip("pykakasi")
    with pytest.raises(IndexError):  # what the reference stops at
        module._kakasi().convert("葛\U000e0100")
    assert module.to_kana("葛\U000e0100") == normalize("NFKD", "くず")


@pytest.mark.usefixtures("no_packages")
@pytest.mark.parametrize(
    ("code", "name", "package"),
    [("zh", "Chinese", "spacy_pkuseg"), ("ja", "Japanese", "pykakasi")],
)
def test_chinese_and_japanese_are_refused_with_the_install_line(
    tts: nightingale.TTS, code: str, name: str, package: str
) -> None:
    assert len(tts.languages) == 23
    for _ in range(2):
        with pytest.raises(nightingale.Error) as caught:
            tts.speech_tokens("中", language=code)
        assert str(caught.value).startswith(f"{name} text needs the package {package} (")
        assert str(caught.value).endswith(INSTALL)


@pytest.mark.usefixtures("no_packages")
@pytest.mark.parametrize(
    ("code", "text", "begins", "ends"),
    [
        ("he", "שלום", "Hebrew is spoken without diacritics (", INSTALL),
        ("ru", "мир", "Russian is spoken without stress marks (", "Vuizur/add-stress-to-epub"),
    ],
)
def test_hebrew_and_russian_go_on_with_one_warning(
    tokenizer: Tokenizer,
    checkpoint: Path,
    caplog: pytest.LogCaptureFixture,
    code: str,
    text: str,
    begins: str,
    ends: str,
) -> None:
    plain = tokenizer.encode(text, "ar")[1:]
    again = Tokenizer(checkpoint / MULTILINGUAL_TOKENIZER, dict(LANGUAGES), True)
    for each in (tokenizer, tokenizer, again):
        np.testing.assert_array_equal(each.encode(text, code)[1:], plain)
    (warning,) = warnings(caplog)
    assert warning.startswith(begins)
    assert warning.endswith(ends)


@pytest.mark.usefixtures("no_packages")
def test_the_other_languages_need_no_package(
    tokenizer: Tokenizer, caplog: pytest.LogCaptureFixture
) -> None:
    for code in sorted(LANGUAGES.keys() - {"zh", "ja", "he", "ru"}):
        assert len(tokenizer.encode("La la.", code)) > 1
    assert warnings(caplog) == []


def test_a_checkpoint_without_its_table_refuses_chinese(
    checkpoint: Path, provide: Callable[..., None]
) -> None:
    provide("spacy_pkuseg", pkuseg=Words)
    tokenizer = Tokenizer(checkpoint / MULTILINGUAL_TOKENIZER, dict(LANGUAGES), True)
    with pytest.raises(nightingale.Error, match=r"needs Cangjie5_TC\.json beside the checkpoint's"):
        tokenizer.encode("中", "zh")


@pytest.mark.parametrize("content", [b"[", b"\xff", b'["no tab"]', b"[1]", b"7", b"null"])
def test_a_broken_table_is_named(
    tmp_path: Path, provide: Callable[..., None], content: bytes
) -> None:
    provide("spacy_pkuseg", pkuseg=Words)
    path = tmp_path / CANGJIE_TABLE
    path.write_bytes(content)
    with pytest.raises(nightingale.Error, match="is not a Cangjie table") as caught:
        module.Chinese(path)("中")
    assert str(path) in str(caught.value)


def test_a_segmenter_without_its_model_is_refused_until_it_has_one(
    tmp_path: Path, provide: Callable[..., None]
) -> None:
    network: list[bool] = []

    def pkuseg() -> Words:
        if not network:
            raise ConnectionError("no route to host")
        return Words()

    provide("spacy_pkuseg", pkuseg=pkuseg)
    spell = module.Chinese(table(tmp_path, "日\ta"))
    with pytest.raises(nightingale.Error, match=r"cannot load its model \(no route to host\)"):
        spell("日")
    network.append(True)
    assert spell("日") == "[cj_a][cj_.]"


def test_a_text_the_segmenter_fails_on_is_refused(
    tmp_path: Path, provide: Callable[..., None]
) -> None:
    provide("spacy_pkuseg", pkuseg=lambda: object())
    with pytest.raises(nightingale.Error, match="spacy_pkuseg cannot read this text"):
        module.Chinese(table(tmp_path, "日\ta"))("日")


def test_a_package_that_does_not_start_is_tried_once(
    provide: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    starts: list[str] = []

    def offline() -> None:
        starts.append("started")
        raise OSError("no network")

    provide("dicta_onnx", Dicta=offline)
    provide("russian_text_stresser.text_stresser", RussianTextStresser=offline)
    ends = front_ends()
    for code, text in (("he", "שלום"), ("ru", "мир")):
        assert [ends[code](text) for _ in range(3)] == [text] * 3
    assert len(starts) == 2
    assert warnings(caplog) == [
        "Hebrew is spoken without diacritics, its package does not start (no network): it needs "
        "dicta-1.0.onnx in the checkpoint's folder, see docs/guide/text.md",
        "Russian is spoken without stress marks, its package does not start (no network): it "
        "fetches its dictionary on first use",
    ]


def test_a_text_that_a_package_fails_on_is_spoken_plain(
    provide: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    class Touchy:
        def rewrite(self, text: str) -> str:
            if "x" in text:
                raise KeyError(text)
            return text.upper()

        add_diacritics = stress_text = rewrite

    provide("dicta_onnx", Dicta=Touchy)
    provide("russian_text_stresser.text_stresser", RussianTextStresser=Touchy)
    ends = front_ends()
    for code in ("he", "ru"):
        assert [ends[code](text) for text in ("ax", "bx", "c")] == ["ax", "bx", "C"]
    assert warnings(caplog) == [
        "Hebrew is spoken without diacritics where its package fails: KeyError('ax')",
        "Russian is spoken without stress marks where its package fails: KeyError('ax')",
    ]


def test_the_model_of_hebrew_is_found_in_the_checkpoint(
    checkpoint: Path, tmp_path: Path, provide: Callable[..., None]
) -> None:
    given: list[str] = []

    class Dicta:
        def __init__(self, model_path: str) -> None:
            given.append(model_path)

        def add_diacritics(self, text: str) -> str:
            return text + "\u05b0"

    provide("dicta_onnx", Dicta=Dicta)
    for file in checkpoint.iterdir():
        (tmp_path / file.name).symlink_to(file)
    (tmp_path / "dicta-1.0.int8.onnx").write_bytes(b"never opened here")
    files = find_checkpoint(tmp_path)
    assert files.dicta == tmp_path / "dicta-1.0.int8.onnx"
    tts = nightingale.load(tmp_path, device="cpu")
    assert len(tts.tokenize("שלום.", "he")) == len(tts.tokenize("שלום.", "ar")) + 1
    assert given == [str(files.dicta)]


def at_once(count: int, work: Callable[[], str]) -> list[str]:
    """What `work` gives in that many threads let go together."""
    gate, found = threading.Barrier(count), []

    def run() -> None:
        gate.wait()
        found.append(work())

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@pytest.mark.parametrize("code", ["he", "ja", "ru", "zh"])
def test_threads_that_come_at_once_load_a_package_once(
    tmp_path: Path, provide: Callable[..., None], code: str
) -> None:
    loads: list[int] = []
    calls: list[int] = []

    class Package:
        def __init__(self) -> None:
            loads.append(threading.get_ident())
            time.sleep(0.05)

        def cut(self, text: str) -> list[str]:
            calls.append(threading.get_ident())
            return [text]

        def convert(self, text: str) -> list[dict[str, str]]:
            return [{"orig": each, "hira": each} for each in self.cut(text)]

        def add_diacritics(self, text: str) -> str:
            return self.cut(text)[0]

        stress_text = add_diacritics

    provide("spacy_pkuseg", pkuseg=Package)
    provide("pykakasi", Kakasi=Package)
    provide("dicta_onnx", Dicta=Package)
    provide("russian_text_stresser.text_stresser", RussianTextStresser=Package)
    end = front_ends(table(tmp_path, "日\ta"))[code]
    assert at_once(8, lambda: end("x")) == ["x"] * 8
    assert len(loads) == 1
    assert len(calls) == 8
    if code == "ru":  # its database serves only the thread that opened it
        assert set(calls) == set(loads)


def test_the_space_that_nfkd_makes_of_an_accent_stays(tokenizer: Tokenizer) -> None:
    space = tokenizer.encode_as_is(" ", "en").tolist()[1]
    assert tokenizer.encode("\u00b4a", "en").tolist()[1] == space
    assert tokenizer.encode("\u00b4a", "ko").tolist()[1] != space  # Korean's front-end strips


def test_empty_text_is_refused_and_its_encoding_is_the_tag(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode_as_is("", "fr").tolist() == tokenizer.encode("La", "fr").tolist()[:1]
    for text in ("", " ", "\t\u3000\n"):
        with pytest.raises(ValueError, match="there is no text to speak"):
            tokenizer.encode(text, "fr")
