"""Nightingale: real-time, multilingual text-to-speech on your own machine."""

from ._core import Error
from .audio import Audio
from .loading import load
from .options import LoadOptions, SpeechOptions
from .speech import Chunk
from .tts import TTS
from .voice import Voice

__all__ = ["TTS", "Audio", "Chunk", "Error", "LoadOptions", "SpeechOptions", "Voice", "load"]
