"""Hebrew: vowels and other diacritics, which are seldom written, put in."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from ...checkpoint import DICTA_MODELS
from .packages import INSTALL, BestEffort, FrontEnd


def hebrew(model: Path | None) -> FrontEnd:
    """Adds diacritics where dicta_onnx is installed and has its model."""
    needs = f"it needs {DICTA_MODELS[0]} in the checkpoint's folder, see docs/text.md"
    return BestEffort("Hebrew", "diacritics", INSTALL, needs, partial(_start, model))


def _start(model: Path | None) -> FrontEnd:
    from dicta_onnx import Dicta

    dicta = Dicta() if model is None else Dicta(str(model))
    return dicta.add_diacritics
