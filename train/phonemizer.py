"""Phonemes for the teacher."""

from __future__ import annotations

import re

ESPEAK = {"es": "es", "fr": "fr-fr", "it": "it", "pt": "pt-br"}
MAX_PHONEMES = 480  # the teacher's limit is 510


class Phonemizer:
    """English by hibari, the other languages by espeak-ng, loaded on first use."""

    def __init__(self) -> None:
        self._readers: dict[str, object] = {}

    def __call__(self, text: str, accent: str) -> str:
        """accent: en-us, en-gb, es, fr, it, pt"""
        if accent not in self._readers:
            self._readers[accent] = _reader(accent)
        found = self._readers[accent](text)
        phonemes = found[0] if isinstance(found, tuple) else found
        phonemes = " ".join(re.sub("[¿¡]", "", phonemes).split())
        mark = text.rstrip("\"'»” ")[-1:]
        if mark in (".", "?", "!") and phonemes[-1:] not in (".", "?", "!"):
            phonemes += mark  # lost after a single letter
        return phonemes


def _reader(accent: str) -> object:
    if accent.startswith("en"):
        from hibari.g2p import G2P

        return G2P(british=accent == "en-gb")
    from misaki.espeak import EspeakG2P

    return EspeakG2P(language=ESPEAK[accent])
