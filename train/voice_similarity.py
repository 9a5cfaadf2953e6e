"""The similarity of held-out voices and their clones: Resemblyzer's cosine."""

from __future__ import annotations

import statistics
from pathlib import Path

import numpy as np

from .voices import HELD_OUT_VOICES

REFERENCE_SENTENCES = 4  # about ten seconds
CLONED_SENTENCES = 2  # in each clip
CLIPS = 2  # of each clone


def cloning_rows(sentences: dict[str, list[str]]) -> list[dict]:
    """The rows of each held-out voice: its reference recording, and texts for its clone and itself.

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


class SpeakerEmbedder:
    """Resemblyzer, an LSTM speaker encoder."""

    def __init__(self) -> None:
        from resemblyzer import VoiceEncoder

        self._encoder = VoiceEncoder("cpu", verbose=False)

    def embed(self, wav: Path) -> np.ndarray:
        """→ [256], length 1"""
        from resemblyzer import preprocess_wav

        return self._encoder.embed_utterance(preprocess_wav(wav))


def similarities(
    references: dict[str, Path], clones: dict[str, list[Path]], originals: dict[str, list[Path]]
) -> dict[str, dict[str, float]]:
    """By voice: the cosine of its recording with its clones, with clones of other voices, and with
    other recordings of itself, which is the upper bound."""
    embedder = SpeakerEmbedder()
    embedded = {voice: embedder.embed(wav) for voice, wav in references.items()}
    cloned = {voice: [embedder.embed(wav) for wav in wavs] for voice, wavs in clones.items()}
    found = {}
    for voice, reference in embedded.items():
        others = [
            float(reference @ clip)
            for other, clips in cloned.items()
            if other != voice
            for clip in clips
        ]
        same = [float(reference @ clip) for clip in cloned[voice]]
        itself = [float(reference @ embedder.embed(wav)) for wav in originals[voice]]
        found[voice] = {
            "clone": round(statistics.mean(same), 3),
            "others": round(statistics.mean(others), 3),
            "itself": round(statistics.mean(itself), 3),
        }
    return found
