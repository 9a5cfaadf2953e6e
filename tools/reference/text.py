"""The reference's text normalisation and tokenizers, as a job."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from unittest import mock

import numpy as np
from chatterbox import mtl_tts, tts, tts_turbo
from chatterbox.models.tokenizers import EnTokenizer, MTLTokenizer
from chatterbox.models.tokenizers import tokenizer as tokenizer_module
from transformers import GPT2Tokenizer

from . import stub_packages
from .tensors import Arrays


def text_ids(
    tokenizer: str | Path,
    texts: Sequence[str],
    languages: Sequence[str] | None = None,
    cangjie: str | Path | None = None,
    normalise: bool = True,
    as_written: bool = False,
) -> Arrays:
    """Token `ids` of all texts end to end, and their `lengths`; no languages: the English model.

    Empty text is never normalised: the reference would put a sentence of its own in its place.
    as_written: what release 0.1.4 does, in which text stays in upper case, is not decomposed and
    Russian has no stress marks; all else in its tokenizer is the same.
    """
    if normalise:
        punc_norm = mtl_tts.punc_norm if languages else tts.punc_norm
        texts = [text and punc_norm(text) for text in texts]
    if languages is None:
        english = EnTokenizer(str(tokenizer))
        rows = [english.encode(text) for text in texts]
    else:
        with (
            ExitStack() as patches,
            stub_packages.installed(),
            mock.patch.object(tokenizer_module, "hf_hub_download", return_value=str(cangjie)),
        ):
            multilingual = MTLTokenizer(str(tokenizer))
            if as_written:
                patches.enter_context(
                    mock.patch.object(tokenizer_module, "add_russian_stress", str)
                )
            plain = not as_written
            rows = [
                multilingual.encode(text, language, lowercase=plain, nfkd_normalize=plain)
                for text, language in zip(texts, languages, strict=True)
            ]
    return _end_to_end(rows)


def byte_level_ids(folder: str | Path, texts: Sequence[str], normalise: bool = True) -> Arrays:
    """As `text_ids`, of Turbo's tokenizer, whose three files are in the folder."""
    if normalise:
        texts = [text and tts_turbo.punc_norm(text) for text in texts]
    tokenizer = GPT2Tokenizer.from_pretrained(str(folder))
    return _end_to_end([tokenizer(text).input_ids for text in texts])


def _end_to_end(rows: Sequence[Sequence[int]]) -> Arrays:
    return {
        "ids": np.concatenate(rows).astype(np.int32),
        "lengths": np.array([len(row) for row in rows], np.int32),
    }


JOBS = {"text_ids": text_ids, "byte_level_ids": byte_level_ids}
