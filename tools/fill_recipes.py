"""Fills the version, address and digest of a release into the recipes of package managers.

    python tools/fill_recipes.py dist/nightingale_tts-0.1.0.tar.gz [--folder packaging]

Takes them from the sdist, changes homebrew/nightingale-tts.rb and conda/recipe.yaml in the folder,
and prints their names.
"""

from __future__ import annotations

import argparse
import hashlib
import re
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "packaging"
SDIST = re.compile(r"nightingale_tts-(\d[\w.]*)\.tar\.gz")
# By file: patterns of what stands there, each with one group for what is replaced.
PLACES = {
    "homebrew/nightingale-tts.rb": {
        "version": r'url "\S+/nightingale_tts-(\S+)\.tar\.gz"',
        "digest": r'sha256 "([0-9a-f]{64})"',
    },
    "conda/recipe.yaml": {
        "version": r'version: "(\S+)"',
        "digest": r'sha256: "([0-9a-f]{64})"',
    },
}


def fill(sdist: Path, folder: Path = FOLDER) -> list[Path]:
    """Fills the recipes in; gives their paths."""
    found = SDIST.fullmatch(sdist.name)
    if found is None:
        raise SystemExit(f"{sdist.name} is not named nightingale_tts-VERSION.tar.gz")
    values = {"version": found[1], "digest": hashlib.sha256(sdist.read_bytes()).hexdigest()}
    filled = []
    for name, places in PLACES.items():
        text = (folder / name).read_text("utf-8")
        for value, pattern in places.items():
            text = _replaced(text, pattern, values[value], name)
        (folder / name).write_text(text, "utf-8")
        filled.append(folder / name)
    return filled


def _replaced(text: str, pattern: str, value: str, name: str) -> str:
    matches = list(re.finditer(pattern, text))
    if len(matches) != 1:
        raise SystemExit(f"{name} has {len(matches)} places for {pattern}; expected one")
    begin, end = matches[0].span(1)
    return text[:begin] + value + text[end:]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("sdist", type=Path)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    args = parser.parse_args()
    for path in fill(args.sdist, args.folder):
        print(path)


if __name__ == "__main__":
    main()
