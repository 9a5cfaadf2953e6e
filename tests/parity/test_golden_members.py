"""Other members of the family than v2 against outputs of the reference that are kept."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import nightingale
from nightingale.checkpoint import find_checkpoint
from nightingale.text import open_tokenizer
from tools.synthetic import write_checkpoint

from . import cases, t3_runs, text_cases, text_runs
from .test_golden import load


@pytest.fixture(scope="module", params=cases.MEMBERS)
def member(request: pytest.FixtureRequest, checkpoints: Path, tmp_path_factory) -> Path:
    folder = checkpoints / request.param
    if not folder.exists():
        folder = tmp_path_factory.mktemp("members") / request.param
        write_checkpoint(folder, model=request.param)
    return folder


def test_logits_and_greedy_tokens_equal_the_reference(member: Path) -> None:
    tts = nightingale.load(member, device="cpu")
    golden = load("members")
    forced, decoded = cases.member_cases(tts.info["t3"]["text_vocabulary"])
    for key, value in cases.logits_digest(t3_runs.logits(tts, forced)).items():
        expected = golden[f"{member.name}/{key}"]
        assert t3_runs.relative_error(value, expected) < t3_runs.LOGITS_BOUND
    assert golden[f"{member.name}/gaps"].min() > 1e-5  # no toss-up among them
    expected = golden[f"{member.name}/tokens"]
    np.testing.assert_array_equal(t3_runs.greedy(tts, decoded), expected)


@pytest.mark.parametrize("member", ["multilingual-v1"], indirect=True)
def test_text_of_v1_is_read_as_release_0_1_4_does(member: Path) -> None:
    kept = [text_cases.text_case(i) for i in text_cases.GOLDEN]
    rows = text_runs.reference_rows(load("members"), "v1")
    if find_spec("pykakasi") is None:
        places = [i for i, case in enumerate(kept) if case.language != "ja"]
        kept, rows = [kept[i] for i in places], [rows[i] for i in places]
    assert len(kept) == len(rows) > 250
    assert text_runs.different(open_tokenizer(find_checkpoint(member)), kept, rows) == []
