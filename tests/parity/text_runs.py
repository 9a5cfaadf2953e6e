"""Nightingale's side of the text comparison: token ids with the stand-in packages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from unittest import mock

import numpy as np

from nightingale.text import Tokenizer, front_ends, normalise_punctuation
from tools.reference import stub_packages

from .text_cases import Case


@contextmanager
def stand_ins() -> Iterator[None]:
    """Front-ends that have loaded nothing yet and find the stand-ins."""
    with (
        stub_packages.installed(),
        mock.patch.object(front_ends, "_segmenter", front_ends.Once(front_ends._load_segmenter)),
        mock.patch.object(front_ends, "_stresser", front_ends._best_effort()),
    ):
        yield


def reference_rows(arrays: dict[str, np.ndarray], name: str) -> list[np.ndarray]:
    """The ids of each text of a `text_ids` job."""
    return np.split(arrays[f"{name}/ids"], np.cumsum(arrays[f"{name}/lengths"])[:-1])


def different(
    tokenizer: Tokenizer,
    cases: Sequence[Case],
    expected: Sequence[np.ndarray],
    normalise: bool = True,
) -> list[Case]:
    """The cases whose ids are not as expected."""
    with stand_ins():
        return [
            case
            for case, row in zip(cases, expected, strict=True)
            if not np.array_equal(ids(tokenizer, case, normalise), row)
        ]


def ids(tokenizer: Tokenizer, case: Case, normalise: bool) -> np.ndarray:
    """The public call's ids, where it takes the text; empty text is encoded as it is."""
    language = case.language if tokenizer.multilingual else "en"
    if not normalise or not case.text:
        return tokenizer.encode_as_is(case.text, language)
    if case.text.strip():
        return tokenizer.encode(case.text, language)
    blank = normalise_punctuation(case.text, tokenizer.punctuation)
    return tokenizer.encode_as_is(blank, language)
