"""The training objective and the validation figures of the speech tokenizer.

From its rounded digits the heads reconstruct mel and pitch (given the speaker), the letters of the
text and the phoneme of every 20 ms. Half of the digits are computed from the same speech with
another speaker's pitch and room; both sets of digits should be equal. Speech should use all tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from . import pitch_salience
from .alignment import PAUSES, TEACHER_FRAMES_PER_TOKEN, PhonemeVocabulary
from .augmentation import mel_of_other_speaker
from .ctc_text import Alphabet, ctc_collapse
from .data import Batch, Row, Tokens
from .features import HOP, mel_16k, mel_24k, resample_16k, samples_16k
from .masking import IGNORED, length_mask, masked_mean
from .metrics import edit_distance
from .networks.speech_tokenizer import CODES, SpeechTokenizer, quantize, token_ids
from .networks.tokenizer_heads import Heads, code_usage, disagreement, level_usage, redundancy

TOKEN = 960  # samples at 24 kHz
FRAMES = 2  # mel frames of a token

# Weights of the losses. Words have the largest: the flow can infer the sound of a token, but not
# its phoneme.
WEIGHTS = {
    "mel": 1.0,
    "detail": 0.5,
    "pitch": 1.0,
    "text": 0.8,
    "phonemes": 1.5,
    "same": 0.2,
    "usage": 1.0,
    "range": 0.1,
    "codes": 0.5,
    "redundancy": 0.1,
    "probe": 0.1,  # trains the probe only
}
MAX_ACTIVATION = 2.0  # beyond, a digit has hardly a gradient and may never change again
MIN_USAGE = 0.9  # entropy of a digit's levels
MIN_CODE_USAGE = 0.95  # entropy of the tokens of speech; about the most that a batch can show

SUMS = (
    "tokens",
    "pairs",
    "letters",
    "mel",
    "pitch",
    "named",
    "frames",
    "named_once",
    "phonemes",
    "probe",
    "change",
    "equal",
    "digits",
    "errors",
)


class Transcripts:
    """The letters and phonemes of the rows of a corpus."""

    def __init__(self, rows: Sequence[Row], device: str | torch.device) -> None:
        self.letters = Alphabet({row.text for row in rows})
        self.phonemes = PhonemeVocabulary(rows)
        # A token is longer than the shortest phonemes: labels of tokens would leave them out.
        frame = TEACHER_FRAMES_PER_TOKEN / FRAMES
        labels = [self.phonemes.labels(row, row.samples // TOKEN * FRAMES, frame) for row in rows]
        self._labels = Tokens.of_rows(labels, str(device))
        silent = [phoneme in PAUSES for phoneme in self.phonemes.inventory]
        self._silent = torch.tensor(silent, device=device)

    def phonemes_of(self, rows: Tensor, tokens: int) -> Tensor:
        """rows: [B] numbers → [B, 2 tokens] int64, IGNORED past each row's end"""
        count = FRAMES * tokens
        labels, counts = self._labels.batch(rows, count)
        return labels.masked_fill(~length_mask(counts, count), IGNORED)

    def is_sound(self, phonemes: Tensor) -> Tensor:
        """Whether labels of `phonemes_of` are neither pauses nor unknown."""
        return ~self._silent[phonemes.clamp_min(0)] & (phonemes != IGNORED)


@dataclass(frozen=True, eq=False)
class Targets:
    mask: Tensor  # [B, T] bool, false for padding
    mel: Tensor  # [B, 2T, 80]
    pitch: Tensor  # [B, 2T, 48]
    letters: list[list[int]]
    phonemes: Tensor  # [B, 2T], or IGNORED
    sound: Tensor  # [B, T] bool, false in pauses and where the phonemes are unknown


def tokenizer_inputs(wave: Tensor, samples: Tensor) -> tuple[Tensor, Tensor]:
    """Inputs of the tokenizer from 24 kHz audio: mel [B, frames, 128] and frame counts [B]."""
    at_16k, length = resample_16k(wave), samples_16k(samples)
    return mel_16k(at_16k, length), length // HOP


