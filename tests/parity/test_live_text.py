"""Token ids of 2,024 texts against the reference, where it is installed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nightingale.checkpoint import CANGJIE_TABLE, LANGUAGES, MULTILINGUAL_TOKENIZER
from nightingale.text import Tokenizer
from tools.reference.client import run_reference

from . import text_cases, text_runs
from .live import needs_reference

pytestmark = needs_reference

# The official tokenizers and the Cangjie table they were made with; not in this repository.
OFFICIAL = Path(__file__).parents[3] / "shared" / "data"
official = pytest.mark.skipif(not OFFICIAL.is_dir(), reason="the official files are not here")


@pytest.fixture(scope="module")
def cases() -> list[text_cases.Case]:
    pytest.importorskip("pykakasi")
    found = text_cases.text_cases()
    assert len(set(found)) >= 2000
    assert {case.language for case in found} == set(LANGUAGES)
    assert {0, 1, 10_000} <= {len(case.text) for case in found}
    return found


@pytest.fixture(scope="module")
def official_cangjie(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lines = (OFFICIAL / "Cangjie5_TC.txt").read_text(encoding="utf-8").splitlines()
    table = [line for line in lines if "\t" in line][1:]  # the first names the columns
    assert len(table) > 100_000
    path = tmp_path_factory.mktemp("official") / CANGJIE_TABLE
    path.write_text(json.dumps(table), encoding="utf-8")
    return path


def compare(
    cases: list[text_cases.Case], path: Path, cangjie: Path | None = None
) -> list[text_cases.Case]:
    """The cases that differ from the reference, with punctuation normalised or without."""
    job: dict[str, Any] = {"kind": "text_ids", "tokenizer": path}
    job["texts"] = [case.text for case in cases]
    if cangjie is not None:
        job |= {"cangjie": cangjie, "languages": [case.language for case in cases]}
    names = {"normalised": True, "as it is": False}
    reference = run_reference(
        [job | {"name": name, "normalise": normalise} for name, normalise in names.items()]
    )
    languages = {"en": "English"} if cangjie is None else LANGUAGES
    tokenizer = Tokenizer(path, languages, cangjie is not None, cangjie)
    return [
        case
        for name, normalise in names.items()
        for case in text_runs.different(
            tokenizer, cases, text_runs.reference_rows(reference, name), normalise
        )
    ]


def test_ids_of_the_made_up_multilingual_tokenizer_equal_the_reference(
    cases: list[text_cases.Case], checkpoint: Path
) -> None:
    path, cangjie = checkpoint / MULTILINGUAL_TOKENIZER, checkpoint / CANGJIE_TABLE
    assert compare(cases, path, cangjie) == []


def test_ids_of_the_made_up_english_tokenizer_equal_the_reference(
    cases: list[text_cases.Case], checkpoints: Path
) -> None:
    assert compare(cases, checkpoints / "english" / "tokenizer.json") == []


@official
def test_ids_of_the_official_multilingual_tokenizer_equal_the_reference(
    cases: list[text_cases.Case], official_cangjie: Path
) -> None:
    assert compare(cases, OFFICIAL / MULTILINGUAL_TOKENIZER, official_cangjie) == []


@official
def test_ids_of_the_official_english_tokenizer_equal_the_reference(
    cases: list[text_cases.Case],
) -> None:
    assert compare(cases, OFFICIAL / "tokenizer_en_704.json") == []
