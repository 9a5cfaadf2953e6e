"""The check of words: it finds them in identifiers, comments, documents and file names."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.check_words import ALLOWED, RULES, check, main


def found(folder: Path, path: str, text: str) -> list[tuple[int, str]]:
    """Lines and words that are found in one file."""
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return [(finding.line, finding.rule.word) for finding in check(folder, [path])[0]]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.word)
def test_every_word_is_found(rule: object, tmp_path: Path) -> None:
    path = rule.where[0].replace("*", "planted.md")
    word = rule.word + ("al" if rule.word == "rehears" else "")
    assert found(tmp_path, path, f"One line.\n\nThe {word} is here.\n") == [(3, rule.word)]


@pytest.mark.parametrize(
    "text",
    ["SpeakerTwin", "kTwin", "twin_of(x)", "x.twins", "TWINS", "the twin's", "// Twin", "a-twin"],
)
def test_words_are_found_in_identifiers(text: str, tmp_path: Path) -> None:
    assert found(tmp_path, "csrc/a.cpp", text) == [(1, "twin")]


@pytest.mark.parametrize("text", ["between", "entwine", "twine", "TWINE", "kMostWindows"])
def test_parts_of_other_words_are_not(text: str, tmp_path: Path) -> None:
    assert found(tmp_path, "csrc/a.cpp", text) == []


def test_a_phrase_is_found_across_lines_of_a_comment(tmp_path: Path) -> None:
    text = "int x;\n// A row is the same in any\n// company of rows.\n"
    assert found(tmp_path, "csrc/a.cpp", text) == [(2, "in any company")]


def test_the_name_of_a_file_is_checked(tmp_path: Path) -> None:
    assert found(tmp_path, "csrc/ops/pieces.h", "") == [(0, "piece")]


def test_words_of_one_place_are_free_elsewhere(tmp_path: Path) -> None:
    text = "file.finish();\n"
    assert found(tmp_path, "csrc/nightingale/io/file.cpp", text) == []
    assert found(tmp_path, "csrc/nightingale/ops/linear.cpp", text) == [(1, "finish")]
    assert found(tmp_path, "metal/gemv.metal", text) == [(1, "finish")]
    assert found(tmp_path, "csrc/nightingale/backends/cpu/in.h", "in_place_of = 1;") == []


def test_exceptions_have_a_reason_and_a_rule(tmp_path: Path) -> None:
    assert {allowed.word for allowed in ALLOWED} <= {rule.word for rule in RULES}
    assert all(len(allowed.reason) > 10 for allowed in ALLOWED)
    assert all(rule.why_there for rule in RULES if rule.where != ("*",))
    path = "tools/reference/voice.py"
    assert found(tmp_path, path, "codes = []\ntwin = 1\n") == [(2, "twin")]
    _, left = check(tmp_path, [path])
    assert len(left) == len(ALLOWED) - 1
    assert path not in {allowed.where for allowed in left}


def test_data_is_not_checked(tmp_path: Path) -> None:
    assert found(tmp_path, "tests/words.json", '["twin", "grace"]') == []


def test_the_command_says_where_and_what_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tools.check_words.ROOT", tmp_path)
    (tmp_path / "a.md").write_text("\nIts twin.\n", encoding="utf-8")
    assert main([str(tmp_path / "a.md")]) == 1
    assert capsys.readouterr().out == "a.md:2: 'twin'; write: reference implementation\n"
    (tmp_path / "a.md").write_text("Its reference implementation.\n", encoding="utf-8")
    assert main([str(tmp_path / "a.md")]) == 0
