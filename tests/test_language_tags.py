"""Languages with a region or a script, wherever a language is given."""

from __future__ import annotations

import numpy as np
import pytest

import nightingale
from nightingale.language_tags import language_code
from nightingale.text import prepare
from nightingale.text.lexicon import Lexicon


@pytest.mark.parametrize(
    ("tag", "code"),
    [
        ("es", "es"), ("es-ES", "es"), ("EN_us", "en"), ("zh-Hans-CN", "zh"), ("es-419", "es"),
        ("nb-NO", "no"), ("nn", "no"), ("iw", "he"), ("cmn-Hans", "zh"), (" fr-CA ", "fr"),
        ("english", "english"), ("en-", "en-"), ("e", "e"), ("es ES", "es es"), ("", ""),
        ("es-ES\nfr", "es-es\nfr"),
    ],
)  # fmt: skip
def test_a_tag_means_its_language(tag: str, code: str) -> None:
    assert language_code(tag) == code


def test_a_model_speaks_a_tag_as_its_language(quick_tts: nightingale.TTS) -> None:
    for tag, code in (("es-ES", "es"), ("PT_br", "pt"), ("nb", "no")):
        tokens = quick_tts.tokenize("Hola 12.", tag)
        np.testing.assert_array_equal(tokens, quick_tts.tokenize("Hola 12.", code))
    with pytest.raises(ValueError, match="unknown language 'xx-ES'"):
        quick_tts.tokenize("Hola.", "xx-ES")


def test_text_is_read_by_the_rules_of_the_tag(quick_tts: nightingale.TTS) -> None:
    assert nightingale.normalize("12", "es-MX") == nightingale.normalize("12", "es") == "doce"
    assert prepare("El 12.", "es-MX")[0].said == prepare("El 12.", "es")[0].said
    document = "<speak>One. <lang xml:lang='es_MX'>El 12.</lang></speak>"
    assert [s.style.language for s in quick_tts.prepare(document)] == [None, "es"]


def test_a_section_of_a_lexicon_may_be_a_tag(tmp_path) -> None:
    file = tmp_path / "words.txt"
    file.write_text("[pt-BR]\nWi-Fi = uaifai\n", encoding="utf-8")
    assert str(Lexicon.of(file).applied("Wi-Fi", "pt")) == "uaifai"
    assert str(Lexicon.of(file).applied("Wi-Fi", "en")) == "Wi-Fi"
