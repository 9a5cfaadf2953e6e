"""Writes python/nightingale/_core.pyi, the types of the compiled core, with nanobind's generator.

    python tools/generate_stubs.py [--check]

Run it after a change of csrc/bindings, in an environment where the new core is installed. With
--check nothing is written, and the exit status is 1 where the file is out of date.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
STUB = ROOT / "python" / "nightingale" / "_core.pyi"
WRITTEN_BY = "# Written by tools/generate_stubs.py from csrc/bindings; do not edit.\n\n"
# Ops of single backends, only for tests: they are not part of what is typed.
TESTING = "\nfrom nightingale._core import ops as ops\n"


def stub() -> str:
    """The types of the core that `import nightingale` finds."""
    from nanobind.stubgen import StubGen

    from nightingale import _core

    generator = StubGen(_core)
    generator.put(_core)
    lines = generator.get().replace(TESTING, "").splitlines()
    return WRITTEN_BY + "\n".join(line.rstrip() for line in lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit with 1 if out of date"
    )
    check = parser.parse_args().check
    text = stub()
    if STUB.is_file() and STUB.read_text("utf-8") == text:
        return 0
    if check:
        print(f"{STUB.relative_to(ROOT)} is out of date; run: python tools/generate_stubs.py")
        return 1
    STUB.write_text(text, "utf-8")
    print(f"{STUB.relative_to(ROOT)} written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
