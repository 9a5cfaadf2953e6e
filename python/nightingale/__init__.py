"""Nightingale: real-time, multilingual text-to-speech on your own machine."""

from typing import TYPE_CHECKING

from ._core import Error
from .audio import Audio
from .chunks import Chunk
from .loading import load
from .model_rules import IgnoredOptionWarning
from .options import LoadOptions, SpeechOptions
from .text.lexicon import Lexicon
from .text.spoken import normalize
from .text.unspoken import UnspokenWarning
from .tts import TTS
from .voice import Voice
from .word_times import Word

__all__ = [
    "TTS",
    "Audio",
    "Chunk",
    "Error",
    "IgnoredOptionWarning",
    "Lexicon",
    "LoadOptions",
    "SpeechOptions",
    "UnspokenWarning",
    "Voice",
    "Word",
    "__version__",
    "load",
    "normalize",
]

__version__: str

if not TYPE_CHECKING:  # for type checkers there is no other attribute than those above

    def __getattr__(name: str) -> str:
        """`__version__`, read when it is asked for, so that importing the package is not slower."""
        if name != "__version__":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib.metadata import version

        return version("nightingale-tts")
