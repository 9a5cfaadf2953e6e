"""Token ids of 2,024 texts, and of 3,254 with Turbo's tokenizer, against the reference, where it is
installed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from nightingale.checkpoint import CANGJIE_TABLE, LANGUAGES
from nightingale.family import MULTILINGUAL_TOKENIZER
from nightingale.text import Tokenizer
from nightingale.text.byte_level import VOCABULARY, ByteLevelTokenizer
from tools.reference.client import run_reference
from tools.synthetic.byte_level import TAGS, write_byte_level

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


def compare_byte_level(cases: list[text_cases.Case], folder: Path) -> list[text_cases.Case]:
    """As `compare`, of Turbo's tokenizer; each text comes with tags in it too."""
    tagged = [
        case._replace(text=case.text.replace(" ", TAGS[i % len(TAGS)] + " ", 2))
        for i, case in enumerate(cases)
    ]
    found = [case._replace(language="en") for case in {*cases, *tagged}]
    assert len(found) >= 3000
    names = {"normalised": True, "as it is": False}
    job = {"kind": "byte_level_ids", "folder": folder, "texts": [case.text for case in found]}
    reference = run_reference(
        [job | {"name": name, "normalise": normalise} for name, normalise in names.items()]
    )
    tokenizer = ByteLevelTokenizer(folder / VOCABULARY, {"en": "English"})
    return [
        case
        for name, normalise in names.items()
        for case in text_runs.different(
            tokenizer, found, text_runs.reference_rows(reference, name), normalise
        )
    ]


def test_ids_of_the_made_up_byte_level_tokenizer_equal_the_reference(
    cases: list[text_cases.Case], tmp_path: Path
) -> None:
    write_byte_level(tmp_path)
    assert compare_byte_level(cases, tmp_path) == []


@official
def test_ids_of_gpt2s_tokenizer_with_tags_equal_the_reference(
    cases: list[text_cases.Case], tmp_path: Path
) -> None:
    write_byte_level(tmp_path)
    for file in (OFFICIAL / "gpt2").iterdir():
        shutil.copyfile(file, tmp_path / file.name)
    assert compare_byte_level(cases, tmp_path) == []