def targets_of(batch: Batch, transcripts: Transcripts) -> Targets:
    count = batch.wave.shape[1] // TOKEN
    phonemes = transcripts.phonemes_of(batch.row, count)
    return Targets(
        mask=length_mask(batch.samples // TOKEN, count),
        mel=mel_24k(batch.wave, batch.samples)[:, : FRAMES * count],
        pitch=pitch_salience.salience(resample_16k(batch.wave))[:, : FRAMES * count],
        letters=[transcripts.letters.numbers(text) for text in batch.text],
        phonemes=phonemes,
        sound=transcripts.is_sound(phonemes).unflatten(1, (-1, FRAMES)).any(-1),
    )


def losses(
    tokenizer: SpeechTokenizer,
    heads: Heads,
    batch: Batch,
    transcripts: Transcripts,
    generator: torch.Generator,
) -> dict[str, Tensor]:
    """By the names of WEIGHTS."""
    targets = targets_of(batch, transcripts)
    mask, count = targets.mask, targets.mask.shape[1]
    mel, frames = tokenizer_inputs(batch.wave, batch.samples)
    other_mel = mel_of_other_speaker(batch.wave, batch.samples, generator)
    code = tokenizer(torch.cat([mel, other_mel]), frames.repeat(2))
    own, other = code.digits[:, :count].chunk(2)
    coin = torch.rand(len(own), 1, 1, device=own.device, generator=generator) < 0.5
    digits = quantize(torch.where(coin, own, other))
    mel, salience = heads.mel(digits, mask, batch.voice)
    probe_loss = cross_entropies(heads.probe(digits), token_ids(digits)[:, 1:])
    frame_mask = mask.repeat_interleave(FRAMES, 1)
    return {
        "mel": masked_mean((mel - targets.mel).abs(), frame_mask),
        "detail": detail_loss(mel - targets.mel, frame_mask),
        "pitch": masked_mean((salience - targets.pitch).abs(), frame_mask),
        "text": text_loss(heads.text(digits, mask), mask, targets.letters),
        "phonemes": phoneme_loss(heads.phonemes(digits, mask), targets.phonemes),
        "same": disagreement(own, other, mask),
        "usage": functional.relu(MIN_USAGE - level_usage(own, mask)).mean(),
        "range": functional.relu(code.activations.abs() - MAX_ACTIVATION).square().mean(),
        "codes": functional.relu(MIN_CODE_USAGE - code_usage(own, targets.sound)),
        "redundancy": redundancy(own, mask),
        "probe": masked_mean(probe_loss, mask[:, 1:]),
    }


def detail_loss(difference: Tensor, mask: Tensor) -> Tensor:
    """The L1 loss of differences between frames and between bands, against blurred harmonics."""
    in_time = masked_mean(difference.diff(dim=1).abs(), mask[:, 1:])
    return in_time + masked_mean(difference.diff(dim=2).abs(), mask)


def text_loss(logits: Tensor, mask: Tensor, letters: list[list[int]]) -> Tensor:
    """CTC over letters; texts that are too long for their audio are ignored."""
    flat = torch.tensor([letter for word in letters for letter in word], device=logits.device)
    return functional.ctc_loss(
        logits.log_softmax(-1).transpose(0, 1),
        flat,
        FRAMES * mask.sum(1),
        torch.tensor([len(word) for word in letters], device=logits.device),
        zero_infinity=True,
    )


def cross_entropies(logits: Tensor, targets: Tensor) -> Tensor:
    """0 where a target is IGNORED. Flat, as a softmax over any dimension but the last is slow on a
    GPU: it took 15 % of a step.

    logits: [B, T, classes]; targets: [B, T] → [B, T]
    """
    flat = functional.cross_entropy(
        logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORED, reduction="none"
    )
    return flat.view_as(targets)


def phoneme_loss(logits: Tensor, phonemes: Tensor) -> Tensor:
    """Cross entropy in which a phoneme has the weight of the square root of its length: a short
    consonant distinguishes words as much as a long vowel.

    logits: [B, T, phonemes]; phonemes: [B, T], or IGNORED
    """
    found = cross_entropies(logits, phonemes)
    return masked_mean(found, (phonemes != IGNORED) * run_lengths(phonemes) ** -0.5)


def run_lengths(labels: Tensor) -> Tensor:
    """[B, T] → [B, T] float: how many equal labels follow each other where each label is."""
    starts = functional.pad(labels.diff(dim=1) != 0, (1, 0))
    run = starts.long().cumsum(1)
    lengths = torch.zeros_like(labels, dtype=torch.float32)
    lengths.scatter_add_(1, run, torch.ones_like(lengths))
    return lengths.gather(1, run)


class Validation:
    """Accumulates validation figures over batches."""

    def __init__(self) -> None:
        self._sums: dict[str, float] = dict.fromkeys(SUMS, 0.0)
        self._usage = torch.zeros(CODES)

    @torch.inference_mode()
    def add(
        self,
        tokenizer: SpeechTokenizer,
        heads: Heads,
        batch: Batch,
        transcripts: Transcripts,
        generator: torch.Generator,
    ) -> None:
        targets, sums = targets_of(batch, transcripts), self._sums
        mask, count = targets.mask, targets.mask.shape[1]
        mel, frames = tokenizer_inputs(batch.wave, batch.samples)
        other_mel = mel_of_other_speaker(batch.wave, batch.samples, generator)
        own, other = (tokenizer(x, frames).digits[:, :count].round() for x in (mel, other_mel))
        ids, other_ids = token_ids(own), token_ids(other)
        total, pairs = mask.sum().item(), mask[:, 1:].sum().item()
        frame_mask = mask.repeat_interleave(FRAMES, 1)
        mel, salience = heads.mel(own, mask, batch.voice)
        sums["mel"] += total * masked_mean((mel - targets.mel).abs(), frame_mask).item()
        sums["pitch"] += total * pitch_salience.agreement(salience, targets.pitch, frame_mask)
        named = heads.phonemes(own, mask).argmax(-1) == targets.phonemes
        sums["named"] += named.sum().item()
        sums["frames"] += (targets.phonemes != IGNORED).sum().item()
        once = transcripts.is_sound(targets.phonemes) / run_lengths(targets.phonemes)
        sums["named_once"] += (named * once).sum().item()
        sums["phonemes"] += once.sum().item()
        probe_loss = cross_entropies(heads.probe(own), ids[:, 1:])
        sums["probe"] += (probe_loss * mask[:, 1:]).sum().item()
        sums["change"] += ((ids.diff(dim=1) != 0) & mask[:, 1:]).sum().item()
        sums["equal"] += ((ids == other_ids) & mask).sum().item()
        sums["digits"] += ((own == other).float().mean(-1) * mask).sum().item()
        sums["tokens"] += total
        sums["pairs"] += pairs
        self._usage += torch.bincount(ids[mask].cpu(), minlength=CODES)
        best = heads.text(own, mask).argmax(-1) * frame_mask
        for found, true in zip(best.tolist(), targets.letters, strict=True):
            sums["errors"] += edit_distance(ctc_collapse(found), true)
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
            "frames_named": sums["named"] / max(1, sums["frames"]),
            "phonemes_named": sums["named_once"] / max(1, sums["phonemes"]),
            "codes_used": int((self._usage > 0).sum()),
            "code_perplexity": float(np.exp(entropy)),
            "least_digit_entropy": self._min_digit_entropy(),
            "change_rate": by_pair["change"],
            "tokens_as_another_speaker": by_token["equal"],
            "digits_as_another_speaker": by_token["digits"],
            "probe_bits": by_pair["probe"] / float(np.log(2)),
        }

    def _min_digit_entropy(self) -> float:
        """1 if every digit uses its levels equally often."""
        cube = (self._usage / self._usage.sum()).reshape((3,) * 8)
        sides = [cube.sum([d for d in range(8) if d != digit]) for digit in range(8)]
        return min(-(p * p.clamp_min(1e-12).log()).sum().item() for p in sides) / float(np.log(3))
