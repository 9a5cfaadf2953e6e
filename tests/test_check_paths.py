"""The check of the paths that documents name."""

from __future__ import annotations

from pathlib import Path

from tools.check_paths import missing, strays


def test_a_path_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "csrc" / "ops").mkdir(parents=True)
    (tmp_path / "csrc" / "ops" / "norm.h").write_text("")
    (tmp_path / "docs" / "guide").mkdir(parents=True)
    named = "In `csrc/ops/norm.h`, `csrc/ops/`, `csrc/*/norm.*`, `elsewhere/a.h` and `csrc/ops`.\n"
    (tmp_path / "README.md").write_text(named)
    assert list(missing(tmp_path)) == []
    (tmp_path / "docs" / "guide" / "a.md").write_text("One\n\n`csrc/ops/gone.h`, `tools/x.py`\n")
    assert list(missing(tmp_path)) == [
        "docs/guide/a.md:3: there is no csrc/ops/gone.h",
        "docs/guide/a.md:3: there is no tools/x.py",
    ]


def test_what_does_not_belong_in_the_root_is_found() -> None:
    files = ["README.md", ".ci/run", "csrc/nightingale/error.h", "NOTES.txt", "build/a.o"]
    assert [line.split()[0] for line in strays(files)] == ["NOTES.txt", "build"]
