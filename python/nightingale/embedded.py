"""The model that comes with the package."""

from __future__ import annotations

from pathlib import Path

from .checkpoint import FAMILIES

FOLDER = Path(__file__).with_name("assets")


def embedded_model() -> Path | None:
    """Its folder; None where the package was built of sources without it."""
    names = [name for family in FAMILIES for name in family.t3]
    return FOLDER if any((FOLDER / name).is_file() for name in names) else None
