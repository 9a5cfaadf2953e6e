"""What the speech tokenizer is trained for, and how it is judged.

Its rounded digits must rebuild the mel and the pitch for a decoder that is told who speaks, spell
the text, and tell which phoneme is being said; half of them come of the same words as another
speaker would say them, whose digits should be the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from . import pitch
from .alignment import IGNORED, Phonemes
from .augmentation import as_another_speaker
from .data import Batch, Row, Tokens
from .features import HOP, mel_16k, mel_24k, resample_16k, samples_16k
from .masked import masked_mean
from .networks.speech_tokenizer import (
    CODES,
    SpeechTokenizer,
    quantise,
    token_ids,
    within,
)
from .networks.tokenizer_heads import Heads, disagreement, level_usage, redundancy
from .spelling import Letters, collapse, edits
from .surprise import surprise

TOKEN = 960  # samples at 24 kHz

# What each loss counts. Words count most: the flow can guess at the sound of a token, not at what
# it says.
WEIGHTS = {
    "mel": 1.0,
    "detail": 0.5,
    "pitch": 1.0,
    "text": 0.8,
    "phonemes": 1.5,
    "same": 0.2,
    "usage": 1.0,
    "redundancy": 0.1,
    "probe": 0.1,  # only the probe learns by it
}
LEAST_USAGE = 0.9  # of a digit's levels

SUMS = (
    "tokens",
    "pairs",
    "letters",
    "mel",
    "pitch",
    "named",
    "phonemes",
    "probe",
    "change",
    "equal",
    "digits",
    "errors",
)


class Wording:
    """What is said in the rows of a corpus, in letters and in phonemes."""

    def __init__(self, rows: Sequence[Row], device: str | torch.device) -> None:
        self.letters = Letters({row.text for row in rows})
        self.phonemes = Phonemes(rows)
        said = [self.phonemes.heard(row, row.samples // TOKEN) for row in rows]
        self._said = Tokens.of_rows(said, str(device))

    def phonemes_of(self, rows: Tensor, count: int) -> Tensor:
        """rows: [B] numbers → [B, count] int64, IGNORED past each row's end"""
        said, counts = self._said.batch(rows, count)
        return said.masked_fill(~within(counts, count), IGNORED)


@dataclass(frozen=True, eq=False)
class Targets:
    mask: Tensor  # [B, T] bool, the row's tokens
    mel: Tensor  # [B, 2T, 80]
    pitch: Tensor  # [B, 2T, 48]
    letters: list[list[int]]
    phonemes: Tensor  # [B, T], or IGNORED


def hear(wave: Tensor, samples: Tensor) -> tuple[Tensor, Tensor]:
    """What the tokenizer hears of 24 kHz rows: its mel, [B, frames, 128], and their frames, [B]."""
    at_16k, length = resample_16k(wave), samples_16k(samples)
    return mel_16k(at_16k, length), length // HOP


