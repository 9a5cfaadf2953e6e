"""How multilingual models read: the case of letters, NFKD, and which languages are transformed."""

from __future__ import annotations

import json
from pathlib import Path
from unicodedata import normalize

import pytest

import nightingale
from nightingale.checkpoint import CANGJIE_TABLE, LANGUAGES
from nightingale.family import AS_WRITTEN, FULL_CASE, LOWER_CASE, MULTILINGUAL_TOKENIZER
from nightingale.text import Tokenizer

from .folders import SETTINGS, without
from .parity.text_runs import stand_ins

KINDS = (LOWER_CASE, FULL_CASE, AS_WRITTEN)


@pytest.fixture(scope="module")
def tokenizers(checkpoint: Path) -> dict[str, Tokenizer]:
    path, table = checkpoint / MULTILINGUAL_TOKENIZER, checkpoint / CANGJIE_TABLE
    return {kind: Tokenizer(path, dict(LANGUAGES), True, table, None, kind) for kind in KINDS}


def read(tokenizers: dict[str, Tokenizer], text: str, language: str) -> list[str]:
    with stand_ins():
        return [tokenizers[kind].read_ids(text, language)[0] for kind in KINDS]


def test_case_and_decomposition(tokenizers: dict[str, Tokenizer]) -> None:
    assert read(tokenizers, "Né ﬁn", "fr") == ["ne\u0301 fin", "Ne\u0301 fin", "N\xe9 ﬁn"]


def test_which_languages_are_transformed(tokenizers: dict[str, Tokenizer]) -> None:
    lower, full, as_written = read(tokenizers, "한", "ko")
    assert lower == full == as_written == "\u1112\u1161\u11ab"
    # Korean's own reading takes off the space at the end.
    assert [text.endswith(" ") for text in read(tokenizers, "한 ", "ko")] == [False, True, False]
    russian = read(tokenizers, "Вода", "ru")
    assert russian[0] != "вода"  # with its stress
    assert russian[1].casefold() == russian[0]
    assert russian[2] == "Вода"


def test_chinese_is_in_cangjie_whatever_the_preprocessing(tokenizers: dict[str, Tokenizer]) -> None:
    lower, full, as_written = read(tokenizers, "中A", "zh")
    assert lower.startswith("[cj_")
    assert lower.endswith(("[cj_.]a", "[cj_.] a"))
    assert full == as_written == lower[:-1] + "A"
    for tokenizer in tokenizers.values():
        with stand_ins():
            encoded = tokenizer.encode_words("中国 É", "zh")
        words = [normalize("NFC", word).lower() for word in encoded.words]
        assert words == ["中", "国", "é"]


def test_the_bound_of_a_count_holds(tokenizers: dict[str, Tokenizer]) -> None:
    for text in ("ÀÉ; … ﬁ", "\uff26\uff35", "½ ㎏"):
        for tokenizer in tokenizers.values():
            assert tokenizer.count(text, "fr") <= tokenizer.count_at_most(text, "fr")


def test_settings_choose_how_a_model_reads(
    checkpoint: Path, tmp_path: Path, tts: nightingale.TTS
) -> None:
    content = json.loads((checkpoint / SETTINGS).read_text("utf-8"))
    without(checkpoint, tmp_path, SETTINGS)
    (tmp_path / SETTINGS).write_text(json.dumps(content | {"text_preprocessing": FULL_CASE}))
    cased = nightingale.load(tmp_path, device="cpu")
    assert cased.tokenize("so").tolist() != tts.tokenize("so").tolist()  # a capital first
    assert cased.tokenize("1 so").tolist() == tts.tokenize("1 so").tolist()
