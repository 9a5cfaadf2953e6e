"""What the kinds of models do differently around T3, by the backbone of theirs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from .options import SpeechOptions
from .speaking_rate import SpeakingRate
from .voice_prompt import STANDARD, TURBO, VoicePrompt

SILENCE = 4299  # the speech token


class IgnoredOptionWarning(UserWarning):
    """An option was given that the model does not have."""


@dataclass(frozen=True)
class ModelRules:
    """The rules of one kind of model."""

    prompt: VoicePrompt  # of its voices
    ignored_options: tuple[str, ...] = ()  # of SpeechOptions
    closing_tokens: tuple[int, ...] = ()  # that follow T3's in each sentence, for the flow
    speaking_rate: SpeakingRate | None = None  # that T3's emotion input tells

    def with_speaking_rate(self, rate: SpeakingRate | None) -> ModelRules:
        """The rules of a model that may have learned to speak slower and faster."""
        if rate is None:
            return self
        ignored = (*self.ignored_options, "exaggeration")
        return replace(self, ignored_options=ignored, speaking_rate=rate)

    def ignored(self, options: SpeechOptions) -> list[str]:
        """The options that were given and have no effect. 0 is what it does without them."""
        return [name for name in self.ignored_options if getattr(options, name)]

    def without_ignored(self, options: SpeechOptions) -> SpeechOptions:
        """With the model's own values in place of what it ignores."""
        ignored: dict[str, Any] = dict.fromkeys(self.ignored_options)
        return replace(options, **ignored)

    def resolved(self, options: SpeechOptions, defaults: dict[str, Any]) -> SpeechOptions:
        """With the model's values where none was given, and its way to speak slower or faster."""
        options = self.without_ignored(options).resolved(defaults)
        if self.speaking_rate is None:
            return options
        value, rest = self.speaking_rate.split(options.speed)
        return replace(options, exaggeration=value, speed=rest)


RULES = {
    "llama": ModelRules(STANDARD),
    "gpt2": ModelRules(TURBO, ("cfg_weight", "exaggeration", "min_p"), (SILENCE,) * 3),
}


def ignored_text(names: list[str]) -> str:
    return f"this model has no {' and no '.join(names)}: ignored"
