"""The LSTM speaker encoder of T3: a mean over overlapping parts of a recording."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn
from torch import tensor as as_tensor
from torch.nn import functional

MELS = 40
LAYERS = 3
SPEAKER_SIZE = 256
PART_FRAMES = 160
PART_STEP = 77  # frames: 1.3 parts a second
MIN_FRAMES = PART_FRAMES * 4 // 5  # of the last part, unless it is the only one


@dataclass(frozen=True)
class VoiceEncoderSize:
    lstm: int  # width


VOICE_ENCODER_SIZES = {
    "small": VoiceEncoderSize(lstm=128),
    "tiny": VoiceEncoderSize(lstm=32),
}


class VoiceEncoder(nn.Module):
    def __init__(self, size: VoiceEncoderSize) -> None:
        super().__init__()
        self.lstm = nn.LSTM(MELS, size.lstm, LAYERS, batch_first=True)
        self.proj = nn.Linear(size.lstm, SPEAKER_SIZE)
        # Official files have them; inference does not use them.
        self.register_buffer("similarity_weight", as_tensor([10.0]))
        self.register_buffer("similarity_bias", as_tensor([-5.0]))
        # The mel power of speech is mostly far below 1.
        self.lstm.weight_ih_l0.data *= 10

    def forward(self, mel: Tensor) -> Tensor:
        """mel: [B, 160, 40] → [B, 256] of unit length"""
        hidden = self.lstm(mel)[0][:, -1]
        return functional.normalize(functional.relu(self.proj(hidden)), dim=-1)

    def embed(self, mel: Tensor) -> Tensor:
        """mel: [B, frames, 40] of whole recordings → [B, 256] of unit length"""
        parts = parts_of(mel)
        batch, count = parts.shape[:2]
        embedded = self(parts.flatten(0, 1)).unflatten(0, (batch, count))
        return functional.normalize(embedded.mean(1), dim=-1)


def part_count(frames: int) -> int:
    """All complete parts, and the last one if it is long enough or the only one."""
    count, rest = divmod(max(0, frames - PART_FRAMES + PART_STEP), PART_STEP)
    enough = rest + PART_FRAMES - PART_STEP >= MIN_FRAMES
    return count + 1 if count == 0 or enough else count


def parts_of(mel: Tensor) -> Tensor:
    """[B, frames, 40] → [B, parts, 160, 40], zero-padded"""
    frames = mel.shape[1]
    covered = PART_FRAMES + PART_STEP * (part_count(frames) - 1)
    mel = functional.pad(mel, (0, 0, 0, max(0, covered - frames)))[:, :covered]
    return mel.unfold(1, PART_FRAMES, PART_STEP).transpose(2, 3)
