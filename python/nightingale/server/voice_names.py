"""What the names of voices in requests stand for: voices, aliases, and OpenAI's names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

# Programs written for OpenAI name these whatever the server has. Where the model has the voice,
# it speaks; else the default does.
OPENAI_VOICES: Mapping[str, str] = MappingProxyType(
    {
        "alloy": "af_heart",
        "ash": "am_michael",
        "ballad": "bm_george",
        "cedar": "am_michael",
        "coral": "af_heart",
        "echo": "am_michael",
        "fable": "bm_george",
        "marin": "bf_emma",
        "nova": "af_heart",
        "onyx": "bm_george",
        "sage": "bf_emma",
        "shimmer": "bf_emma",
        "verse": "am_michael",
    }
)


def read_aliases(given: str | Iterable[str] | None) -> dict[str, str]:
    """Aliases by their name in lower case, each given as NAME=VOICE."""
    found = {}
    for text in [given] if isinstance(given, str) else given or ():
        name, equals, voice = (part.strip() for part in text.partition("="))
        if not (name and equals and voice):
            raise ValueError(f"an alias is written NAME=VOICE, not {text!r}")
        found[name.casefold()] = voice
    return found


def own_name(name: str, own: Sequence[str]) -> str | None:
    """The model's voice of this name, in any case."""
    if name in own:
        return name
    return next((each for each in own if each.casefold() == name.casefold()), None)
