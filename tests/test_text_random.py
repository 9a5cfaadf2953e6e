"""Random strings in 14 scripts are read without a fault and without losing a letter or number."""

from __future__ import annotations

import pytest

from nightingale.checkpoint import LANGUAGES
from nightingale.text import Tokenizer
from tools.random_texts import EMBEDDED, SCRIPTS, faults, texts


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer(EMBEDDED, LANGUAGES, multilingual=True)


def all_faults(count: int, seed: int, tokenizer: Tokenizer) -> list[str]:
    return [
        f"{language} {text!r}: {fault}"
        for language, text in texts(count, seed)
        for fault in faults(text, language, tokenizer)
    ]


def test_the_strings_are_in_fourteen_scripts_and_every_language() -> None:
    drawn = list(texts(2000, seed=3))
    assert len(SCRIPTS) == 14
    assert all(any(set(letters) & set(text) for _, text in drawn) for letters in SCRIPTS.values())
    assert {language for language, _ in drawn} == set(LANGUAGES)


def test_three_thousand_random_strings_lose_nothing(tokenizer: Tokenizer) -> None:
    assert all_faults(3000, 1, tokenizer) == []


@pytest.mark.nightly
def test_a_hundred_thousand_random_strings_lose_nothing(tokenizer: Tokenizer) -> None:
    assert all_faults(100_000, 2, tokenizer) == []


def test_a_lost_letter_is_a_fault(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.random_texts.speakable", lambda segments, reads: segments[:-1])
    assert faults("Hola. Adiós.", "es", tokenizer) != []
