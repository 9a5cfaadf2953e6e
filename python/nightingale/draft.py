"""What proposes speech tokens for T3 to check several at a time; it changes none of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from . import _core
from ._core import Error
from .checkpoint import find_t3, holds_model
from .options import LoadOptions
from .torch_file import open_tensors

KINDS = ("ngram", "layers")


class Drafts:
    """The drafts of one model, one for each voice, and how they have done."""

    def __init__(self, choice: str | Path, t3: _core.T3, options: LoadOptions) -> None:
        self.choice = str(choice)
        self.unknown: list[str] = []  # tensors of a draft's file
        self._t3 = t3
        self._model: _core.T3 | None = None
        self._counts = {"utterances": 0, "rounds": 0, "proposed": 0, "accepted": 0}
        if choice not in KINDS:
            path = find_draft(choice)
            self._model, self.unknown = _core.T3.load(
                open_tensors(path), replace(options, bits=None, preset=None)
            )
            _core.check_draft(t3, self._model)

    def in_voice(
        self, speaker: np.ndarray, prompt_tokens: np.ndarray | None, emotion: float
    ) -> _core.Draft:
        """What the core takes to speak in a voice."""
        if self._model is not None:
            voice = self._model.condition(speaker, prompt_tokens, emotion)
            return _core.Draft.model(self._model, voice)
        if self.choice == "layers":
            return _core.Draft.layers(self._t3)
        return _core.Draft.ngram(prompt_tokens)

    def count(self, speculation: Mapping[str, int]) -> None:
        """Adds what came of an utterance that has ended."""
        self._counts["utterances"] += 1
        for name, value in speculation.items():
            self._counts[name] += value

    @property
    def info(self) -> dict[str, str | int]:
        return {"draft": self.choice, **self._counts}


def find_draft(choice: str | Path) -> Path:
    """The T3 file of a draft: itself, or the first that a folder has."""
    path = Path(os.path.expanduser(choice))
    if os.path.isfile(path):  # Path.is_file raises for a name that is too long
        return path
    if not holds_model(path):
        raise Error(
            f"draft must be {', '.join(KINDS)}, or a T3 file or a folder with one, not {choice}"
        )
    return find_t3(path)
