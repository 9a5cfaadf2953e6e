"""How near a voice that Nightingale bakes must come to the reference's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import nightingale

COSINE_BOUND = 0.9999
MEL_BOUND = 1e-3  # of max |difference|
TOKEN_BOUND = 0.995  # share of equal tokens, over all recordings
BOUNDARY = 0.5  # a digit is rounded up or down there
BOUNDARY_BOUND = 1e-3
DIGITS = 3 ** np.arange(8)

TOKENS = {"cond_prompt_speech_tokens": "cond_prompt_code", "prompt_token": "prompt_code"}


@dataclass(frozen=True)
class Agreement:
    """One recording's voice beside the reference's."""

    speaker: float  # cosine
    x_vector: float  # cosine
    mel: float  # max |difference|
    tokens: int
    differing: int
    margin: float  # of the differing digits: the largest distance from a boundary

    def __str__(self) -> str:
        return (
            f"speaker {self.speaker:.8f}, x-vector {self.x_vector:.8f}, mel {self.mel:.2e}, "
            f"{self.differing} of {self.tokens} tokens differ, by {self.margin:.1e} at most"
        )


def agreement(voice: nightingale.Voice, expected: dict[str, np.ndarray]) -> Agreement:
    """expected: what the reference's bake gives, its mel as long as the voice's."""
    differing = tokens = 0
    margin = 0.0
    for name, code in TOKENS.items():
        found, wanted = getattr(voice, name), expected[name]
        assert found.shape == wanted.shape, f"{name}: {found.shape}, expected {wanted.shape}"
        different = digits(found) != digits(wanted)
        distance = np.abs(np.abs(expected[code]) - BOUNDARY)
        margin = max(margin, float(distance[different].max(initial=0.0)))
        differing += int(different.any(axis=1).sum())
        tokens += len(wanted)
    return Agreement(
        cosine(voice.speaker_emb, expected["speaker_emb"]),
        cosine(voice.embedding, expected["embedding"]),
        mel_error(voice.prompt_feat, expected["prompt_feat"]),
        tokens,
        differing,
        margin,
    )


def assert_same_voice(found: Agreement, name: str) -> None:
    assert found.speaker >= COSINE_BOUND, f"{name}: {found}"
    assert found.x_vector >= COSINE_BOUND, f"{name}: {found}"
    assert found.mel <= MEL_BOUND, f"{name}: {found}"
    assert found.margin <= BOUNDARY_BOUND, f"{name}: {found}"


def assert_same_tokens(found: dict[str, Agreement]) -> None:
    """Over all recordings: one token of a short one would be more than half a percent of it."""
    differing = sum(each.differing for each in found.values())
    tokens = sum(each.tokens for each in found.values())
    assert 1 - differing / tokens >= TOKEN_BOUND, f"{differing} of {tokens} tokens differ"


def assert_varied(expected: dict[str, dict[str, np.ndarray]]) -> None:
    """A comparison of voices that are all alike, or of tokens that never change, shows nothing."""
    for name, voice in expected.items():
        for tokens in (voice["prompt_token"], voice["cond_prompt_speech_tokens"]):
            assert len(np.unique(tokens)) > len(tokens) / 2, name
            assert np.ptp(digits(tokens), axis=0).min() > 0, name
        for other, another in expected.items():
            if other != name:
                assert cosine(voice["speaker_emb"], another["speaker_emb"]) < 0.99, (name, other)
                assert cosine(voice["embedding"], another["embedding"]) < 0.99, (name, other)


def digits(tokens: np.ndarray) -> np.ndarray:
    """[n] to [n, 8] of 0, 1 and 2."""
    return tokens[:, None] // DIGITS % 3


def cosine(found: np.ndarray, expected: np.ndarray) -> float:
    assert found.shape == expected.shape, f"{found.shape}, expected {expected.shape}"
    left, right = found.astype(np.float64), expected.astype(np.float64)
    return float(left @ right / (np.linalg.norm(left) * np.linalg.norm(right)))


def mel_error(found: np.ndarray, expected: np.ndarray) -> float:
    assert found.shape == expected.shape, f"mel: {found.shape}, expected {expected.shape}"
    return float(np.abs(found - expected).max())
