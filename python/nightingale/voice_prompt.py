"""What each kind of model is prompted with in a voice, and how a recording is prepared for it."""

from __future__ import annotations

from dataclasses import dataclass

from .loudness import gain_to
from .recording import Recording
from .voice import Voice

RATE = 24_000


@dataclass(frozen=True)
class VoicePrompt:
    """The prompt that one kind of model takes."""

    name: str  # in voice files
    models: str  # that take it, in messages
    tokens: int  # of T3's prompt at most, 25 a second
    loudness: float | None = None  # LUFS that recordings are brought to; None: they stay
    above_seconds: float | None = None  # that a recording must last; None: any will do

    def prepared(self, recording: Recording) -> Recording:
        """The recording as it is baked, or a ValueError where it is too short."""
        seconds = len(recording.at_24k) / RATE
        if self.above_seconds is not None and seconds <= self.above_seconds:
            raise ValueError(
                f"the recording is {seconds:.2f} s long; a voice for {self.models} needs more than "
                f"{self.above_seconds:g} s"
            )
        if self.loudness is None:
            return recording
        return recording.louder(gain_to(self.loudness, recording.at_24k, RATE))

    def check(self, voice: Voice) -> None:
        """A ValueError where the voice says that it holds another prompt."""
        if voice.prompt in (None, self.name):
            return
        other = PROMPTS.get(voice.prompt)
        holds = f"that of {other.models}" if other is not None else f"of the kind {voice.prompt!r}"
        raise ValueError(
            f"the voice's prompt is {holds}, and this model takes that of {self.models}: bake its "
            "recording again with this model"
        )


STANDARD = VoicePrompt("standard", "the English and multilingual models", 150)
TURBO = VoicePrompt("turbo", "Turbo and Nano", 375, loudness=-27.0, above_seconds=5.0)
PROMPTS = {prompt.name: prompt for prompt in (STANDARD, TURBO)}
