"""Checks that the files which the documents name in backticks exist, and that the repository's
root holds nothing but what belongs there.

    python tools/check_paths.py

A path may have stars, and be a folder. Prints what is wrong and exits with 1.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = r"\.ci|\.github|bench|csrc|docs|examples|metal|packaging|python|tests|tools|train"
PATH = re.compile(rf"`((?:{FOLDERS})/[\w./*-]*)")

# What may stand in the repository's root.
AT_THE_ROOT = {
    *FOLDERS.replace("\\", "").split("|"),
    *("README.md", "LICENSE", "THIRD_PARTY_NOTICES.md", "CHANGELOG.md"),
    *("CONTRIBUTING.md", "SECURITY.md", "pyproject.toml", "CMakeLists.txt"),
    *(".gitignore", ".clang-format", ".pre-commit-config.yaml"),
}


def documents(root: Path) -> list[Path]:
    return [*sorted(root.glob("*.md")), *sorted((root / "docs").rglob("*.md"))]


def missing(root: Path = ROOT) -> Iterator[str]:
    """Named paths that lead nowhere, each with its document and line."""
    for document in documents(root):
        for number, line in enumerate(document.read_text("utf-8").splitlines(), 1):
            for path in PATH.findall(line):
                if not any(root.glob(path.rstrip("/."))):
                    yield f"{document.relative_to(root)}:{number}: there is no {path}"


def strays(files: Iterable[str]) -> Iterator[str]:
    """Of the files of a repository, what stands in its root and does not belong there."""
    for name in sorted({file.split("/")[0] for file in files} - AT_THE_ROOT):
        yield f"{name} does not belong in the repository's root"


def tracked() -> list[str]:
    command = ["git", "ls-files"]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()


def main() -> int:
    problems = [*missing(), *strays(tracked())]
    print("\n".join(problems) or "every path that the documents name exists")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
