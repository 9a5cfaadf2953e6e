"""Token ids against those of the reference that are kept beside this file."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from nightingale.checkpoint import find_checkpoint
from nightingale.text import Tokenizer

from . import text_cases, text_runs
from .test_golden import load


def tokenizer_of(folder: Path) -> Tokenizer:
    files = find_checkpoint(folder)
    return Tokenizer(files.tokenizer, files.languages, files.family.multilingual, files.cangjie)


def test_ids_of_the_multilingual_model_equal_the_reference(checkpoints: Path) -> None:
    cases = [text_cases.text_case(i) for i in text_cases.GOLDEN]
    rows = text_runs.reference_rows(load("text"), "multilingual")
    assert len(cases) == len(rows) == 290
    if find_spec("pykakasi") is None:
        kept = [i for i, case in enumerate(cases) if case.language != "ja"]
        cases, rows = [cases[i] for i in kept], [rows[i] for i in kept]
    assert text_runs.different(tokenizer_of(checkpoints / "multilingual"), cases, rows) == []


def test_ids_of_the_english_model_equal_the_reference(checkpoints: Path) -> None:
    cases = [text_cases.text_case(i) for i in text_cases.ENGLISH_GOLDEN]
    rows = text_runs.reference_rows(load("text"), "english")
    assert len(cases) == len(rows) == 73
    assert text_runs.different(tokenizer_of(checkpoints / "english"), cases, rows) == []
