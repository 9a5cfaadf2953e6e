"""How much clones of the voices that were held out sound like them: Resemblyzer's cosine."""

from __future__ import annotations

import statistics
from pathlib import Path

import numpy as np

from .voices import HELD_OUT_VOICES

REFERENCE_SENTENCES = 4  # about ten seconds
CLONED_SENTENCES = 2  # in each clip
CLIPS = 2  # of each clone


def cloning_rows(sentences: dict[str, list[str]]) -> list[dict]:
    """For each voice held out what its recording says, and what its clone and itself say then.

    sentences: by language, of which the last are used.
    """
    rows = []
    for number, (voice, accent) in enumerate(HELD_OUT_VOICES.items()):
        language = accent[:2]
        texts = [
            text for text in reversed(sentences[language]) if len(text) > 25 and text[-1] == "."
        ]
        first = number * (REFERENCE_SENTENCES + CLIPS * CLONED_SENTENCES) % (len(texts) // 2)
        counts = {"reference": REFERENCE_SENTENCES} | {
            f"clip{clip}": CLONED_SENTENCES for clip in range(CLIPS)
        }
        for name, count in counts.items():
            rows.append(
                {
                    "id": f"clone-{voice}-{name}",
                    "set": "clone",
                    "language": language,
                    "lang": accent,
                    "voice": voice,
                    "speed": 1.0,
                    "text": " ".join(texts[first : first + count]),
                }
            )
            first += count
    return rows


def reference_id(voice: str) -> str:
    return f"clone-{voice}-reference"


def is_reference(row: dict) -> bool:
    return row["id"] == reference_id(row["voice"])


class Ear:
    """Resemblyzer: an LSTM that was trained to tell speakers apart."""

    def __init__(self) -> None:
        from resemblyzer import VoiceEncoder

        self._encoder = VoiceEncoder("cpu", verbose=False)

    def hear(self, wav: Path) -> np.ndarray:
        """→ [256], length 1"""
        from resemblyzer import preprocess_wav

        return self._encoder.embed_utterance(preprocess_wav(wav))


def similarities(
    references: dict[str, Path], clones: dict[str, list[Path]], originals: dict[str, list[Path]]
) -> dict[str, dict[str, float]]:
    """By voice: the cosine of its recording to its clones, to other voices' clones, to more of
    itself, which is the most that can be expected."""
    ear = Ear()
    heard = {voice: ear.hear(wav) for voice, wav in references.items()}
    cloned = {voice: [ear.hear(wav) for wav in wavs] for voice, wavs in clones.items()}
    found = {}
    for voice, reference in heard.items():
        others = [
            float(reference @ clip)
            for other, clips in cloned.items()
            if other != voice
            for clip in clips
        ]
        same = [float(reference @ clip) for clip in cloned[voice]]
        itself = [float(reference @ ear.hear(wav)) for wav in originals[voice]]
        found[voice] = {
            "clone": round(statistics.mean(same), 3),
            "others": round(statistics.mean(others), 3),
            "itself": round(statistics.mean(itself), 3),
        }
    return found