def targets_of(batch: Batch, wording: Wording) -> Targets:
    count = batch.wave.shape[1] // TOKEN
    return Targets(
        mask=within(batch.samples // TOKEN, count),
        mel=mel_24k(batch.wave, batch.samples)[:, : 2 * count],
        pitch=pitch.salience(resample_16k(batch.wave))[:, : 2 * count],
        letters=[wording.letters.numbers(text) for text in batch.text],
        phonemes=wording.phonemes_of(batch.row, count),
    )


def losses(
    tokenizer: SpeechTokenizer,
    heads: Heads,
    batch: Batch,
    wording: Wording,
    generator: torch.Generator,
) -> dict[str, Tensor]:
    """By the names of WEIGHTS."""
    targets = targets_of(batch, wording)
    mask, count = targets.mask, targets.mask.shape[1]
    mel, frames = hear(batch.wave, batch.samples)
    other_mel = as_another_speaker(batch.wave, batch.samples, generator)
    code = tokenizer(torch.cat([mel, other_mel]), frames.repeat(2))
    own, other = code.digits[:, :count].chunk(2)
    coin = torch.rand(len(own), 1, 1, device=own.device, generator=generator) < 0.5
    digits = quantise(torch.where(coin, own, other))
    mel, salience = heads.mel(digits, mask, batch.voice)
    unforeseen = functional.cross_entropy(
        heads.probe(digits).mT, token_ids(digits)[:, 1:], reduction="none"
    )
    frame_mask = mask.repeat_interleave(2, 1)
    return {
        "mel": masked_mean((mel - targets.mel).abs(), frame_mask),
        "detail": detail_loss(mel - targets.mel, frame_mask),
        "pitch": masked_mean((salience - targets.pitch).abs(), frame_mask),
        "text": text_loss(heads.text(digits, mask), mask, targets.letters),
        "phonemes": surprise(heads.phonemes(digits, mask), targets.phonemes),
        "same": disagreement(own, other, mask),
        "usage": functional.relu(LEAST_USAGE - level_usage(own, mask)).mean(),
        "redundancy": redundancy(own, mask),
        "probe": masked_mean(unforeseen, mask[:, 1:]),
    }


def detail_loss(difference: Tensor, mask: Tensor) -> Tensor:
    """How steps to the next frame and to the next band differ: harmonics, which a mean blurs."""
    in_time = masked_mean(difference.diff(dim=1).abs(), mask[:, 1:])
    return in_time + masked_mean(difference.diff(dim=2).abs(), mask)


def text_loss(logits: Tensor, mask: Tensor, letters: list[list[int]]) -> Tensor:
    """CTC by letter; texts that do not fit in their sound count nothing."""
    flat = torch.tensor([letter for word in letters for letter in word], device=logits.device)
    return functional.ctc_loss(
        logits.log_softmax(-1).transpose(0, 1),
        flat,
        2 * mask.sum(1),
        torch.tensor([len(word) for word in letters], device=logits.device),
        zero_infinity=True,
    )


class Validation:
    """Sums up over batches of sound not trained on."""

    def __init__(self) -> None:
        self._sums: dict[str, float] = dict.fromkeys(SUMS, 0.0)
        self._usage = torch.zeros(CODES)

    @torch.inference_mode()
    def add(
        self,
        tokenizer: SpeechTokenizer,
        heads: Heads,
        batch: Batch,
        wording: Wording,
        generator: torch.Generator,
    ) -> None:
        targets, sums = targets_of(batch, wording), self._sums
        mask, count = targets.mask, targets.mask.shape[1]
        mel, frames = hear(batch.wave, batch.samples)
        other_mel = as_another_speaker(batch.wave, batch.samples, generator)
        own, other = (tokenizer(x, frames).digits[:, :count].round() for x in (mel, other_mel))
        ids, other_ids = token_ids(own), token_ids(other)
        total, pairs = mask.sum().item(), mask[:, 1:].sum().item()
        frame_mask = mask.repeat_interleave(2, 1)
        mel, salience = heads.mel(own, mask, batch.voice)
        sums["mel"] += total * masked_mean((mel - targets.mel).abs(), frame_mask).item()
        sums["pitch"] += total * pitch.agreement(salience, targets.pitch, frame_mask)
        named = heads.phonemes(own, mask).argmax(-1) == targets.phonemes
        sums["named"] += named.sum().item()
        sums["phonemes"] += (targets.phonemes != IGNORED).sum().item()
        unforeseen = functional.cross_entropy(heads.probe(own).mT, ids[:, 1:], reduction="none")
        sums["probe"] += (unforeseen * mask[:, 1:]).sum().item()
        sums["change"] += ((ids.diff(dim=1) != 0) & mask[:, 1:]).sum().item()
        sums["equal"] += ((ids == other_ids) & mask).sum().item()
        sums["digits"] += ((own == other).float().mean(-1) * mask).sum().item()
        sums["tokens"] += total
        sums["pairs"] += pairs
        self._usage += torch.bincount(ids[mask].cpu(), minlength=CODES)
        best = heads.text(own, mask).argmax(-1) * frame_mask
        for found, true in zip(best.tolist(), targets.letters, strict=True):
            sums["errors"] += edits(collapse(found), true)
            sums["letters"] += len(true)

    def summary(self) -> dict[str, float]:
        sums, share = self._sums, self._usage / self._usage.sum()
        entropy = -(share * share.clamp_min(1e-12).log()).sum().item()
        by_token = {name: sums[name] / max(1, sums["tokens"]) for name in sums}
        by_pair = {name: sums[name] / max(1, sums["pairs"]) for name in sums}
        return {
            "mel_l1": by_token["mel"],
            "pitch_found": by_token["pitch"],
            "letter_error_rate": sums["errors"] / max(1, sums["letters"]),
            "phonemes_named": sums["named"] / max(1, sums["phonemes"]),
            "codes_used": int((self._usage > 0).sum()),
            "code_perplexity": float(np.exp(entropy)),
            "least_digit_entropy": self._least_digit_entropy(),
            "change_rate": by_pair["change"],
            "tokens_as_another_speaker": by_token["equal"],
            "digits_as_another_speaker": by_token["digits"],
            "probe_bits": by_pair["probe"] / float(np.log(2)),
        }

    def _least_digit_entropy(self) -> float:
        """1 where every digit has its levels as often."""
        cube = (self._usage / self._usage.sum()).reshape((3,) * 8)
        sides = [cube.sum([d for d in range(8) if d != digit]) for digit in range(8)]
        return min(-(p * p.clamp_min(1e-12).log()).sum().item() for p in sides) / float(np.log(3))
