"""Checks that the files which the documents name in backticks exist.

    python tools/check_paths.py

A path may have stars, and be a folder. Prints what is missing and exits with 1.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = r"\.ci|\.github|bench|csrc|docs|examples|metal|python|tests|tools|train"
PATH = re.compile(rf"`((?:{FOLDERS})/[\w./*-]*)")


def documents(root: Path) -> list[Path]:
    return [*sorted(root.glob("*.md")), *sorted((root / "docs").rglob("*.md"))]


def missing(root: Path = ROOT) -> Iterator[str]:
    """Named paths that lead nowhere, each with its document and line."""
    for document in documents(root):
        for number, line in enumerate(document.read_text("utf-8").splitlines(), 1):
            for path in PATH.findall(line):
                if not any(root.glob(path.rstrip("/."))):
                    yield f"{document.relative_to(root)}:{number}: there is no {path}"


def main() -> int:
    problems = list(missing())
    print("\n".join(problems) or "every path that the documents name exists")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
