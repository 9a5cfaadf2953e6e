"""Keyword arguments of the public functions.

Written by tools/generate_options.py from options.py; do not edit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from pathlib import Path

    from .text.lexicon import LexiconSource
    from .voice import Voice


class LoadOverrides(TypedDict, total=False):
    variant: str | None
    preset: str | None
    bits: int | None
    dtype: str | None
    kv_bits: int | None
    kv_budget: float | None
    draft: str | Path | None
    device: str
    threads: int | None
    cache: int | None
    offline: bool
    progress: bool | None


class SpeechOverrides(TypedDict, total=False):
    voice: Voice | str | Path | None
    language: str
    lexicon: LexiconSource | Path | None
    ssml: bool
    markdown: bool
    html: bool
    seed: int
    speed: float
    temperature: float
    cfg_weight: float | None
    exaggeration: float | None
    repetition_penalty: float | None
    min_p: float | None
    top_p: float | None
    top_k: int | None
    max_tokens: int
    steps: int | None
    first_chunk: int | None
    chunk: int
    overlap: int
    context: int | None


class ConversionOverrides(TypedDict, total=False):
    voice: Voice | str | Path | None
    seed: int
    speed: float
    steps: int | None


class ConversionStreamOverrides(ConversionOverrides, total=False):
    first_chunk: int | None
    chunk: int
    overlap: int
    context: int | None
